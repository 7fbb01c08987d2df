"""Moments in headers and in fields of the body (rules U1, U2).

Retry-After in its forms, the resets of rate-limit windows with their counters, Google's RetryInfo, `resets_at` and
`resets_in_seconds`. A window whose own counter says that something is left does not bind.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from handrail.recovery.moments.durations import LONGEST_S, parse_length
from handrail.recovery.moments.guidance import Candidate, When
from handrail.recovery.moments.wallclock import Precision, parse_epoch, parse_stamp, read_moment
from handrail.recovery.reading.parse import Evidence
from handrail.recovery.reading.vendors import name_set

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

_BACK: Final = (
    r"(?:resets?|renews?|renewal|retry|refresh(?:es)?|unlocks?|replenish(?:es)?|available|allowed|blocked)"
)
_MILLISECONDS = re.compile(rf"(?:\w{{0,24}}{_BACK}\w{{0,16}}|wait\w{{0,8}})(?:ms|millis|milliseconds)")
_MOMENTS = re.compile(
    rf"\w{{0,24}}{_BACK}(?:s|ed|ing)?(?:at|on|in|by|after|until|time|date|datetime|timestamp|delay|epoch)?"
    r"(?:s|sec|secs|seconds|utc)?"
    r"|(?:wait|cooldown)(?:time|period|for|in)?(?:s|sec|secs|seconds)?|(?:seconds|secs|time)(?:until|to|till)reset"
    r"|quotareset(?:delay|timestamp|time|date)|next(?:window|period)(?:at|start)?"
)
_NOT_THEN: Final = re.compile(r"(?:last|previous|prior)\w{0,30}|\w{0,30}(?:count|attempts?|able)")
_USED = name_set("usedpercent usedpercentage")
_LEFT = name_set("remaining remainingrequests remainingtokens")


def in_headers(evidence: Evidence, when: When) -> Iterator[Candidate]:
    """The order to come back, in milliseconds before seconds; then the windows that are used up.

    Beside an order the reset of a bucket does not bind: it tells when the bucket is full again, not when there is
    enough in it to ask (rule U2).
    """
    headers = evidence.headers
    orders = _first(_RETRY_MS, headers, lambda value: _milliseconds(value, when))
    orders = orders or _first(_RETRY, headers, lambda value: any_form(value, when))
    yield from orders
    for name, value in headers.items():
        if orders and _BUCKET.fullmatch(name):
            continue
        if name in ("ratelimit", "x-ratelimit"):
            found = _IETF.search(value)
            written = found["reset"] if found is not None and not int(found["left"]) else ""
        else:
            written = value if _is_used_up(name, headers) else ""
        if (read := any_form(written, when)) is not None:
            yield Candidate(*read, f"header {name}: {written[:40]}", reset=True)


def in_fields(evidence: Evidence, when: When) -> Iterator[Candidate]:
    """Fields of the body that name a moment. A counter in the same object says whether its window is used up."""
    left: dict[int, bool] = {}
    for field in evidence.fields:
        count = _number(field.value) if field.key in _USED or field.key in _LEFT else None
        if count is not None:
            left[field.group] = count < 100 if field.key in _USED else count > 0
    for field in evidence.fields:
        if _NOT_THEN.fullmatch(field.key):
            continue
        if _MILLISECONDS.fullmatch(field.key):
            read = _milliseconds(field.value, when)
        elif _MOMENTS.fullmatch(field.key):
            read = any_form(field.value, when) or _in_words(field.value, when)
        else:
            continue
        if read is not None and not left.get(field.group, False):
            yield Candidate(*read, f"field {field.name}: {field.value[:40]}")


def any_form(value: str, when: When) -> tuple[float, Precision] | None:
    """A moment in any form of a machine: seconds ahead, an epoch in s or ms, `6m0s`, RFC 3339, an HTTP date."""
    if not value:
        return None
    number = _number(value)
    if number is not None:
        at = parse_epoch(number, now=when.since) if number >= 1e9 else _ahead(number, when)
        return None if at is None else (at, "second")
    length = parse_length(value)
    return (when.now + length, "second") if length is not None else parse_stamp(value, now=when.since)


def _in_words(value: str, when: When) -> tuple[float, Precision] | None:
    """A moment as people write it, if the value is nothing else: `Jul 14, 2026 1:13 PM`."""
    value = value.strip()
    moment = read_moment(value, 0, now=when.since, local=when.local)
    whole = moment is not None and not value[moment.end :].strip(" .,)")
    return (moment.at, moment.precision) if moment is not None and whole else None


def _first(
    names: Iterable[str], headers: Mapping[str, str], read: Callable[[str], tuple[float, Precision] | None]
) -> list[Candidate]:
    for name in names:
        value = headers.get(name, "")
        if (found := read(value)) is not None:
            return [Candidate(*found, f"header {name}: {value[:40]}")]
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


def _milliseconds(value: str, when: When) -> tuple[float, Precision] | None:
    number = _number(value)
    at = None if number is None else _ahead(number / 1000, when)
    return None if at is None else (at, "second")


def _ahead(seconds: float, when: When) -> float | None:
    return when.now + seconds if 0 <= seconds <= LONGEST_S else None


_NUMBER = re.compile(r"[+-]?[0-9]{1,20}(?:\.[0-9]{0,20})?")


def _number(value: str) -> float | None:
    value = value.strip().rstrip("%")
    return float(value) if _NUMBER.fullmatch(value) else None
