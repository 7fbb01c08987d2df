"""The request types of the official SDKs as validators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import TypeAdapter


def check_sdk(adapter: TypeAdapter[Any], body: dict[str, Any]) -> None:
    """Raises pydantic.ValidationError for what the SDK's types do not hold."""
    _exhaust(adapter.validate_python(body))


def _exhaust(value: Any) -> None:
    """Walk through `value`: pydantic validates an Iterable only while it is read."""
    if isinstance(value, dict):
        for inner in value.values():
            _exhaust(inner)
    elif isinstance(value, (list, tuple, Iterator)):
        for inner in value:
            _exhaust(inner)
