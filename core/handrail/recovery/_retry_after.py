"""Moments in headers and in fields of the body (rules U1, U2).

Retry-After in its forms, the resets of rate-limit windows with their counters, Google's RetryInfo, `resets_at` and
`resets_in_seconds`. A window whose own counter says that something is left does not bind.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo

from handrail.recovery._parse import Evidence
from handrail.recovery._vendors import IN_BEIJING, name_set
from handrail.recovery.wallclock import (
    LONGEST_S,
    SHANGHAI,
    Candidate,
    Named,
    parse_epoch,
    parse_length,
    parse_stamp,
    read_length,
    read_moment,
    zone_named,
)

_RETRY_MS = ("retry-after-ms", "x-ms-retry-after-ms", "x-retry-after-ms")
_RETRY = ("retry-after", "x-retry-after", "x-ratelimit-user-retry-after", "x-ratelimit-retry-after")
_WINDOW = re.compile(r"(?P<family>.{0,40}?rate-?limit.{0,40}?)-reset(?P<kind>-(?!after|in|at)[a-z-]{1,40})?")
_BUCKET = re.compile(
    r"(?:x-|anthropic-)?ratelimit-(?:reset-(?:requests|tokens)|(?:requests|(?:input-|output-)?tokens)-reset)"
)
_CODEX = re.compile(
    r"(?P<family>x-[a-z0-9-]{1,40}-(?:primary|secondary))-reset(?:-at|-after-seconds|s-in-seconds)"
)
_IETF = re.compile(r"\b(?:remaining|r)=(?P<left>\d{1,12}).{0,40}?\b(?:reset|t)=(?P<reset>\d{1,9})\b")

_SECONDS = name_set(
    """
    retryafter retryafterseconds retryaftersec retryaftersecs retrydelay retryinseconds retryin resetsinseconds
    resetinseconds resetafterseconds resetsafterseconds resetafter resetsin resetin quotaresetdelay waitseconds
    waittime secondsuntilreset cooldownseconds
    """
)
_MILLISECONDS = name_set("retryafterms retryaftermilliseconds resetinms resetsinms retrydelayms waitms")
_MOMENTS = name_set(
    """
    resetsat resetat resettime resetdate resetson reset quotaresettimestamp quotaresettime quotaresetdate
    resettimestamp nextreset nextresettime nextresetat retryat renewsat availableat unlocksat blockeduntil
    """
)
_USED = name_set("usedpercent usedpercentage")
_LEFT = name_set("remaining remainingrequests remainingtokens")


def in_headers(evidence: Evidence, now: float) -> Iterator[Candidate]:
    """The order to come back, in milliseconds before seconds; then the windows that are used up.

    Beside an order the reset of a bucket does not bind: it tells when the bucket is full again, not when there is
    enough in it to ask (rule U2).
    """
    headers = evidence.headers
    orders = _first(_RETRY_MS, headers, lambda value: _milliseconds(value, now))
    orders = orders or _first(_RETRY, headers, lambda value: any_form(value, now))
    yield from orders
    for name, value in headers.items():
        if orders and _BUCKET.fullmatch(name):
            continue
        if name in ("ratelimit", "x-ratelimit"):
            found = _IETF.search(value)
            written = found["reset"] if found is not None and not int(found["left"]) else ""
        else:
            written = value if _is_used_up(name, headers) else ""
        if (at := any_form(written, now)) is not None:
            yield Candidate(at, False, f"header {name}: {written[:40]}", reset=True)


def in_fields(evidence: Evidence, now: float) -> Iterator[Candidate]:
    """Fields of the body that name a moment. A counter in the same object says whether its window is used up."""
    left: dict[int, bool] = {}
    for field in evidence.fields:
        count = _number(field.value) if field.key in _USED or field.key in _LEFT else None
        if count is not None:
            left[field.group] = count < 100 if field.key in _USED else count > 0
    for field in evidence.fields:
        if field.key in _MILLISECONDS:
            at = _milliseconds(field.value, now)
        elif field.key in _SECONDS or field.key in _MOMENTS:
            at = any_form(field.value, now)
        else:
            continue
        if at is not None and not left.get(field.group, False):
            yield Candidate(at, False, f"field {field.name}: {field.value[:40]}")


def any_form(value: str, now: float) -> float | None:
    """A moment in any form of a machine: seconds ahead, an epoch in s or ms, `6m0s`, RFC 3339, an HTTP date."""
    if not value:
        return None
    number = _number(value)
    if number is not None:
        return parse_epoch(number, now=now) if number >= 1e9 else _ahead(number, now)
    length = parse_length(value)
    return now + length if length is not None else parse_stamp(value, now=now)


def _first(
    names: Iterable[str], headers: Mapping[str, str], read: Callable[[str], float | None]
) -> list[Candidate]:
    for name in names:
        value = headers.get(name, "")
        if (at := read(value)) is not None:
            return [Candidate(at, False, f"header {name}: {value[:40]}")]
    return []


def _is_used_up(name: str, headers: Mapping[str, str]) -> bool:
    """Whether `name` is the reset of a window that is used up, as far as its neighbours tell (rule U2)."""
    if codex := _CODEX.fullmatch(name):
        used = _number(headers.get(f"{codex['family']}-used-percent", ""))
        return used is None or used >= 100
    window = _WINDOW.fullmatch(name)
    if window is None or "overage" in name or "fallback" in name:
        return False
    family, kind = window["family"], window["kind"] or ""
    if status := headers.get(f"{family}-status"):
        return status.lower() == "rejected"
    left = _number(headers.get(f"{family}-remaining{kind}", ""))
    return left is None or left <= 0


def _milliseconds(value: str, now: float) -> float | None:
    number = _number(value)
    return None if number is None else _ahead(number / 1000, now)


def _ahead(seconds: float, now: float) -> float | None:
    return now + seconds if 0 <= seconds <= LONGEST_S else None


_NUMBER = re.compile(r"[+-]?[0-9]{1,20}(?:\.[0-9]{0,20})?")


def _number(value: str) -> float | None:
    value = value.strip().rstrip("%")
    return float(value) if _NUMBER.fullmatch(value) else None


_CUE = re.compile(
    r"\b(?:(?:try|trying|retry|retrying|available|back|access)(?:\sagain)?"
    r"|retry-after|reset(?:s|ting)?|refresh(?:es|ed)?|renew(?:s|ed|al)?|replenish(?:es|ed)?|unlock(?:s|ed)?"
    r"|lifted|resum(?:e|es|ed|ing)|restored|wait|until|cool\s?down)\b",
    re.IGNORECASE,
)
_GLUE = re.compile(
    r"[\s:,·∙•|\"'=-]{0,4}(?:(?:again|will|be|is|it|once|more|only|at least|another|your|the|limits?|quota|usage|window"
    r"|time|requests?|period|and|then|here|date)\b[\s:,·∙•|\"'=-]{0,4}){0,4}",
    re.IGNORECASE,
)
_IN = re.compile(r"(?:in|after|for|within)\b:?\s{0,3}", re.IGNORECASE)
_AT = re.compile(r"(?:at|on|until|by|after|from)\b\s{0,3}(?:the\s)?", re.IGNORECASE)
_ABOUT = re.compile(r"(?:~|about\s|around\s|approximately\s)\s?", re.IGNORECASE)
_BARE_SECONDS = re.compile(r"(\d{1,8}(?:\.\d{1,6})?)(?![\w:/%-]|\.\d)")
_EPOCH = re.compile(r"(\d{13}|\d{10})(?:\.\d{1,9})?(?![\w-]|\.\d)")
_PIPE = re.compile(r"\|\s{0,2}(\d{13}|\d{10})(?!\d)")
_PROTO_DELAY = re.compile(r"retry_delay\s{0,4}\{\s{0,8}seconds:\s{0,4}(\d{1,8})")
_CJK = re.compile(r"[\u3400-\u9fff]")
_CJK_LENGTH = re.compile(r"(?:约|大约)?\s{0,2}\d[\d.]{0,12}\s{0,2}(?:毫秒|秒|分|小时|个小时|天|日|周|个星期)")
_CJK_STAMP = re.compile(
    r"\d{4}[-/.年]\d{1,2}[-/.月]\d{1,2}日?\s{0,2}T?\d{1,2}:\d{2}(?::\d{2})?|[今明][天日]\s?\d{1,2}:\d{2}"
)
_CJK_THEN = re.compile(r"\s{0,2}(?:内|前)?\s{0,2}(?:之?后|以后|再|重置|恢复|刷新|解除|解锁|重试|可)")
_YEAR_MONTH_DAY = str.maketrans({"年": "-", "月": "-", "日": None})


def in_words(evidence: Evidence, now: float, local: tzinfo | None) -> Iterator[Candidate]:
    """Every moment that the words name. Wall times of a Chinese text or vendor are Beijing's (rule U2)."""
    prose = evidence.prose
    chinese = _CJK.search(prose) is not None
    if chinese or evidence.vendor in IN_BEIJING:
        local = zone_named(SHANGHAI)
    for found in _PIPE.finditer(prose):
        if (at := parse_epoch(float(found[1]), now=now)) is not None:
            yield _candidate(prose, found.start(), Named(at, found.end()))
    for found in _PROTO_DELAY.finditer(prose):
        yield _candidate(prose, found.start(), Named(now + float(found[1]), found.end()))
    for cue in _CUE.finditer(prose):
        named = _behind(prose, cue, now, local)
        if named is not None:
            yield _candidate(prose, cue.start(), named)
    if chinese:
        yield from _in_chinese(prose, now, local)


