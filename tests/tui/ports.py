"""A session for tests of the screen: plays what it is given, remembers what it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from handrail.clock import ManualClock
from handrail.events import Event, QueuedMessage, RunFinished, RunInterrupted


class FakeSession:
    """Emits events on demand; a run lasts until one of its two last events is emitted."""

    def __init__(self, clock: ManualClock | None = None) -> None:
        self.clock = clock or ManualClock()
        self.told: list[tuple[Any, ...]] = []
        self.listeners: list[Callable[[Event], object]] = []
        self._end: asyncio.Future[RunFinished | RunInterrupted] | None = None

    tool_source: Any = None

    def start_servers(self) -> None:
        """Nothing to start."""

    async def end_servers(self) -> None:
        """Nothing to end."""

    @property
    def running(self) -> bool:
        return self._end is not None and not self._end.done()

    def listen(self, listener: Callable[[Event], object], /) -> Callable[[], None]:
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)

    def emit(self, *events: Event) -> None:
        for event in events:
            for listener in list(self.listeners):
                listener(event)
            if isinstance(event, RunFinished | RunInterrupted) and self.running and self._end:
                self._end.set_result(event)

    def play(self, events: Iterable[Event]) -> None:
        """Emit a story and set the clock to its end."""
        for event in events:
            self.emit(event)
            self.clock.advance_to(event.at)

    async def run(self, prompt: str, *, context: str | None = None) -> RunFinished | RunInterrupted:
        self.told.append(("run", prompt))
        return await self._until_ended()

    async def resume(self, *, answer: str | None = None) -> RunFinished | RunInterrupted:
        self.told.append(("resume",))
        return await self._until_ended()

    async def _until_ended(self) -> RunFinished | RunInterrupted:
        self._end = asyncio.get_running_loop().create_future()
        return await self._end

    def steer(self, text: str, /) -> str:
        self.told.append(("steer", text))
        return "q1"

    def follow_up(self, text: str, /) -> str:
        self.told.append(("follow_up", text))
        return "q2"

    def withdraw(self, id: str, /) -> QueuedMessage | None:
        self.told.append(("withdraw", id))
        return QueuedMessage(id, "taken back")

    def edit_queued(self, id: str, text: str, /) -> None:
        self.told.append(("edit", id, text))

    def move_queued(self, id: str, offset: int, /) -> None:
        self.told.append(("move", id, offset))

    def stop(self) -> None:
        self.told.append(("stop",))

    def suspend(self, signal: str | None = None, /) -> None:
        self.told.append(("suspend", signal))

    def skip_wait(self) -> None:
        self.told.append(("skip_wait",))

    def postpone_wait(self, until: float, /) -> bool:
        self.told.append(("postpone_wait", until))
        return True

    def retry_now(self) -> None:
        self.told.append(("retry_now",))

    def answer(self, id: str, how: str, text: str = "", *, secret: bool = False) -> bool:
        self.told.append(("answer", id, how, text, secret))
        return True

    def approve(self, id: str, how: str, text: str = "") -> bool:
        self.told.append(("approve", id, how, text))
        return True

    def set_recovery(self, on: bool, /) -> None:
        self.told.append(("recovery", on))

    def set_provider(self, provider: object, /) -> None:
        self.told.append(("provider", provider))

    def set_approve(self, mode: str, /) -> None:
        self.told.append(("mode", mode))

    def raise_bounds(self, **amounts: float) -> None:
        self.told.append(("raise", amounts))

    def compact(self) -> None:
        self.told.append(("compact",))

    def notice(self, text: str, *, level: str = "info") -> None:
        self.told.append(("notice", text))
