"""Moments as people write them: `3pm (Etc/GMT+5)`, `9:00 AM on July 25 (UTC)`, `Thu 9:00`, `2026-08-01 at 00:00 UTC`.

A day, a weekday and a zone belong to the clock time that they stand beside, on either side. A clock time without a zone
is local; past means tomorrow, unless under two minutes ago; an hour that daylight saving skips means the later instant
(rule U2). Pure grammar: `now` and the local zone are passed in.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from email.utils import parsedate_to_datetime
from typing import Final, Literal, TypeAlias

from handrail.recovery.moments.durations import LONGEST_S
from handrail.recovery.moments.zones import read_zone

Precision: TypeAlias = Literal["second", "minute", "rounded"]
"""How exactly a moment is named: to the second, to the minute, or rounded by its writer."""

JUST_PAST_S: Final = 120.0
"""A clock time that is past by less than this is now; by more, it means tomorrow (rule U2)."""

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MONTH: Final = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_NTH: Final = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?(?![\d:]|\s?[ap]\.?m\b)"
_YEAR: Final = r"(?:,?[\s/-]{0,2}(?P<year>\d{4})(?!\d|:))?"
_DATES: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})(?!\d)",
        rf"{_MONTH}[\s-]{{1,2}}(?:the\s)?{_NTH}{_YEAR}",
        rf"{_NTH}(?:[\s/-]|\sof\s){{1,2}}{_MONTH}{_YEAR}",
        r"(?P<first>\d{1,2})(?P<mark>[/.-])(?P<second_>\d{1,2})(?P=mark)(?P<year>\d{4})(?!\d)",
        r"(?P<first>\d{1,2})(?P<mark>/)(?P<second_>\d{1,2})(?![\d/])",
        r"(?:the\s)?(?P<only>\d{1,2})(?:st|nd|rd|th)\b",
    )
)
_WEEKDAY: Final = re.compile(
    r"(?:this\s|coming\s|every\s)?"
    r"(?P<weekday>mon|tue|wed|thu|fri|sat|sun)(?:day|sday|nesday|rsday|urday|s|r|rs|nes|ur)?s?\b\.?",
    re.IGNORECASE,
)
_AHEAD: Final = re.compile(
    r"(?:(?P<later>(?:the\s)?day after tomorrow|后天)|(?P<next>tomorrow|明天|明日)|today|tonight"
    r"|this\s(?:evening|morning|afternoon)|今天|今日)(?![A-Za-z])",
    re.IGNORECASE,
)
_CLOCK: Final = re.compile(
    r"(?:(?P<hour>\d{1,2})(?:[:.](?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,]\d{1,9})?)?)?\s{0,2}(?P<half>[ap])\.?m\b\.?"
    r"|(?P<hour24>[01]?\d|2[0-4]):(?P<minute24>\d{2})(?::(?P<second24>\d{2})(?:[.,]\d{1,9})?)?(?![\d:])"
    r"|(?P<hour4>[01]\d|2[0-3])(?P<minute4>[0-5]\d)(?=\s?(?:UTC|GMT|Z)\b)"
    r"|(?:12\s)?(?P<named>midnight|noon)\b)",
    re.IGNORECASE,
)
_GAP: Final = re.compile(
    r"[\s,]{0,3}(?:(?:at|on|from|of|by)\b|@|·|∙|-|T(?=\d)|(?<=\d)日)?[\s,]{0,3}(?:(?:the|around|about)\s)?",
    re.IGNORECASE,
)
_ZONE_FIRST: Final = re.compile(r"[(（]?(?:(?:UTC|GMT)(?:[+-]\d{1,2}(?::\d{2})?)?\b|[A-Z][a-z]+/[A-Z])")
_MAIL_DATE: Final = re.compile(
    r"(?:[A-Za-z]{3,9},?\s)?\d{1,2}[\s-][A-Za-z]{3}[\s-]\d{2,4}\s\d{1,2}:\d{2}(?::\d{2})?(?:\s(?:[A-Z]{1,4}|[+-]\d{4}))?"
)
_UNREAD: Final = re.compile(
    r"[\s,]{0,3}(?:on\s(?:the\s)?(?:\d|[0-9]{1,2}/)|(?:on\s)?(?:the\s)?(?:next|following)\s(?:week|month|year|day|mon|tue|wed"
    r"|thu|fri|sat|sun)|(?:in|after)\s(?:\d|an?\s|one|two|three|four|five)[\w\s]{0,12}(?:day|week|month|hour))",
    re.IGNORECASE,
)
"""A day beside a clock time that cannot be read: then neither can the time (rule U1)."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment that a text names, in seconds since the epoch, and where it ends in the text. It may be just past."""

    at: float
    end: int
    precision: Precision = "second"


