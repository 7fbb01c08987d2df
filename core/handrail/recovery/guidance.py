"""When to ask again: the moment that a provider names, wherever it names it (rules U1, U2).

Moments are looked for in headers, in the body's fields and in its words. Each comes with the window it belongs to:
only a limit that is used up binds, and of several that bind the latest holds. Nothing is invented: what cannot be
read, is stale or is absurd is no moment.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import tzinfo

from handrail.recovery.durations import LONGEST_S, parse_length, read_length
from handrail.recovery.evidence import Evidence
from handrail.recovery.wallclock import SHANGHAI, parse_epoch, parse_stamp, read_moment, zone_named

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


@dataclass(frozen=True, slots=True)
class Candidate:
    """A moment found. `window` names a limit whose own counter says that it is used up; empty: it names none.

    `limit` tells the reset of a rate limit's window from an order to come back: only the first needs a limit that
    was really hit.
    """

    at: float
    rounded: bool
    source: str
    limit: bool = False


def latest(candidates: list[Candidate], *, now: float, limited: bool) -> Guidance | None:
    """The latest moment that binds (rule U2). Resets of windows bind only where a limit was hit (`limited`)."""
    binding = [c for c in candidates if limited or not c.limit]
    if not binding:
        return None
    last = max(binding, key=lambda c: (c.at, c.rounded))
    return Guidance(last.at, max(0.0, last.at - now), last.rounded, last.source)


def find_moments(evidence: Evidence, *, now: float, local: tzinfo) -> list[Candidate]:
    """Every moment that the failure names and that may bind."""
    return [
        *_in_headers(evidence, now),
        *_in_fields(evidence, now),
        *_in_words(evidence, now, local),
    ]


_RETRY_MS = ("retry-after-ms", "x-ms-retry-after-ms", "x-retry-after-ms")
_RETRY = ("retry-after", "x-retry-after", "x-ratelimit-user-retry-after", "x-ratelimit-retry-after")
_WINDOW = re.compile(r"(?P<family>.{0,40}?rate-?limit.{0,40}?)-reset(?P<kind>-(?!after|in|at)[a-z-]{1,40})?")
_CODEX = re.compile(
    r"(?P<family>x-[a-z0-9-]{1,40}-(?:primary|secondary))-reset(?:-at|-after-seconds|s-in-seconds)"
)
_IETF = re.compile(r"\b(?:remaining|r)=(?P<left>\d+).{0,40}?\b(?:reset|t)=(?P<reset>\d{1,9})\b")


def _in_headers(evidence: Evidence, now: float) -> Iterator[Candidate]:
    headers = evidence.headers
    exact = _first(_RETRY_MS, headers, lambda value: _milliseconds(value, now))
    yield from exact or _first(_RETRY, headers, lambda value: _any_form(value, now))
    for name, value in headers.items():
        if name in ("ratelimit", "x-ratelimit"):
            found = _IETF.search(value)
            value = found["reset"] if found is not None and not int(found["left"]) else ""
        elif not _is_used_up(name, headers):
            continue
        if (at := _any_form(value, now)) is not None:
            yield Candidate(at, False, f"header {name}", limit=True)


def _first(
    names: Iterable[str], headers: Mapping[str, str], read: Callable[[str], float | None]
) -> list[Candidate]:
    for name in names:
        if (at := read(headers.get(name, ""))) is not None:
            return [Candidate(at, False, f"header {name}")]
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


_SECONDS = frozenset(
    "retryafter retryafterseconds retryaftersec retryaftersecs resetsinseconds resetinseconds resetafterseconds resetafter "
    "resetsafterseconds retrydelay retryinseconds retryin waitseconds waittime secondsuntilreset quotaresetdelay "
    "resetsin resetin cooldownseconds".split()
)
_MILLISECONDS = frozenset(
    "retryafterms retryaftermilliseconds resetinms resetsinms retrydelayms waitms".split()
)
_MOMENTS = frozenset(
    "resetsat resetat resettime resetdate quotaresettimestamp quotaresettime quotaresetdate resettimestamp retryat "
    "nextreset nextresettime nextresetat resetson renewsat availableat unlocksat reset blockeduntil".split()
)


def _in_fields(evidence: Evidence, now: float) -> Iterator[Candidate]:
    left: dict[int, bool] = {}
    for field in evidence.fields:
        number = _number(field.value)
        if field.key in ("usedpercent", "usedpercentage") and number is not None:
            left[field.group] = number < 100
        elif field.key in ("remaining", "remainingrequests", "remainingtokens") and number is not None:
            left[field.group] = number > 0
    for field in evidence.fields:
        if field.key in _MILLISECONDS:
            at = _milliseconds(field.value, now)
        elif field.key in _SECONDS or field.key in _MOMENTS:
            at = _any_form(field.value, now)
        else:
            continue
        if at is not None and not left.get(field.group, False):
            yield Candidate(at, False, f"field {field.name}: {field.value}")


_CUE = re.compile(
    r"\b(?:(?:try|trying|retry|retrying|available|back|access)(?:\sagain)?"
    r"|retry-after|reset(?:s|ting)?|refresh(?:es|ed)?|renew(?:s|ed|al)?|replenish(?:es|ed)?|unlock(?:s|ed)?"
    r"|lifted|resum(?:e|es|ed|ing)|restored|wait|until|cool\s?down)\b",
    re.IGNORECASE,
)
_GLUE = re.compile(
    r"[\s:,·∙•|\"'=-]{0,4}(?:(?:again|will|be|is|it|once|more|only|at least|another|your|the|limits?|quota|usage|window|time"
    r"|request|requests|period|and|then|here|date)\b[\s:,·∙•|\"'=-]{0,4}){0,4}",
    re.IGNORECASE,
)
_LENGTH_FIRST = re.compile(r"(?:in|after|for|within)\b:?\s{0,3}", re.IGNORECASE)
_MOMENT_FIRST = re.compile(r"(?:at|on|until|by|after|from|~)\s{0,3}(?:the\s)?", re.IGNORECASE)
_BARE_SECONDS = re.compile(r"(\d{1,8}(?:\.\d{1,6})?)(?![\w:/.%-])")
_EPOCH = re.compile(r"(\d{13}|\d{10})(?:\.\d{1,9})?(?![\w.-])")
_PIPE = re.compile(r"\|\s{0,2}(\d{13}|\d{10})(?!\d)")
_PROTO_DELAY = re.compile(r"retry_delay\s{0,4}\{\s{0,8}seconds:\s{0,4}(\d{1,9})")
_CJK = re.compile(r"[\u3400-\u9fff]")
_CJK_LENGTH = re.compile(r"(?:约|大约)?\s{0,2}\d[\d.]{0,12}\s{0,2}(?:毫秒|秒|分|小时|个小时|天|日|周|个星期)")
_CJK_STAMP = re.compile(
    r"\d{4}[-/.年]\d{1,2}[-/.月]\d{1,2}日?\s{0,2}T?\d{1,2}:\d{2}(?::\d{2})?|[今明][天日]\s?\d{1,2}:\d{2}"
)
_CJK_AHEAD = re.compile(r"\s{0,2}(?:钟|内)?\s{0,2}(?:之?后|以后|再|重置|恢复|刷新|解除|解锁|重试|可)")
_BEIJING_VENDORS = (
    "zai",
    "zhipu",
    "bigmodel",
    "glm",
    "dashscope",
    "qwen",
    "alibaba",
    "volc",
    "doubao",
    "minimax",
    "siliconflow",
)


def _in_words(evidence: Evidence, now: float, local: tzinfo) -> Iterator[Candidate]:
    prose = evidence.prose
    chinese = _CJK.search(prose) is not None
    if chinese or evidence.provider.startswith(_BEIJING_VENDORS):
        local = zone_named(SHANGHAI) or local
    for found in _PIPE.finditer(prose):
        if (at := parse_epoch(float(found[1]), now=now)) is not None:
            yield Candidate(at, False, f"text: {_quote(prose, found.start(), found.end())}")
    for found in _PROTO_DELAY.finditer(prose):
        yield Candidate(now + float(found[1]), False, f"text: {_quote(prose, found.start(), found.end())}")
    for cue in _CUE.finditer(prose):
        moment = _behind(prose, cue, now, local)
        if moment is not None:
            at, rounded, end = moment
            yield Candidate(at, rounded, f"text: {_quote(prose, cue.start(), end)}")
    if chinese:
        yield from _in_chinese(prose, now, local)


def _behind(prose: str, cue: re.Match[str], now: float, local: tzinfo) -> tuple[float, bool, int] | None:
    """What stands behind a word such as «retry», «resets» or «wait»: a length, a moment, an epoch."""
    glue = _GLUE.match(prose, cue.end())
    start = glue.end() if glue is not None else cue.end()
    ahead = _LENGTH_FIRST.match(prose, start)
    if ahead is not None and (length := read_length(prose, ahead.end())) is not None:
        return now + length.seconds, length.rounded, length.end
    by = _MOMENT_FIRST.match(prose, start)
    position = by.end() if by is not None else start
    about = prose.startswith(("about ", "around ", "approximately "), position)
    if about:
        position = prose.index(" ", position) + 1
    named = read_moment(prose, position, now=now, local=local)
    if named is not None:
        return named.at, named.rounded or about, position + 40
    if (epoch := _EPOCH.match(prose, position)) is not None:
        at = parse_epoch(float(epoch[1]), now=now)
        return None if at is None else (at, False, epoch.end())
    if by is None and (length := read_length(prose, start)) is not None:
        return now + length.seconds, length.rounded, length.end
    bare = _BARE_SECONDS.match(prose, ahead.end() if ahead is not None else start)
    if bare is not None and _means_seconds(cue, ahead):
        return now + float(bare[1]), False, bare.end()
    return None


def _means_seconds(cue: re.Match[str], ahead: re.Match[str] | None) -> bool:
    """`retry-after: 30` and `retry after 30` are seconds, as in the header; a bare number elsewhere is not."""
    word = cue.group().lower()
    return word == "retry-after" or (
        word == "retry" and ahead is not None and ahead.group().lower().startswith("after")
    )


def _in_chinese(prose: str, now: float, local: tzinfo) -> Iterator[Candidate]:
    """Lengths and wall times stand before what happens then: `5 分钟后重试`, `将在 2026-07-14 20:41:44 重置`."""
    for found in _CJK_LENGTH.finditer(prose):
        length = read_length(prose, found.start())
        if length is not None and _CJK_AHEAD.match(prose, length.end):
            yield Candidate(now + length.seconds, length.rounded, f"text: {found.group()}")
    for found in _CJK_STAMP.finditer(prose):
        written = found.group().replace("年", "-").replace("月", "-").replace("日", "")
        named = read_moment(written, 0, now=now, local=local)
        if named is not None and _CJK_AHEAD.match(prose, found.end()):
            yield Candidate(named.at, named.rounded, f"text: {found.group()}")


def _quote(prose: str, start: int, end: int) -> str:
    """The words from `start` on, as far as the sentence or the moment goes, in at most 60 characters."""
    return prose[start : min(end, start + 60)].split(". ")[0].rstrip(" .,;")


def _any_form(value: str, now: float) -> float | None:
    """A moment in any form of a machine: seconds ahead, an epoch in s or ms, `6m0s`, RFC 3339, an HTTP date."""
    number = _number(value)
    if number is not None:
        return parse_epoch(number, now=now) if number >= 1e9 else _ahead(number, now)
    length = parse_length(value) if value else None
    return now + length if length is not None else parse_stamp(value, now=now) if value else None


def _milliseconds(value: str, now: float) -> float | None:
    number = _number(value)
    return None if number is None else _ahead(number / 1000, now)


def _ahead(seconds: float, now: float) -> float | None:
    return now + seconds if 0 <= seconds <= LONGEST_S else None


_NUMBER = re.compile(r"[+-]?\d{1,20}(?:\.\d{0,20})?")


def _number(value: str) -> float | None:
    value = value.strip().rstrip("%")
    return float(value) if _NUMBER.fullmatch(value) else None
