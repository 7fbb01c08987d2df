"""Clocks (house law 3). Nothing else in the library reads the wall clock or sleeps.

`now()` is the moment in seconds since the epoch (UTC); every wait is given as a moment or in seconds of this
clock. Four clocks: `RealClock`, `ScaledClock` for demos, `VirtualClock` that jumps when nothing else can
happen, and `ManualClock` that a test advances.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar


def to_rfc3339(moment: float) -> str:
    """`2026-07-14T10:00:00.000Z`: UTC, milliseconds."""
    stamp = datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds")
    return stamp.replace("+00:00", "Z")


def from_rfc3339(value: Any) -> Any:
    """Seconds since the epoch from RFC 3339 text; other values pass, for the next validator."""
    if isinstance(value, str):
        return datetime.fromisoformat(value).timestamp()
    return value


T = TypeVar("T")

# Where the clocks of demos and tests start: 2026-01-05 12:00:00 UTC, a Monday.
EPOCH = 1_767_614_400.0


_NOTHING = nullcontext()


class Timer(Protocol):
    """A scheduled callback. `cancel()` revokes it."""

    def cancel(self) -> None: ...


class Clock(ABC):
    """The time as a run sees it."""

    @abstractmethod
    def now(self) -> float:
        """Seconds since the epoch, UTC."""

    @abstractmethod
    def call_at(self, when: float, callback: Callable[[], object]) -> Timer:
        """Call `callback` once at the moment `when`, or soon if that is past."""

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        """Call `callback` once, `seconds` from now."""
        return self.call_at(self.now() + seconds, callback)

    async def sleep_until(self, when: float) -> None:
        """Return at the moment `when`. Cancelling ends it at once."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = self._wake_at(when, lambda: None if done.done() else done.set_result(None))
        try:
            await done
        finally:
            timer.cancel()

    def _wake_at(self, when: float, callback: Callable[[], object]) -> Timer:
        """The timer of a sleep. A clock may treat it differently from other timers."""
        return self.call_at(when, callback)

    async def sleep(self, seconds: float) -> None:
        """Return `seconds` from now."""
        await self.sleep_until(self.now() + seconds)

    def busy(self) -> AbstractContextManager[None]:
        """Mark something real (a process, a socket, a thread) as pending: a virtual clock then stands still."""
        return _NOTHING

    async def in_thread(self, call: Callable[[], T]) -> T:
        """Run the blocking `call` in a thread, marked as busy."""
        with self.busy():
            return await asyncio.to_thread(call)


class RealClock(Clock):
    """The machine's clock. Long waits follow the wall clock, so that they end on time after a laptop has slept."""

    LONGEST_NAP = 20.0

    def now(self) -> float:
        return time.time()

    def call_at(self, when: float, callback: Callable[[], object]) -> Timer:
        return _RealTimer(self, when, callback)


class _RealTimer:
    def __init__(self, clock: RealClock, when: float, callback: Callable[[], object]) -> None:
        self._clock, self._when, self._callback = clock, when, callback
        self._loop = asyncio.get_running_loop()
        self._schedule()

    def _schedule(self) -> None:
        left = self._when - self._clock.now()
        if left > self._clock.LONGEST_NAP:
            self._handle = self._loop.call_later(self._clock.LONGEST_NAP, self._schedule)
        else:
            self._handle = self._loop.call_later(max(0.0, left), self._callback)

    def cancel(self) -> None:
        self._handle.cancel()


class ScaledClock(Clock):
    """A clock for demos: `speed` times as fast, and no wait takes more than `longest` seconds of real time.

    During a long wait the clock runs even faster, so that its countdown is visible. Only sleeps have this effect, not
    timeouts.
    """

    def __init__(self, speed: float = 1.0, longest: float = 10.0, start: float = EPOCH) -> None:
        self._speed, self._longest = speed, longest
        self._base, self._real = start, time.monotonic()
        self._seen = start
        self._rate = speed
        self._timers: set[_ScaledTimer] = set()

    def now(self) -> float:
        self._seen = max(self._seen, self._base + (time.monotonic() - self._real) * self._rate)
        return self._seen

    def _land(self, when: float) -> None:
        """A wait is over: set the clock to its end, even if the machine was late."""
        self._base, self._real = max(self._seen, when), time.monotonic()

    def call_at(self, when: float, callback: Callable[[], object]) -> Timer:
        return _ScaledTimer(self, when, callback, waited_for=False)

    def _wake_at(self, when: float, callback: Callable[[], object]) -> Timer:
        return _ScaledTimer(self, when, callback, waited_for=True)

    def _rebase(self) -> None:
        """From now on, run at the rate that the longest current wait needs."""
        self._base, self._real = self.now(), time.monotonic()
        self._rate = max([self._speed, *(t.rate for t in self._timers)])
        for timer in self._timers:
            timer.reschedule()