@dataclass(slots=True)
class _Parts:
    """What stands side by side: each kind at most once."""

    date: re.Match[str] | None = None
    weekday: re.Match[str] | None = None
    ahead: re.Match[str] | None = None
    clock: re.Match[str] | None = None
    zone: tzinfo | None = None
    zoned: bool = False
    end: int = 0


def read_moment(text: str, start: int, *, now: float, local: tzinfo | None) -> Moment | None:
    """The moment that is named exactly at `start` of `text`, or None where nothing readable stands there."""
    try:
        parts = _take(text, start, local)
        if _UNREAD.match(text, parts.end) is not None:
            return None
        return _of_parts(parts, now, parts.zone if parts.zoned else local)
    except (ValueError, OverflowError, OSError):
        return None  # a 31 June, a year 0, a zone that nobody knows, a moment outside the machine's range


def is_bare_clock(text: str, start: int, end: int) -> bool:
    """Whether `03:20:11` stands there and nothing with it: it may be a time of day or a length."""
    return re.fullmatch(r"\d{1,2}:\d{2}:\d{2}", text[start:end].strip()) is not None


def parse_stamp(text: str, *, now: float) -> tuple[float, Precision] | None:
    """A machine's stamp: RFC 3339 or an HTTP date, UTC where it names no zone. None where stale or absurd."""
    text = text.strip()[:64]
    precision: Precision = "second"
    try:
        moment = datetime.fromisoformat(text)
        precision = (
            "second"
            if text.count(":") - text[19:].count(":") >= 2
            else "minute"
            if ":" in text
            else "rounded"
        )
    except ValueError:
        if _MAIL_DATE.fullmatch(text) is None:
            return None  # `Jul 25, 2026 1:30 PM`: the parser for mail would overlook the PM
        try:
            moment = parsedate_to_datetime(text)
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
    try:
        at = not_stale((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp(), now)
    except (ValueError, OverflowError, OSError):
        return None
    return None if at is None else (at, precision)


def parse_epoch(value: float, *, now: float) -> float | None:
    """An epoch in seconds or in milliseconds, or None where it is stale or absurd (rule U2)."""
    return not_stale(value / 1000 if value >= 1e11 else value, now)


def not_stale(at: float, now: float) -> float | None:
    """`at`, or None when it is longer past than a clock may be wrong, or absurdly far."""
    return at if now - JUST_PAST_S < at <= now + LONGEST_S else None


# The grammar --------------------------------------------------------------------------------------------------


def _take(text: str, start: int, local: tzinfo | None) -> _Parts:
    """Everything that stands side by side from `start`. Raises ValueError for a zone that nobody knows."""
    parts = _Parts(end=start)
    position = start
    while (end := _next_part(text, position, parts, local)) is not None:
        parts.end = end
        zone = None if parts.zoned or parts.clock is None else read_zone(text, end, local)
        if zone is not None:
            parts.zone, parts.end = zone
            parts.zoned = True
        gap = _GAP.match(text, parts.end)
        position = gap.end() if gap is not None else parts.end
    return parts


def _next_part(text: str, position: int, parts: _Parts, local: tzinfo | None) -> int | None:
    """Where the next part ends, after it was noted; None where none stands there."""
    if not parts.zoned and parts.clock is None and _ZONE_FIRST.match(text, position):
        zone = read_zone(text, position, local)
        if zone is not None:
            parts.zone, parts.zoned = zone[0], True
            return zone[1]
    for name, pattern in _kinds():
        if getattr(parts, name) is None and (found := pattern.match(text, position)) is not None:
            setattr(parts, name, found)
            return found.end()
    return None


def _kinds() -> Iterator[tuple[str, re.Pattern[str]]]:
    yield from (("date", pattern) for pattern in _DATES[:4])
    yield "clock", _CLOCK
    yield from (("date", pattern) for pattern in _DATES[4:])
    yield "ahead", _AHEAD
    yield "weekday", _WEEKDAY


def _of_parts(parts: _Parts, now: float, zone: tzinfo | None) -> Moment | None:
    if parts.clock is None and not _is_whole_date(parts.date):
        return None  # a day of the week or «the 3rd» alone may be anything
    at = _time_of(parts.clock) if parts.clock is not None else time(0)  # only a day: its beginning
    today = datetime.fromtimestamp(now, zone).date()
    if parts.date is not None:
        moment = _on_date(parts.date, parts, at, zone, now)
        if moment is not None and parts.clock is not None and parts.clock["hour24"] == "24":
            moment += 86_400  # 24:00 is the end of the day
    elif parts.ahead is not None:
        days = 2 if parts.ahead["later"] else 1 if parts.ahead["next"] else 0
        moment = not_stale(_instant(today + timedelta(days=days), at, zone), now)
    elif parts.weekday is not None:
        index = _DAYS.index(parts.weekday["weekday"].lower())
        moment = _next(today + timedelta(days=(index - today.weekday()) % 7), at, zone, now, step=7)
    else:
        moment = _next(today, at, zone, now, step=1)
    return None if moment is None else Moment(moment, parts.end, _precision(parts.clock))


def _is_whole_date(found: re.Match[str] | None) -> bool:
    """Whether a date says more than `the 3rd` or `3/5`, so that it stands for itself."""
    return found is not None and ("month" in found.re.groupindex or bool(found.groupdict().get("year")))


def _precision(clock: re.Match[str] | None) -> Precision:
    if clock is None:
        return "rounded"
    return "second" if clock["second"] or clock["second24"] else "minute"


def _next(day: date, at: time, zone: tzinfo | None, now: float, step: int) -> float:
    """The first such moment that is not past, days counted in `step`s; one just past counts."""
    moment = _instant(day, at, zone)
    return moment if moment > now - JUST_PAST_S else _instant(day + timedelta(days=step), at, zone)


def _on_date(found: re.Match[str], parts: _Parts, at: time, zone: tzinfo | None, now: float) -> float | None:
    named = found.groupdict()
    if named.get("only") is not None:
        return _on_day(int(named["only"]), at, zone, now)
    if named.get("first") is not None:
        month, day = _month_and_day(named, american=parts.clock is not None and bool(parts.clock["half"]))
    else:
        name = named["month"].lower()[:3]
        month, day = _MONTHS.index(name) + 1 if name in _MONTHS else int(name), int(named["day"])
    if named.get("year"):
        moment = _instant(date(int(named["year"]), month, day), at, zone)
    else:
        moment = _nearest_year(month, day, at, zone, now)
    return not_stale(moment, now)


def _month_and_day(named: dict[str, str], *, american: bool) -> tuple[int, int]:
    """`07/25/2026`, `25/07/2026`, `25.07.2026`. Raises ValueError where either number may be the month.

    Month first is the order of the United States, and only they write am and pm behind such a date.
    """
    first, second = int(named["first"]), int(named["second_"])
    if named["mark"] == ".":
        return second, first
    if first > 12 or first == second:
        return second, first
    if second > 12 or (american and named["mark"] == "/"):
        return first, second
    raise ValueError(f"{first} or {second} may be the month")


def _on_day(day: int, at: time, zone: tzinfo | None, now: float) -> float | None:
    """The next 25th: of this month, or of the first one after it that has such a day."""
    first = datetime.fromtimestamp(now, zone).date().replace(day=1)
    for _ in range(3):
        if day <= calendar.monthrange(first.year, first.month)[1]:
            moment = _instant(first.replace(day=day), at, zone)
            if moment > now - JUST_PAST_S:
                return moment
        first = (first + timedelta(days=31)).replace(day=1)
    return None


def _nearest_year(month: int, day: int, at: time, zone: tzinfo | None, now: float) -> float:
    """A date without a year is in the nearest one: in December, January is next year and November is past."""
    this = datetime.fromtimestamp(now, zone).year
    years = [year for year in (this - 1, this, this + 1) if day <= calendar.monthrange(year, month)[1]]
    moments = [_instant(date(year, month, day), at, zone) for year in years]
    return min(moments, key=lambda moment: abs(moment - now))


def _time_of(found: re.Match[str]) -> time:
    """The time of day of a match; raises ValueError for one that does not exist (13pm, 25:00)."""
    if found["named"]:
        return time(12 if found["named"].lower() == "noon" else 0)
    if found["hour4"] is not None:
        return time(int(found["hour4"]), int(found["minute4"]))
    if found["hour24"] is not None:
        return time(int(found["hour24"]) % 24, int(found["minute24"]), int(found["second24"] or 0))
    hour, half = int(found["hour"]), found["half"].lower()
    if not 1 <= hour <= 12:
        raise ValueError(f"no such hour: {hour}{half}m")
    hour = hour % 12 + (12 if half == "p" else 0)
    return time(hour, int(found["minute"] or 0), int(found["second"] or 0))


def _instant(day: date, at: time, zone: tzinfo | None) -> float:
    """Seconds since the epoch of a wall time.

    fold=0 reads an hour that daylight saving skips with the offset from before, which is the later instant
    (rule U2), and one that comes twice as its first coming. `zone` None is the machine's own.
    """
    return datetime.combine(day, at, zone).timestamp()