def _behind(prose: str, cue: re.Match[str], now: float, local: tzinfo | None) -> Named | None:
    """What stands behind a cue. «in» asks for a length first, «at» for a moment, nothing for either."""
    start = _end_of(_GLUE, prose, cue.end())
    ahead = _IN.match(prose, start)
    if ahead is not None and (named := _length_at(prose, ahead.end(), now)) is not None:
        return named
    position = _end_of(_AT, prose, start)
    clear = _end_of(_ABOUT, prose, position)
    moment = read_moment(prose, clear, now=now, local=local)
    if moment is not None:
        return Named(moment.at, moment.end, moment.rounded or clear > position)
    epoch = _EPOCH.match(prose, position)
    if epoch is not None:
        at = parse_epoch(float(epoch[1]), now=now)
        return None if at is None else Named(at, epoch.end())
    if position == start and (named := _length_at(prose, start, now)) is not None:
        return named
    return _bare_seconds(prose, cue, ahead, start, now)


def _bare_seconds(
    prose: str, cue: re.Match[str], ahead: re.Match[str] | None, start: int, now: float
) -> Named | None:
    """`retry-after: 30` and `retry after 30` are seconds, as in the header; a bare number elsewhere is nothing."""
    word = cue.group().lower()
    after = ahead is not None and ahead.group().lower().startswith("after")
    if word != "retry-after" and not (word == "retry" and after):
        return None
    found = _BARE_SECONDS.match(prose, ahead.end() if ahead is not None else start)
    return Named(now + float(found[1]), found.end()) if found is not None else None


