"""Lengths of time as people and servers write them: `~42 min`, `18h31m10s`, `4 days 20 hours 9 minutes`, `350ms`.

Pure grammar (rule U1): where a length stands in a sentence, and what it means there, is decided by `guidance`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

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
