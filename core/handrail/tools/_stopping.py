"""Work that a stop must not tear: it is awaited to its end, and the stop passes then (rule L9)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def whole(work: Awaitable[T]) -> tuple[T, bool]:
    """Await `work` to its end though a cancellation comes. Also says whether one came: it is for the caller
    to pass on, once it has put in order what the work left. Where the work itself fails, the cancellation
    passes at once.
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
