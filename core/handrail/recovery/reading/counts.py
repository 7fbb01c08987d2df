"""Two token counts, the larger beside the smaller limit: in any words, they say that something is too long.

Which of the two is the limit follows from a comparison (`9000 > 8192`), by a word for a limit beside it, or by a name
(`n_ctx`). What is too long is the input, unless the words beside it speak of the output (rules K1, R3).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from handrail.recovery.reading.parse import Field

_NUMBER: Final = re.compile(
    r"(?<![\w.#$€£/:-])(?P<digits>\d{1,3}(?:[,.' \u2019\u202f]\d{3}){1,3}|\d{1,12}(?:\.\d{1,3})?)"
    r"(?:\s?(?P<scale>[km](?![a-z])|万))?(?![\w%:/]|[.,]\d)"
)
_OTHER_UNIT: Final = re.compile(
    r"\s?(?:bytes?|[kmg]i?b\b|characters?|chars?\b|pixels?|px\b|images?|messages?|tools?\b|functions?|items?|files?"
    r"|requests?|calls?|seconds?|secs?\b|s\b|ms\b|minutes?|mins?\b|hours?|days?|x ?\d|×|usd|dollars?|credits?|cents?"
    r"|lines?|words|pages?|elements?|entries|embeddings?|字符|张|条|次|秒|分钟|小时|天)"
)
_TOKENS: Final = re.compile(
    r"tok(?:en|\b)|jeton|\bficha|токен|トークン|토큰|令牌|词元|\bn ?(?:ctx|keep|prompt)|\bctx\b"
    r"|context|contexte|kontext"
    r"|contexto|contesto|контекст|上下文|prompt|\binput|eingabe|entrada|entrée|输入|入力|입력|ввод"
    r"|sequence length|seq(?:uence)? ?len|model len|提示词|プロンプト|프롬프트|промпт"
)
_INPUT: Final = re.compile(
    r"context|contexte|kontext|contexto|contesto|контекст|上下文|コンテキスト|컨텍스트|prompt|промпт|提示|プロンプト|프롬프트"
    r"|\binput|eingabe|entrada|entrée|输入|入力|입력|\bn ?(?:ctx|keep)|\bctx\b|conversation|history|messages\b|sequence"
    r"|seq len|model len|request \(|request has|your request"
)
_OUTPUT: Final = re.compile(
    r"output|completion tokens|completion limit|max ?(?:completion|new|output|gen\w{0,9}|response)? ?tokens?\b"
    r"|n predict|thinking|reasoning|budget|to sample|responses?\b|ausgabe|salida|sortie|выво|输出|出力|출력|回复长度"
)
_LIMIT: Final = re.compile(
    r"limit|límit|límite|лимит|\bmax|máx|massim|макс|предел|допуст|höchst|grenz|erlaub|allow|support|permit|autoris|accept"
    r"|capacit|capaz|\bonly\b|\bup to\b|\bat most\b|\bless than|\bn ?ctx\b|ctx size|model len"
    r"|至多|最多|最大|最长|上限|限制|支持|以内|不超过|不能超过|制限|まで|제한|최대|한도"
)
_ROOM: Final = re.compile(
    r"window|fenster|fenêtre|ventana|окно|\bmodel|modell|modèle|modelo|模型|context (?:size|length)"
)
_RATE: Final = re.compile(
    r"quota|\btoday\b|daily|credits?\b|balance|billing|remaining|allowance|\btp[md]\b|\brp[md]\b|\brates?\b|cuota"
    r"|\bper\b|/ ?(?:min|s|sec|h|hour|d|day)\b|额度|配额|每"
)
_MORE: Final = re.compile(r"[)\s\w.=:]{0,30}(?P<sign>>=?|≥|&gt;=?)[(\s\w.=:]{0,30}")
_LESS: Final = re.compile(r"[)\s\w.=:]{0,30}(?P<sign><=?|≤|&lt;=?)[(\s\w.=:]{0,30}")
_EXCEEDS: Final = re.compile(
    r"\bexce|überschr|übersteig|dépass|supera|sobrepas|превыш|больше|超|大于|초과|を超え"
    r"|does not fit|doesn't fit|不适合"
    r"|\b(?:larger|greater|longer|more|bigger|higher|over|above|beyond)\b|too (?:long|large|many|big|much)"
    r"|zu (?:lang|groß|viel)|trop |demasiad|troppo|过长|太长|过大|слишком|너무|長すぎ"
)
_NEGATIVE: Final = re.compile(
    r"(?:max ?(?:completion |new |output |gen\w{0,9} )?tokens?|n predict)\b"
    r"[^-\d]{0,40}(?:\d{1,3}\b[^-\d]{0,40})?-\d{2,12}\b"
)
_CLAUSE: Final = re.compile(r"[.;,。，；](?:\s|$)|[。，；]|\b(?:but|and|while|aber|mais|pero|und|et|y|но)\b")
_BEHIND: Final = re.compile(
    r"[\s)]{0,3}(?:tokens?|tok|jetons?)?[\s)]{0,3}(?:(?:is|are|was|ist|est|es|是) ?)?"
    r"(?:(?:the|our|its|der|die|das|la|le|el|o) )?\w{0,14}"
)
_GROUPS: Final = re.compile(r"[,' \u2019\u202f]")
_DOTTED: Final = re.compile(r"\d{1,3}(?:\.\d{3})+")
_NEAR: Final = 48
_FARTHEST: Final = 200
_LEAST: Final = 16
"""Smaller numbers count no tokens of an input."""

_PROMPT_KEYS: Final = re.compile(
    r"n?(?:prompt|input|request|context)(?:tokens?|tokencount|length|size)|(?:requested|actual|total)(?:input)?tokens?|nkeep"
)
_WINDOW_KEYS: Final = re.compile(
    r"nctx|(?:max(?:imum)?|model|allowed)?(?:context|model|input|prompt)(?:length|len|window|size|tokens|limit|tokenlimit)"
    r"(?:limit)?|max(?:imum)?(?:input|prompt|context)tokens|contextlimit|windowsize"
)


@dataclass(frozen=True, slots=True)
class Excess:
    """`count` tokens where at most `limit` fit. `of` is what is too long; `named`: the words say so of the input."""

    count: float
    limit: float
    of: Literal["input", "output"]
    named: bool = True


@dataclass(frozen=True, slots=True)
class _Count:
    """A number, the rest of its clause before it, and the words right behind it."""

    value: float
    start: int
    end: int
    before: str
    after: str


def excess(words: str, *, strict: bool = False) -> Excess | None:
    """The two counts in `words` (lower case, `_` as a space) that say so, or None. Counts of a rate limit never do.

    `strict`: only where the words speak of the input, because the status is that of rate limits.
    """
    counts = list(_counts(words))[:40]
    for distance in (1, 2, 3):
        for first, second in zip(counts, counts[distance:], strict=False):
            found = _compare(words, first, second, adjacent=distance == 1)
            if found is not None and not (strict and not found.named):
                return found
    return None


def used_up(words: str) -> str | None:
    """A negative output cap, as `max_tokens: -14999`: a server computed it from a window that the input overfills."""
    found = _NEGATIVE.search(words)
    return found.group() if found is not None else None


def excess_in_fields(fields: tuple[Field, ...]) -> Excess | None:
    """The same in numbers of one object: `n_prompt_tokens: 9000, n_ctx: 8192`."""
    for field in fields:
        if _PROMPT_KEYS.fullmatch(field.key) is None or not field.value.isdigit():
            continue
        for other in fields:
            if other.group != field.group or other.key == field.key or not other.value.isdigit():
                continue
            if _WINDOW_KEYS.fullmatch(other.key) and 0 < int(other.value) < int(field.value):
                return Excess(int(field.value), int(other.value), "input")
    return None


def _counts(words: str) -> Iterator[_Count]:
    """Every number that may count tokens: none of another unit, no status, no date."""
    last = 0
    for found in _NUMBER.finditer(words):
        before = words[max(last, found.start() - 2 * _NEAR) : found.start()]
        last = found.end()
        value = _value(found)
        if value < _LEAST or _OTHER_UNIT.match(words, found.end()):
            continue
        after = _BEHIND.match(words, found.end())
        yield _Count(
            value,
            found.start(),
            found.end(),
            _CLAUSE.split(before)[-1],
            after.group() if after is not None else "",
        )


def _value(found: re.Match[str]) -> float:
    digits = _GROUPS.sub("", found["digits"])
    if _DOTTED.fullmatch(digits) and not found["scale"]:
        digits = digits.replace(".", "")  # 131.072, as in continental Europe
    scale = {"k": 1e3, "m": 1e6, "万": 1e4}.get(found["scale"] or "", 1.0)
    return float(digits) * scale


def _compare(words: str, first: _Count, second: _Count, *, adjacent: bool) -> Excess | None:
    """Whether the larger of two counts is asked for, and the smaller is the limit."""
    between = words[first.end : second.start]
    around = words[max(0, first.start - 2 * _NEAR) : second.end + _NEAR]
    if len(between) > _FARTHEST or not _TOKENS.search(around) or _RATE.search(around):
        return None
    larger, smaller = (first, second) if first.value >= second.value else (second, first)
    if adjacent and (sign := _MORE.fullmatch(between) or _LESS.fullmatch(between)):
        more = sign["sign"][0] == ">" or sign["sign"] in ("≥", "&gt;", "&gt;=")
        equal = first.value == second.value and "=" not in sign["sign"] and sign["sign"] not in "≥≤"
        exceeds = not equal and (first is larger) == more
    else:
        exceeds = larger.value > smaller.value and (
            (adjacent and first is larger and _EXCEEDS.search(between) is not None)
            or _is_limit_beside(smaller, larger)
        )
    if not exceeds:
        return None
    named = _INPUT.search(around) is not None
    output = _OUTPUT.search(larger.before) and not _INPUT.search(larger.before)
    output = output or (_OUTPUT.search(around) and not named)
    return Excess(larger.value, smaller.value, "output" if output else "input", named)


def _is_limit_beside(smaller: _Count, larger: _Count) -> bool:
    """Whether the words beside two counts make the smaller one the limit, and not the larger one."""
    small, large = _mark(smaller.before), _mark(larger.before)
    if _EXCEEDS.search(larger.before):
        large = 0  # «exceeds the limit: 9000»: what exceeds it is the count
    behind_small, behind_large = max(small, _mark(smaller.after)), max(large, _mark(larger.after))
    return behind_small > behind_large or (behind_small == behind_large == small > large)


def _mark(words: str) -> int:
    """How clearly words speak of a limit: 2 a word for it, 1 a word for something that has one, 0 not at all."""
    return 2 if _LIMIT.search(words) else 1 if _ROOM.search(words) else 0
