"""Moments as a person types them to postpone a wait: `+15m`, `2h`, `14:30` (rule U8)."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final

from handrail.policy import parse_duration

HINT: Final = "+15m, 2h or 14:30"
_CLOCK: Final = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?", re.ASCII)
_LONGEST_S: Final = 366 * 86_400.0


def moment(text: str, *, now: float, until: float) -> float:
    """The moment that `text` names, in seconds since the epoch; `until` is when the wait ends today.

    `+15m` is that much after `until`, `2h` that much after `now`, and `14:30` the next such time on this machine's
    clock. A plain number counts minutes. Raises ValueError for anything else, and for what is not in the future.
    """
    word = text.strip().lower()
    sign, amount = (word[0], word[1:].strip()) if word[:1] == "+" else ("", word)
    clock = _CLOCK.fullmatch(amount)
    if clock is not None and not sign:
        found = _next(clock, now)
    else:
        seconds = _seconds(amount)
        found = (until if sign else now) + seconds
    if not now < found <= now + _LONGEST_S:
        raise ValueError(f"'{text.strip()}' is not a moment in the coming year: write {HINT}")
    return found


def _seconds(amount: str) -> float:
    try:
        return float(amount) * 60.0 if amount.isdigit() else parse_duration(amount)
    except ValueError:
        raise ValueError(f"'{amount}' is not a time or a duration: write {HINT}") from None


def _next(clock: re.Match[str], now: float) -> float:
    hour, minute, second = (int(part or 0) for part in clock.groups())
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(f"'{clock.group()}' is not a time of day: write {HINT}")
    today = datetime.fromtimestamp(now).replace(hour=hour, minute=minute, second=second, microsecond=0)
    if today.timestamp() <= now:
        today += timedelta(days=1)
    return today.timestamp()
