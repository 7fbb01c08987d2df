"""A time limit by a clock that is handed in (house law 3)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from handrail.clock import Clock


@asynccontextmanager
async def within(clock: Clock, seconds: float) -> AsyncIterator[None]:
    """What is awaited inside ends with TimeoutError after `seconds` of `clock`."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(None) as scope:
        timer = clock.call_later(seconds, lambda: scope.reschedule(loop.time()))
        try:
            yield
        finally:
            timer.cancel()


class Patience:
    """A time limit that starts anew at each sign of life, and stands still while somebody else is waited for.

    `ended` is done when the limit is reached.
    """

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock, self._seconds = clock, seconds
        self._holds = 0
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._timer = clock.call_later(seconds, self._end)

    def renew(self) -> None:
        """A sign of life: the whole limit is ahead again."""
        self._timer.cancel()
        if not self._holds and not self.ended.done():
            self._timer = self._clock.call_later(self._seconds, self._end)

    def hold(self) -> None:
        """Somebody else is waited for."""
        self._holds += 1
        self._timer.cancel()

    def go_on(self) -> None:
        """That wait is over."""
        self._holds -= 1
        self.renew()

    def close(self) -> None:
        self._timer.cancel()
        self.ended.cancel()

    def _end(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)
