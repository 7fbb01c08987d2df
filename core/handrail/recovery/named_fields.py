"""Moments in headers and in fields of the body (rules U1, U2).

Retry-After in its forms, the resets of rate-limit windows with their counters, Google's RetryInfo, `resets_at` and
`resets_in_seconds`. A window whose own counter says that something is left does not bind.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from handrail.recovery.durations import LONGEST_S, parse_length
from handrail.recovery.evidence import Evidence
from handrail.recovery.vendors import name_set
from handrail.recovery.wallclock import Candidate, parse_epoch, parse_stamp

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
