"""Moments in words: `try again in two hours`, `resets at 9:00 AM on July 25 (UTC)`, `5 分钟后重试` (rules U1, U2).

A moment is read only beside words that say what happens then: behind `try again` or `resets`, before `until reset`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from handrail.recovery.moments.durations import read_length
from handrail.recovery.moments.guidance import Candidate, When
from handrail.recovery.moments.wallclock import Moment, is_bare_clock, parse_epoch, read_moment
from handrail.recovery.moments.zones import SHANGHAI, zone_named
from handrail.recovery.reading.parse import Evidence
from handrail.recovery.reading.vendors import IN_BEIJING

_COMES_BACK: Final = (
    r"reset(?:s|ting)?|refresh(?:es|ed)?|renew(?:s|ed|al)?|replenish(?:es|ed)?"
    r"|unlock(?:s|ed)?|lifted|restored"
)
_CUE: Final = re.compile(
    rf"(?<![A-Za-z])(?:(?P<direct>{_COMES_BACK})"
    r"|(?P<length>retry-after|wait|cool\s?down|time\s(?:left|remaining)|remaining\stime|wait\stime)"
    r"|(?P<until>until)"
    r"|(?:try|trying|retry|retrying|available|back|access|resum(?:e|es|ed|ing))(?:\sagain)?)(?![A-Za-z])",
    re.IGNORECASE,
)
_SEPARATOR: Final = r"[\s:,_·∙•|\"'=>-]{0,4}"
_GLUE: Final = re.compile(
    _SEPARATOR
    + r"(?:(?:again|will|be|is|it|once|more|only|at least|another|your|the|limits?|quota|usage|window|time|requests?"
    rf"|period|and|then|here|date|next)(?![A-Za-z]){_SEPARATOR}){{0,4}}",
    re.IGNORECASE,
)
_IN: Final = re.compile(r"(?:in|after|for|within)(?![A-Za-z])[:=]?\s{0,3}", re.IGNORECASE)
_AT: Final = re.compile(
    r"(?:daily\s|each\sday\s|every\sday\s)?(?:at|on|until|by|after|from)(?![A-Za-z])[:=]?\s{0,3}(?:the\s(?!\d))?",
    re.IGNORECASE,
)
_ABOUT: Final = re.compile(r"(?:~|about\s|around\s|approximately\s)\s?", re.IGNORECASE)
_LENGTH_ONLY: Final = re.compile(
    r"(?:\btime\s(?:left\s|remaining\s)?(?:to|until|till|before)|\buntil|\btill|\bbefore)\s"
    r"(?:(?:the|next|your|limit|quota|usage)\s){0,3}$",
    re.IGNORECASE,
)
_UNTIL_THEN: Final = re.compile(
    r"\s(?:left\s|remaining\s|to\sgo\s)?(?:until|till|before)\s(?:(?:the|your|next|limit|quota|usage|rate|window|it|you|can)"
    rf"\s){{0,4}}(?:{_COMES_BACK}|retry|try)\b",
    re.IGNORECASE,
)
_BARE_SECONDS: Final = re.compile(r"(\d{1,8}(?:\.\d{1,6})?)(?![\w:/%-]|\.\d)")
_EPOCH: Final = re.compile(r"(\d{13}|\d{10})(?:\.\d{1,9})?(?![\w-]|\.\d)")
_PIPE: Final = re.compile(r"\|\s{0,2}(\d{13}|\d{10})(?!\d)")
_PROTO_DELAY: Final = re.compile(r"retry_delay\s{0,4}\{\s{0,8}seconds:\s{0,4}(\d{1,8})")
_CJK: Final = re.compile(r"[\u3400-\u9fff]")
_CJK_LENGTH: Final = re.compile(
    r"(?:约|大约)?\s{0,2}\d[\d.]{0,12}\s{0,2}(?:毫秒|秒|分|小时|个小时|天|日|周|个星期)"
)
_CJK_STAMP: Final = re.compile(
    r"\d{4}[-/.年]\d{1,2}[-/.月]\d{1,2}日?\s{0,2}T?\d{1,2}:\d{2}(?::\d{2})?|[今明][天日]\s?\d{1,2}:\d{2}"
)
_CJK_THEN: Final = re.compile(r"\s{0,2}(?:内|前)?\s{0,2}(?:之?后|以后|再|重置|恢复|刷新|解除|解锁|重试|可)")
_YEAR_MONTH_DAY: Final = str.maketrans({"年": "-", "月": "-", "日": None})
_LONGEST_LENGTH: Final = 48


def in_words(evidence: Evidence, when: When) -> Iterator[Candidate]:
    """Every moment that the words name. Wall times of a Chinese text or vendor are Beijing's (rule U2)."""
    prose = evidence.prose
    chinese = _CJK.search(prose) is not None
    if chinese or evidence.vendor in IN_BEIJING:
        when = replace(when, local=zone_named(SHANGHAI))
    for found in _PIPE.finditer(prose):
        if (at := parse_epoch(float(found[1]), now=when.since)) is not None:
            yield _candidate(prose, found.start(), Moment(at, found.end()))
    for found in _PROTO_DELAY.finditer(prose):
        yield _candidate(prose, found.start(), Moment(when.now + float(found[1]), found.end()))
    for cue in _CUE.finditer(prose):
        named = _behind(prose, cue, when)
        if named is not None:
            yield _candidate(prose, cue.start(), named)
    for then in _UNTIL_THEN.finditer(prose):
        if (named := _length_before(prose, then.start(), when)) is not None:
            yield _candidate(prose, max(0, then.start() - _LONGEST_LENGTH), replace(named, end=then.end()))
    if chinese:
        yield from _in_chinese(prose, when)


