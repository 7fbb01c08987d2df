"""Lengths of time as people and machines write them: `1h30m`, `two hours`, `half an hour`, `03:20:11`, `PT3H`.

A length that cannot be read whole is none: nothing is invented (rule U1).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

LONGEST_S: Final = 400 * 86_400.0
"""A length beyond this is absurd: no provider's limit lasts longer (rule U2)."""

_UNITS: Final[dict[str, float]] = {
    **dict.fromkeys(("ms", "msec", "msecs", "millisecond", "milliseconds", "millis", "毫秒"), 0.001),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds", "second(s)", "秒", "秒钟"), 1.0),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes", "minute(s)", "分", "分钟"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours", "hour(s)", "小时", "个小时"), 3600.0),
    **dict.fromkeys(("d", "day", "days", "day(s)", "天", "日"), 86_400.0),
    **dict.fromkeys(("w", "wk", "wks", "week", "weeks", "week(s)", "周", "个星期"), 604_800.0),
}
_ONES: Final = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS: Final = {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
_WORDS: Final[dict[str, float]] = {
    **{word: float(n) for n, word in enumerate(_ONES)},
    **{word: float(n) for word, n in _TENS.items()},
    **{f"{ten} {_ONES[n]}": float(tens + n) for ten, tens in _TENS.items() for n in range(1, 10)},
    **dict.fromkeys(("half", "half a", "half an", "a half", "½"), 0.5),
    **dict.fromkeys(("a quarter", "quarter", "a quarter of a", "a quarter of an", "quarter of an"), 0.25),
    **dict.fromkeys(("three quarters of an", "three quarters of a"), 0.75),
    **dict.fromkeys(("a couple of", "a couple"), 2.0),
}
_ROUND: Final = ("a", "an", "half", "quarter", "couple", "½")
"""Number words of someone who rounds."""


def _any_of(words: object) -> str:
    return "|".join(re.escape(word).replace(r"\ ", r"[\s-]") for word in sorted(words, key=len, reverse=True))  # type: ignore[call-overload]


# Lengths of digits and gaps are bounded, so that no text makes the match slow.
_NUMBER: Final = (
    rf"(?P<digits>\d{{1,12}}(?:,\d{{3}}){{0,3}}(?:\.\d{{1,12}})?)(?P<half>\s?½)?"
    rf"|(?P<word>{_any_of(_WORDS)}|an?)(?P<and_half>\sand\sa\shalf)?(?=[\s-]|$)"
)
_PART: Final = re.compile(
    rf"\s{{0,3}}(?:{_NUMBER})[\s-]{{0,3}}(?P<unit>{_any_of(_UNITS)})(?![A-Za-z(_])(?P<unit_half>\sand\sa\shalf\b)?",
    re.IGNORECASE,
)
_RANGE: Final = re.compile(r"\d{1,6}(?:\.\d{1,3})?\s{0,2}(?:-|–|to)\s{0,2}(?=\d)")
_COLONS: Final = re.compile(
    r"(?:(\d{1,2})\s?(?:d|days?)[,\s]{1,3})?(\d{1,3}):(\d{2}):(\d{2})(?:\.\d{1,6})?(?![\d:])"
)
_ISO: Final = re.compile(
    r"P(?:(\d{1,3})W)?(?:(\d{1,3})D)?(?:T(?:(\d{1,4})H)?(?:(\d{1,5})M)?(?:(\d{1,7}(?:\.\d{1,6})?)S)?)?(?![A-Za-z\d])"
)
_JOIN: Final = re.compile(r"\s{0,3}(?:,|and\b|,\s{0,3}and\b|&)", re.IGNORECASE)
_ABOUT: Final = re.compile(
    r"\s{0,3}(?:~|≈|about\b|around\b|approximately\b|approx\.?|roughly\b|nearly\b|almost\b|less than\b|under\b|up to\b"
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
    if (clock := _COLONS.match(text, position)) is not None:
        days, hours, minutes, seconds = (int(part or 0) for part in clock.groups())
        if minutes > 59 or seconds > 59:
            return None
        total = days * 86_400.0 + hours * 3600.0 + minutes * 60 + seconds
        return _sane(total, about is not None, clock.end())
    iso = _ISO.match(text, position)
    if iso is not None and any(iso.groups()):
        weeks, days_, hours_, minutes_, seconds_ = (float(part or 0) for part in iso.groups())
        total = weeks * 604_800 + days_ * 86_400 + hours_ * 3600 + minutes_ * 60 + seconds_
        return _sane(total, about is not None, iso.end())
    return _in_parts(text, position, vague=about is not None)


def _in_parts(text: str, position: int, *, vague: bool) -> Length | None:
    """`2 days, 3 hours and 5 minutes`: parts whose units fall."""
    total, last_unit, end = 0.0, float("inf"), position
    while (part := _PART.match(text, position)) is not None:
        unit = _UNITS[part["unit"].lower()]
        if unit >= last_unit:
            break  # «1 min 2 min» is two lengths, not one
        number, round_ = _number(part)
        if part["unit_half"]:
            number, round_ = number + 0.5, True
        vague = vague or round_
        total, last_unit, end = total + number * unit, unit, part.end()
        join = _JOIN.match(text, end)
        position = join.end() if join else end
    return _sane(total, vague, end) if last_unit != float("inf") else None


def _number(part: re.Match[str]) -> tuple[float, bool]:
    """The number of a part, and whether its writer rounded."""
    if part["digits"] is not None:
        return float(part["digits"].replace(",", "")) + (0.5 if part["half"] else 0.0), False
    word = re.sub(r"[\s-]", " ", part["word"].lower())
    value = _WORDS.get(word, 1.0)
    return value + (0.5 if part["and_half"] else 0.0), any(w in _ROUND for w in word.split())


def parse_length(text: str) -> float | None:
    """Seconds of a text that is nothing but a length (`6m0s`, `34.07s`), or None."""
    text = text.strip()
    length = read_length(text)
    return length.seconds if length is not None and length.end == len(text) else None


def _sane(seconds: float, rounded: bool, end: int) -> Length | None:
    return Length(seconds, rounded, end) if 0 <= seconds <= LONGEST_S else None
