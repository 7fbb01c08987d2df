"""Moments as people write them: `3pm (Etc/GMT+5)`, `Jul 15 at 12am`, `2026-08-01 at 00:00 UTC`.

Rule U2: a clock time without a zone is local; past means tomorrow, unless under two minutes ago; an hour that
daylight saving skips means the later instant. Pure grammar: `now` and the local zone are handed in.
"""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from email.utils import parsedate_to_datetime
from zoneinfo import ZoneInfo

LONGEST_S = 400 * 86_400.0
"""A length beyond this is absurd: no provider's limit lasts longer (rule U2)."""

_UNITS: dict[str, float] = {
    **dict.fromkeys(("ms", "msec", "msecs", "millisecond", "milliseconds", "millis", "毫秒"), 0.001),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds", "second(s)", "秒", "秒钟"), 1.0),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes", "minute(s)", "分", "分钟"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours", "hour(s)", "小时", "个小时"), 3600.0),
    **dict.fromkeys(("d", "day", "days", "day(s)", "天", "日"), 86_400.0),
    **dict.fromkeys(("w", "wk", "wks", "week", "weeks", "week(s)", "周", "个星期"), 604_800.0),
}
_UNIT = "|".join(sorted(map(re.escape, _UNITS), key=len, reverse=True))
# Lengths of digits and gaps are bounded, so that no text makes the match slow.
_NUMBER = r"\d{1,12}(?:,\d{3}){0,3}(?:\.\d{1,12})?|an?(?=\s)"
_PART = re.compile(rf"\s{{0,3}}({_NUMBER})[\s-]{{0,3}}({_UNIT})(?![A-Za-z(])", re.IGNORECASE)
_RANGE = re.compile(r"\d{1,6}(?:\.\d{1,3})?\s{0,2}(?:-|–|to)\s{0,2}(?=\d)")
_COLON = re.compile(r"(\d{1,3}):(\d{2}):(\d{2})(?!\d)")
_JOIN = re.compile(r"\s{0,3}(?:,|and\b|,\s{0,3}and\b)", re.IGNORECASE)
_ABOUT = re.compile(
    r"\s{0,3}(?:~|≈|about\b|around\b|approximately\b|approx\.?|roughly\b|less than\b|under\b|up to\b"
    r"|at most\b|大约|大概|约)\s{0,3}",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Length:
    """A length of time that stands in a text: `seconds`, whether the writer rounded it, and where it ends."""

    seconds: float
    rounded: bool
    end: int


def read_length(text: str, start: int = 0) -> Length | None:
    """The length that begins exactly at `start` of `text`, or None. Absurd lengths are None (rule U2)."""
    about = _ABOUT.match(text, start)
    position = about.end() if about else start
    span = _RANGE.match(text, position)
    if span is not None and _PART.match(text, span.end()):
        about, position = span, span.end()  # «5-10 minutes»: the longer one, rounded
    clock = _COLON.match(text, position)
    if clock:
        hours, minutes, seconds = map(int, clock.groups())
        return _sane(hours * 3600.0 + minutes * 60 + seconds, about is not None, clock.end())
    total, last_unit, vague = 0.0, float("inf"), about is not None
    end = position
    while (part := _PART.match(text, position)) is not None:
        number, unit = part.group(1).lower(), _UNITS[part.group(2).lower()]
        if unit >= last_unit:
            break  # «1 min 2 min» is two lengths, not one
        if number.startswith("a"):
            number, vague = "1", True
        total, last_unit = total + float(number.replace(",", "")) * unit, unit
        end = part.end()
        join = _JOIN.match(text, end)
        position = join.end() if join else end
    return _sane(total, vague, end) if last_unit != float("inf") else None


def parse_length(text: str) -> float | None:
    """Seconds of a text that is nothing but a length (`6m0s`, `34.07s`), or None."""
    text = text.strip()
    length = read_length(text)
    return length.seconds if length is not None and length.end == len(text) else None


def _sane(seconds: float, rounded: bool, end: int) -> Length | None:
    return Length(seconds, rounded, end) if 0 <= seconds <= LONGEST_S else None


JUST_PAST_S = 120.0
"""A clock time that is past by less than this is now; by more, it means tomorrow (rule U2)."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MONTH = r"(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec)[a-z]{0,6}\.?"
_NTH = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?(?![\d:])"
_YEAR = r"(?:,?\s{0,2}(?P<year>\d{4})(?!\d|:))?"

_ISO = re.compile(
    r"(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})(?!\d)"
    r"(?:(?:T|\s{0,2}(?:,|at|@)?\s{0,2})(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,]\d{1,9})?)?"
    r"(?:\s?(?P<half>[ap])\.?m\b\.?)?)?",
    re.IGNORECASE,
)
_MONTH_FIRST = re.compile(rf"{_MONTH}\s{{1,2}}{_NTH}{_YEAR}", re.IGNORECASE)
_DAY_FIRST = re.compile(rf"{_NTH}\s{{1,2}}(?:of\s)?{_MONTH}{_YEAR}", re.IGNORECASE)
# Month first is the order of the United States, and only they write am and pm behind such a date.
_SLASHED = re.compile(
    r"(?P<month>\d{1,2})/(?P<day>\d{1,2})/(?P<year>\d{4}),?\s{1,2}(?P<hour>\d{1,2}):(?P<minute>\d{2})"
    r"(?::(?P<second>\d{2}))?\s{0,2}(?P<half>[ap])\.?m\b\.?",
    re.IGNORECASE,
)
_DATES = (_ISO, _MONTH_FIRST, _DAY_FIRST, _SLASHED)
_WEEKDAY = re.compile(
    r"(?P<weekday>mon|tue|wed|thu|fri|sat|sun)(?:day|sday|nesday|rsday|urday|s|r|rs|nes|ur)?\b\.?",
    re.IGNORECASE,
)
_AHEAD = re.compile(r"(?:(?P<next>tomorrow|明天|明日)|today|tonight|今天|今日)(?![A-Za-z])", re.IGNORECASE)
_CLOCK = re.compile(
    r"(?:(?P<hour>\d{1,2})(?::(?P<minute>\d{2})(?::(?P<second>\d{2}))?)?\s{0,2}(?P<half>[ap])\.?m\b\.?"
    r"|(?P<hour24>[01]?\d|2[0-4]):(?P<minute24>\d{2})(?::(?P<second24>\d{2}))?(?!\d)"
    r"|(?P<named>midnight|noon)\b)",
    re.IGNORECASE,
)
_GAP = re.compile(r"[\s,]{0,3}(?:at\b|on\b|@|·|∙|-)?[\s,]{0,3}", re.IGNORECASE)
_BEFORE_ZONE = re.compile(r"\s{0,2}[(（]?\s?")
_OFFSET = re.compile(r"(?:UTC|GMT)?\s?(?P<sign>[+-])(?P<hours>\d{1,2}):?(?P<minutes>\d{2})?(?!\d)")
_NAME = re.compile(r"[A-Z][A-Za-z]{1,20}(?:/[A-Za-z0-9_+-]{1,30}){1,2}")
_SHORT = re.compile(
    r"(Z|UTC|GMT|[ECMP][SD]?T|CES?T|BST|IST|JST|KST|HKT|SGT|AE[SD]T|北京时间"
    r"|(?:Central|Eastern)\sEuropean|Pacific|Mountain|Central|Eastern|Beijing)(?:\s(?:Standard|Daylight|Summer))?(?:\s[Tt]ime)?(?![A-Za-z])"
)

SHANGHAI = "Asia/Shanghai"
_ZONES: dict[str, str | float] = {
    "Z": 0.0, "UTC": 0.0, "GMT": 0.0, "BST": 1.0, "CET": 1.0, "CEST": 2.0, "JST": 9.0, "KST": 9.0, "HKT": 8.0,
    "SGT": 8.0, "AEST": 10.0, "AEDT": 11.0, "EST": -5.0, "EDT": -4.0, "CST": -6.0, "CDT": -5.0, "MST": -7.0,
    "MDT": -6.0, "PST": -8.0, "PDT": -7.0,
    "ET": "America/New_York", "CT": "America/Chicago", "MT": "America/Denver", "PT": "America/Los_Angeles",
    "Eastern": "America/New_York", "Central": "America/Chicago", "Mountain": "America/Denver",
    "Central European": "Europe/Berlin", "Eastern European": "Europe/Athens",
    "Pacific": "America/Los_Angeles", "Beijing": SHANGHAI, "北京时间": SHANGHAI,
}  # fmt: skip
"""Abbreviations that mean one offset. IST (India, Israel, Ireland) does not, and is unreadable."""


@dataclass(frozen=True, slots=True)
class Named:
    """A moment that a text names: seconds since the epoch, never before `now`, and where it ends in the text.
    `rounded`: only a day was named."""

    at: float
    end: int
    rounded: bool = False


@dataclass(frozen=True, slots=True)
class Candidate:
    """A moment found somewhere in a failure, and where. `reset` tells the reset of a rate limit's window from an
    order to come back: it counts only where a limit was hit."""

    at: float
    rounded: bool
    source: str
    reset: bool = False


def zone_named(name: str) -> tzinfo | None:
    """The IANA zone of that name (`Etc/GMT+5` is UTC−5, as POSIX has it), or None."""
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        return None


def read_moment(text: str, start: int, *, now: float, local: tzinfo | None) -> Named | None:
    """The moment that is named exactly at `start` of `text`, or None where nothing readable stands there."""
    try:
        return _read(text, start, now, local)
    except (ValueError, OverflowError, OSError):
        return None  # a 31 June, a year 0, a moment outside the machine's range


def parse_stamp(text: str, *, now: float) -> float | None:
    """A machine's stamp: RFC 3339 or an HTTP date, UTC where it names no zone. None where stale or absurd."""
    text = text.strip()[:64]
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        try:
            moment = parsedate_to_datetime(text)
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
    try:
        return not_stale((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp(), now)
    except (ValueError, OverflowError, OSError):
        return None


def parse_epoch(value: float, *, now: float) -> float | None:
    """An epoch in seconds or in milliseconds, or None where it is stale or absurd (rule U2)."""
    return not_stale(value / 1000 if value >= 1e11 else value, now)


def not_stale(at: float, now: float) -> float | None:
    """`at`, but not before `now`; None when it is longer past than a clock may be wrong, or absurdly far."""
    if not now - JUST_PAST_S < at <= now + LONGEST_S:
        return None
    return max(at, now)


def _read(text: str, start: int, now: float, local: tzinfo | None) -> Named | None:
    ahead = _AHEAD.match(text, start)
    weekday = _WEEKDAY.match(text, start) if ahead is None else None
    first = ahead or weekday
    position = _skip_gap(text, first.end()) if first is not None else start
    for pattern in _DATES:
        found = pattern.match(text, position)
        if found is not None:
            return _on_date(text, found, now, local)
    clock = _CLOCK.match(text, position)
    if clock is None:
        return None
    zone, end = _zone_at(text, clock.end(), local)
    at, today = _clock_time(clock), datetime.fromtimestamp(now, zone).date()
    if ahead is not None:
        day = today + timedelta(days=1 if ahead["next"] else 0)
        return _named(_instant(day, at, zone), now, end)
    if weekday is None:
        return Named(_next(today, at, zone, now, step=1), end)
    index = _DAYS.index(weekday["weekday"].lower())
    return Named(_next(today + timedelta(days=(index - today.weekday()) % 7), at, zone, now, step=7), end)


def _next(day: date, at: time, zone: tzinfo | None, now: float, step: int) -> float:
    """The first such moment that is not past, days counted in `step`s; one just past is now."""
    moment = _instant(day, at, zone)
    if moment <= now - JUST_PAST_S:
        moment = _instant(day + timedelta(days=step), at, zone)
    return max(moment, now)


def _on_date(text: str, found: re.Match[str], now: float, local: tzinfo | None) -> Named | None:
    parts = found.groupdict()
    clock = found if parts.get("hour") is not None else _CLOCK.match(text, _skip_gap(text, found.end()))
    zone, end = _zone_at(text, (clock or found).end(), local)
    at = _clock_time(clock) if clock is not None else time(0)  # only a day: its first moment
    name = parts["month"].lower()[:3]
    month = _MONTHS.index(name) + 1 if name in _MONTHS else int(name)
    day = int(parts["day"])
    if parts.get("year"):
        moment = _instant(date(int(parts["year"]), month, day), at, zone)
    else:
        moment = _nearest_year(month, day, at, zone, now)
    return _named(moment, now, end, rounded=clock is None)


def _nearest_year(month: int, day: int, at: time, zone: tzinfo | None, now: float) -> float:
    """A date without a year is in the nearest one: in December, January is next year and November is past."""
    this = datetime.fromtimestamp(now, zone).year
    last_day = calendar.monthrange
    years = [year for year in (this - 1, this, this + 1) if day <= last_day(year, month)[1]]
    moments = [_instant(date(year, month, day), at, zone) for year in years]
    return min(moments, key=lambda moment: abs(moment - now))


def _skip_gap(text: str, position: int) -> int:
    gap = _GAP.match(text, position)
    return gap.end() if gap is not None else position


def _named(at: float, now: float, end: int, rounded: bool = False) -> Named | None:
    moment = not_stale(at, now)
    return None if moment is None else Named(moment, end, rounded)


def _clock_time(found: re.Match[str]) -> time:
    """The time of day of a match; raises ValueError for one that does not exist (13pm, 25:00)."""
    parts = found.groupdict()
    if parts.get("named"):
        return time(12 if parts["named"].lower() == "noon" else 0)
    if parts.get("hour24") is not None:
        hour, minute, second = parts["hour24"], parts["minute24"], parts["second24"]
        return time(int(hour) % 24, int(minute), int(second or 0))
    hour, half = int(parts["hour"]), parts.get("half")
    if half is not None:
        if not 1 <= hour <= 12:
            raise ValueError(f"no such hour: {hour}{half}m")
        hour = hour % 12 + (12 if half.lower() == "p" else 0)
    return time(hour, int(parts["minute"] or 0), int(parts["second"] or 0))


def _instant(day: date, at: time, zone: tzinfo | None) -> float:
    """Seconds since the epoch of a wall time.

    fold=0 reads an hour that daylight saving skips with the offset from before, which is the later instant
    (rule U2), and one that comes twice as its first coming. `zone` None is the machine's own.
    """
    return datetime.combine(day, at, zone).timestamp()


def _zone_at(text: str, position: int, local: tzinfo | None) -> tuple[tzinfo | None, int]:
    """The zone written behind a time, and where the whole ends; `local` where none is written.

    Raises ValueError for a zone that nobody knows: the moment is unreadable then (rule U2).
    """
    start = _BEFORE_ZONE.match(text, position)
    begin = start.end() if start is not None else position
    for pattern, zone_of in ((_OFFSET, _zone_of_offset), (_NAME, _zone_of_name), (_SHORT, _zone_of_short)):
        found = pattern.match(text, begin)
        if found is not None:
            if found.group() == "CST" and str(local) == SHANGHAI:
                return local, found.end()  # where the rest is Chinese, it is China's
            return zone_of(found), found.end() + text.startswith((")", "）"), found.end())
    return local, position


def _zone_of_offset(found: re.Match[str]) -> tzinfo:
    ahead = timedelta(hours=int(found["hours"]), minutes=int(found["minutes"] or 0))
    return timezone(ahead if found["sign"] == "+" else -ahead)


def _zone_of_name(found: re.Match[str]) -> tzinfo:
    zone = zone_named(found.group())
    if zone is None:
        raise ValueError(f"no such zone: {found.group()}")
    return zone


def _zone_of_short(found: re.Match[str]) -> tzinfo:
    known = _ZONES.get(found[1])
    zone = zone_named(known) if isinstance(known, str) else None
    if known is None or (isinstance(known, str) and zone is None):
        raise ValueError(f"no such zone: {found[1]}")
    return zone or timezone(timedelta(hours=float(known)))
