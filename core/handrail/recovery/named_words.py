"""Moments in words (rules U1, U2): behind «try again», «resets», «wait» and their like, in English and Chinese.

A cue, a little glue, then a length, a moment or an epoch. What stands elsewhere (`5-hour limit`, `timed out after
600 s`) is no guidance.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import tzinfo

from handrail.recovery.durations import read_length
from handrail.recovery.evidence import Evidence
from handrail.recovery.vendors import IN_BEIJING
from handrail.recovery.wallclock import SHANGHAI, Candidate, Named, parse_epoch, read_moment, zone_named

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
