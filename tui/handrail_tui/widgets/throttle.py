"""When to draw: soon after the first of many changes, and never so often that keys must wait."""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import Callable
from typing import Final

_SHORTEST_S: Final = 0.05
_SHARE: Final = 4
"""Drawing takes at most one part in this many plus one of the time, however much there is to draw."""


class Throttle:
    """Calls `paint` some time after `ask`: at once when it is quiet, else after max(50 ms, 4 × the last cost)."""

    def __init__(self, paint: Callable[[], None]) -> None:
        self._paint = paint
        self._context = contextvars.copy_context()
        self._handle: asyncio.TimerHandle | None = None
        self._next = 0.0

    def ask(self) -> None:
        """Something changed."""
        if self._handle is None:
            loop = asyncio.get_running_loop()
            delay = max(0.0, self._next - time.monotonic())
            self._handle = loop.call_later(delay, self._go, context=self._context)

    def close(self) -> None:
        """Draw nothing any more."""
        if self._handle is not None:
            self._handle.cancel()

    def _go(self) -> None:
        self._handle = None
        began = time.monotonic()
        self._paint()
        ended = time.monotonic()
        self._next = ended + max(_SHORTEST_S, _SHARE * (ended - began))