def _length_at(prose: str, position: int, now: float) -> Named | None:
    length = read_length(prose, position)
    return Named(now + length.seconds, length.end, length.rounded) if length is not None else None


def _in_chinese(prose: str, now: float, local: tzinfo | None) -> Iterator[Candidate]:
    """Lengths and wall times stand before what happens then: `5 分钟后重试`, `2026-07-14 20:41:44 重置`."""
    for found in _CJK_LENGTH.finditer(prose):
        named = _length_at(prose, found.start(), now)
        if named is not None and _CJK_THEN.match(prose, named.end):
            yield _candidate(prose, found.start(), named)
    for found in _CJK_STAMP.finditer(prose):
        moment = read_moment(found.group().translate(_YEAR_MONTH_DAY), 0, now=now, local=local)
        if moment is not None and _CJK_THEN.match(prose, found.end()):
            yield _candidate(prose, found.start(), Named(moment.at, found.end(), moment.rounded))


def _candidate(prose: str, start: int, named: Named) -> Candidate:
    return Candidate(named.at, named.rounded, f"text: {prose[start : min(named.end, start + 80)]}")


def _end_of(pattern: re.Pattern[str], text: str, position: int) -> int:
    found = pattern.match(text, position)
    return found.end() if found is not None else position


EXACT_MARGIN_S = 5.0
ROUNDED_MARGIN_S = 30.0


@dataclass(frozen=True, slots=True)
class Guidance:
    """A moment that the provider names.

    `at` is in seconds since the epoch and `wait_s` seconds from the look to it, both before margins. `rounded` says
    that the writer rounded (`~42 min`). `source` is where it was found, in words for people.
    """

    at: float
    wait_s: float
    rounded: bool
    source: str

    def due(self) -> float:
        """The moment to ask again: 30 s later where it is rounded, 5 s elsewhere (rule U1)."""
        return self.at + (ROUNDED_MARGIN_S if self.rounded else EXACT_MARGIN_S)


def find_moments(evidence: Evidence, *, now: float, local: tzinfo | None) -> list[Candidate]:
    """Every moment that the failure names and that may bind. `local` None is the machine's own zone."""
    return [*in_headers(evidence, now), *in_fields(evidence, now), *in_words(evidence, now, local)]


def latest(candidates: Sequence[Candidate], *, now: float, limited: bool) -> Guidance | None:
    """The latest moment that binds (rule U2). Resets of windows bind only where a limit was hit (`limited`)."""
    binding = [candidate for candidate in candidates if limited or not candidate.reset]
    if not binding:
        return None
    last = max(binding, key=lambda candidate: (candidate.at, candidate.rounded))
    return Guidance(last.at, max(0.0, last.at - now), last.rounded, last.source)
