"""Durations as people write them."""

from __future__ import annotations

import re
from typing import Final

_PARTS: Final = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?")


def parse_duration(text: str) -> float:
    """Seconds from `30m`, `6h`, `1h30m`, `45s`, `2d`, or a plain number of seconds. Raises ValueError."""
    word = text.strip().lower()
    if re.fullmatch(r"\d+(\.\d+)?", word):
        return float(word)
    match = _PARTS.fullmatch(word)
    if not word or match is None:
        raise ValueError(f"'{text}' is no duration: write 30m, 6h, 1h30m, or a number of seconds")
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