class _ScaledTimer:
    def __init__(
        self, clock: ScaledClock, when: float, callback: Callable[[], object], *, waited_for: bool
    ) -> None:
        self._clock, self._when, self._callback = clock, when, callback
        self._loop = asyncio.get_running_loop()
        self._handle: asyncio.TimerHandle | None = None
        self.rate = max(0.0, when - clock.now()) / clock._longest if waited_for else 0.0
        clock._timers.add(self)
        clock._rebase()

    def reschedule(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        left = max(0.0, self._when - self._clock.now())
        self._handle = self._loop.call_later(left / self._clock._rate, self._fire)

    def _fire(self) -> None:
        self._clock._land(self._when)
        self.cancel()
        self._callback()

    def cancel(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        if self in self._clock._timers:
            self._clock._timers.discard(self)
            self._clock._rebase()


class ManualClock(Clock):
    """A clock that stands still until `advance` is called: for tests of what a moment looks like."""

    def __init__(self, start: float = EPOCH) -> None:
        self._now = start
        self._order = itertools.count()
        self._timers: list[tuple[float, int, _HeapTimer]] = []

    def now(self) -> float:
        return self._now

    def call_at(self, when: float, callback: Callable[[], object]) -> Timer:
        timer = _HeapTimer(callback)
        heapq.heappush(self._timers, (when, next(self._order), timer))
        return timer

    @property
    def next_due(self) -> float | None:
        """The time of the earliest timer that was not cancelled."""
        while self._timers and self._timers[0][2].cancelled:
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def advance(self, seconds: float) -> None:
        """Move the clock by `seconds`, calling the timers that fall due, in order."""
        self.advance_to(self._now + seconds)

    def advance_to(self, when: float) -> None:
        """Move the clock to the moment `when`, calling the timers that fall due, in order."""
        while (due := self.next_due) is not None and due <= when:
            self._fire_next()
        self._now = max(self._now, when)

    def _fire_next(self) -> None:
        due, _, timer = heapq.heappop(self._timers)
        self._now = max(self._now, due)
        timer.fire()


class _HeapTimer:
    def __init__(self, callback: Callable[[], object]) -> None:
        self._callback = callback
        self.cancelled = False

    def fire(self) -> None:
        self.cancelled = True
        self._callback()

    def cancel(self) -> None:
        self.cancelled = True


class VirtualClock(ManualClock):
    """A clock that jumps to the next timer as soon as nothing else can happen.

    Nothing can happen when the event loop has no callback ready and nothing real was marked with `busy`.
    So a five-hour wait takes a millisecond, and a run with a real process takes as long as the process.
    """

    def __init__(self, start: float = EPOCH) -> None:
        super().__init__(start)
        self._real = 0
        self._watching = False

    def call_at(self, when: float, callback: Callable[[], object]) -> Timer:
        timer = super().call_at(when, callback)
        self._watch()
        return timer

    @contextmanager
    def busy(self) -> Iterator[None]:
        self._real += 1
        try:
            yield
        finally:
            self._real -= 1
            self._watch()

    def _watch(self) -> None:
        if not self._watching:
            self._watching = True
            asyncio.get_running_loop().call_soon(self._look)

    def _look(self) -> None:
        self._watching = False
        if self._real or self.next_due is None:
            return  # `busy` looks again when it ends, `call_at` when there is a timer
        loop = asyncio.get_running_loop()
        # A loop without a visible ready queue counts as idle after each round: the order of timers is still right.
        if getattr(loop, "_ready", None):
            self._watch()
            return
        self._fire_next()
        self._watch()
