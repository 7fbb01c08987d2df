"""Zones as people write them beside a time: `(Etc/GMT+5)`, `UTC+2`, `PST`, `Pacific Time`, `Berlin time`.

A zone that nobody knows, or that several countries call the same, makes the time unreadable (rules U1, U2).
"""

from __future__ import annotations

import re
from datetime import UTC, timedelta, timezone, tzinfo
from functools import cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

SHANGHAI: Final = "Asia/Shanghai"

_OFFSETS: Final[dict[str, float]] = {
    "Z": 0, "UTC": 0, "GMT": 0, "WET": 0, "WEST": 1, "BST": 1, "CET": 1, "CEST": 2, "EET": 2, "EEST": 3, "MSK": 3,
    "TRT": 3, "SAST": 2, "EAT": 3, "PKT": 5, "NPT": 5.75, "ICT": 7, "WIB": 7, "WITA": 8, "WIT": 9, "PHT": 8, "MYT": 8,
    "SGT": 8, "HKT": 8, "AWST": 8, "JST": 9, "KST": 9, "ACST": 9.5, "ACDT": 10.5, "AEST": 10, "AEDT": 11, "NZST": 12,
    "NZDT": 13, "BRT": -3, "ART": -3, "NST": -3.5, "NDT": -2.5, "ADT": -3, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5,
    "MST": -7, "MDT": -6, "PST": -8, "PDT": -7, "AKST": -9, "AKDT": -8, "HST": -10,
}  # fmt: skip
"""Abbreviations that mean one offset. IST (India, Israel, Ireland), AST and GST do not, and are unreadable."""
_NAMES: Final = {
    "ET": "America/New_York", "CT": "America/Chicago", "MT": "America/Denver", "PT": "America/Los_Angeles",
    "eastern": "America/New_York", "central": "America/Chicago", "mountain": "America/Denver",
    "pacific": "America/Los_Angeles", "central european": "Europe/Berlin", "eastern european": "Europe/Athens",
    "western european": "Europe/Lisbon", "british": "Europe/London", "indian": "Asia/Kolkata",
    "india": "Asia/Kolkata", "japan": "Asia/Tokyo", "korea": "Asia/Seoul", "china": SHANGHAI, "beijing": SHANGHAI,
    "北京时间": SHANGHAI, "coordinated universal": "UTC", "greenwich mean": "UTC",
}  # fmt: skip

_OPEN: Final = re.compile(r"\s{0,2}[(（\[]?\s?(?:in\s)?")
_OFFSET: Final = re.compile(
    r"(?:UTC|GMT)?\s?(?P<sign>[+\-\u2212])(?P<hours>\d{1,2})(?::?(?P<minutes>\d{2}))?(?![\d:ap])",
    re.IGNORECASE,
)
_NAME: Final = re.compile(r"[A-Z][A-Za-z_]{1,20}(?:/[A-Za-z0-9_+-]{1,30}){1,2}")
_SHORT: Final = re.compile(
    r"(?:(?P<upper>Z|[A-Z]{2,5})|(?P<lower>utc|gmt|[ecmp][sd]t|cet|jst|kst))(?:\s[Tt]ime)?(?![A-Za-z/])"
)
_WORDED: Final = re.compile(
    r"(?P<words>(?:[A-Za-z]{3,14}\s){0,2}[A-Za-z]{3,14})\s[Tt]ime\b"
    r"|(?P<plain>Pacific|Mountain|Central|Eastern)(?:\s(?:Standard|Daylight))?(?![A-Za-z])"
    r"|(?P<chinese>北京时间)"
)
_KIND: Final = re.compile(r"\s(?:standard|daylight|summer)$")
_LOCAL: Final = re.compile(
    r"(?:your\s)?(?:local|browser|system)(?:\stime)?\b|your\stime(?:\s?zone)?\b", re.IGNORECASE
)
_IN_BRACKETS: Final = re.compile(
    r"\s{0,2}[(（\[]\s?(?P<words>[A-Z][A-Za-z.]{1,14}(?:[\s_][A-Z][a-z]{1,14}){0,2})\s?[)）\]]"
)


def zone_named(name: str) -> tzinfo | None:
    """The IANA zone of that name (`Etc/GMT+5` is UTC−5, as POSIX has it), or None."""
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        return None


def read_zone(text: str, position: int, local: tzinfo | None) -> tuple[tzinfo | None, int] | None:
    """The zone that is written at `position`, and where it ends; None where none is written.

    `local` stands for a zone that is called local. Raises ValueError for a zone that nobody knows.
    """
    opened = _OPEN.match(text, position)
    begin = opened.end() if opened is not None else position
    for pattern, zone_of in ((_OFFSET, _of_offset), (_NAME, _of_name)):
        if (found := pattern.match(text, begin)) is not None:
            return zone_of(found), _closed(text, found.end())
    if (found := _LOCAL.match(text, begin)) is not None:
        return local, _closed(text, found.end())
    if (found := _WORDED.match(text, begin)) is not None and (worded := _of_words(found)) is not None:
        return worded, _closed(text, found.end())
    if (found := _SHORT.match(text, begin)) is not None and (short := _of_short(found, local)) is not None:
        return short, _closed(text, found.end())
    if (found := _IN_BRACKETS.match(text, position)) is not None:
        return _of_city(found["words"]), found.end()
    return None


def _closed(text: str, end: int) -> int:
    return end + text.startswith((")", "）", "]"), end)


def _of_offset(found: re.Match[str]) -> tzinfo:
    ahead = timedelta(hours=int(found["hours"]), minutes=int(found["minutes"] or 0))
    return timezone(ahead if found["sign"] == "+" else -ahead)


def _of_name(found: re.Match[str]) -> tzinfo:
    return _known(zone_named(found.group()), found.group())


def _of_words(found: re.Match[str]) -> tzinfo | None:
    """`Pacific Time`, `UTC time`, `Berlin time`. None for words that name no place (`at 3pm the next time`)."""
    if found["chinese"]:
        return _known(zone_named(SHANGHAI), SHANGHAI)
    written = found["words"] or found["plain"]
    words = _KIND.sub("", written.lower())
    if (name := _NAMES.get(words)) is not None:
        return _known(zone_named(name), name)
    if words.upper() in _OFFSETS:
        return timezone(timedelta(hours=_OFFSETS[words.upper()]))
    return _of_city(words) if written[0].isupper() or words.startswith("server") else None


def _of_city(words: str) -> tzinfo:
    name = _cities().get(re.sub(r"[\s_.]", "", words.lower()))
    return _known(zone_named(name) if name is not None else None, words)


@cache
def _cities() -> dict[str, str]:
    """IANA's names by their city: `newyork` is America/New_York."""
    return {name.rsplit("/", 1)[-1].replace("_", "").lower(): name for name in sorted(available_timezones())}


def _of_short(found: re.Match[str], local: tzinfo | None) -> tzinfo | None:
    """An abbreviation. None for capitals that are no zone; raises ValueError for those that look like one."""
    short = (found["upper"] or found["lower"]).upper()
    if short == "CST" and str(local) == SHANGHAI:
        return local  # where the rest is Chinese, it is China's
    if short in _OFFSETS:
        offset = _OFFSETS[short]
        return timezone(timedelta(hours=offset)) if offset else UTC
    if short in _NAMES:
        return _known(zone_named(_NAMES[short]), short)
    if len(short) >= 3 and short.endswith("T"):
        raise ValueError(f"no such zone: {short}")
    return None


def _known(zone: tzinfo | None, name: str) -> tzinfo:
    if zone is None:
        raise ValueError(f"no such zone: {name}")
    return zone
