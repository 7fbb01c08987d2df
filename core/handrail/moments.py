"""Moments on a wire: seconds since the epoch to RFC 3339 in UTC and back."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any


def to_rfc3339(moment: float) -> str:
    """`2026-07-14T10:00:00.000Z`: UTC, milliseconds."""
    stamp = datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds")
    return stamp.replace("+00:00", "Z")


def from_rfc3339(value: Any) -> Any:
    """Seconds since the epoch from RFC 3339 text; other values pass, for the validator behind this one."""
    if isinstance(value, str):
        return datetime.fromisoformat(value).timestamp()
    return value
