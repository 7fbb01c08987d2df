"""How a fold over events is written: one method for each event that changes it, named after the event."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, get_args

from handrail.events import Event

Handlers = Mapping[type[Event], Callable[[Any, Any], Any]]


def handlers(fold: type) -> Handlers:
    """The methods of a fold by the event they handle: `_run_started` handles RunStarted. Events without one are left
    out."""
    found: dict[type[Event], Callable[[Any, Any], Any]] = {}
    for kind in get_args(Event):
        method = getattr(fold, f"_{kind.__dataclass_fields__['type'].default}", None)
        if method is not None:
            found[kind] = method
    return found