def _behind(prose: str, cue: re.Match[str], when: When) -> Moment | None:
    """What stands behind a cue. «in» asks for a length first, «at» for a moment, nothing for either."""
    start = _end_of(_GLUE, prose, cue.end())
    ahead = _IN.match(prose, start)
    if ahead is not None and (named := _length_at(prose, ahead.end(), when)) is not None:
        return named
    position = _end_of(_AT, prose, start)
    joined = position > start or cue["until"] is not None
    length_only = not joined and _LENGTH_ONLY.search(prose, max(0, cue.start() - 40), cue.start()) is not None
    if not length_only and (joined or cue["direct"]):
        named = _moment_at(prose, position, when, bare_clock=joined)
        if named is not None:
            return named
    if not joined and ahead is None and (cue["direct"] or cue["length"]):
        named = _length_at(prose, start, when)
        if named is not None and not (
            is_bare_clock(prose, start, named.end) and not (length_only or cue["length"])
        ):
            return named
    return _bare_seconds(prose, cue, ahead, start, when)


def _moment_at(prose: str, position: int, when: When, *, bare_clock: bool) -> Moment | None:
    """A wall time or an epoch. `bare_clock`: `03:20:11` alone is a time of day."""
    clear = _end_of(_ABOUT, prose, position)
    moment = read_moment(prose, clear, now=when.since, local=when.local)
    if moment is not None and (bare_clock or not is_bare_clock(prose, clear, moment.end)):
        return replace(moment, precision="rounded") if clear > position else moment
    epoch = _EPOCH.match(prose, position)
    at = parse_epoch(float(epoch[1]), now=when.since) if epoch is not None else None
    return Moment(at, epoch.end()) if epoch is not None and at is not None else None


def _bare_seconds(
    prose: str, cue: re.Match[str], ahead: re.Match[str] | None, start: int, when: When
) -> Moment | None:
    """`retry-after: 30` and `retry after 30` are seconds, as in the header; a bare number elsewhere is nothing."""
    word = cue.group().lower()
    after = ahead is not None and ahead.group().lower().startswith("after")
    if word != "retry-after" and not (word == "retry" and after):
        return None
    found = _BARE_SECONDS.match(prose, ahead.end() if ahead is not None else start)
    return Moment(when.now + float(found[1]), found.end()) if found is not None else None


def _length_at(prose: str, position: int, when: When) -> Moment | None:
    length = read_length(prose, position)
    if length is None:
        return None
    return Moment(when.now + length.seconds, length.end, "rounded" if length.rounded else "second")


def _length_before(prose: str, end: int, when: When) -> Moment | None:
    """The longest length that ends at `end`, as in `3 hours 20 minutes until reset`."""
    for start in range(max(0, end - _LONGEST_LENGTH), end):
        if (start and (prose[start - 1].isalnum() or prose[start - 1] in "-.:,")) or prose[start].isspace():
            continue
        named = _length_at(prose, start, when)
        if named is not None and not prose[named.end : end].strip():
            return named
    return None


def _in_chinese(prose: str, when: When) -> Iterator[Candidate]:
    """Lengths and wall times stand before what happens then: `5 分钟后重试`, `2026-07-14 20:41:44 重置`."""
    for found in _CJK_LENGTH.finditer(prose):
        named = _length_at(prose, found.start(), when)
        if named is not None and _CJK_THEN.match(prose, named.end):
            yield _candidate(prose, found.start(), named)
    for found in _CJK_STAMP.finditer(prose):
        moment = read_moment(found.group().translate(_YEAR_MONTH_DAY), 0, now=when.since, local=when.local)
        if moment is not None and _CJK_THEN.match(prose, found.end()):
            yield _candidate(prose, found.start(), replace(moment, end=found.end()))


def _candidate(prose: str, start: int, named: Moment) -> Candidate:
    return Candidate(named.at, named.precision, f"text: {prose[start : min(named.end, start + 80)]}")


def _end_of(pattern: re.Pattern[str], text: str, position: int) -> int:
    found = pattern.match(text, position)
    return found.end() if found is not None else position
