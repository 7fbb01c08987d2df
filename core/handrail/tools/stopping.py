"""Work that a stop must not interrupt: it is awaited, and then the stop is passed on (rule L9)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def whole(work: Awaitable[T]) -> tuple[T, bool]:
    """Await `work` to its end even when cancelled. Also returns whether that happened: the caller must pass the
    cancellation on once it has cleaned up. If the work itself fails, the cancellation is passed on at once.
    """
    task = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            cancelled = True
    if cancelled and (error := task.exception()) is not None:
        raise asyncio.CancelledError from error
    return task.result(), cancelled
