"""Where a run plays: time, the events' way out, what may interrupt it. Shared by the parts of the loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypedDict

from handrail import events as ev
from handrail.clock import Clock
from handrail.loop.interrupts import Interrupts
from handrail.loop.projection import Projection
from handrail.loop.state import RunState


class Stamp(TypedDict):
    at: float
    turn: int | None


class Record(Protocol):
    """Where events are kept (rule J1). `append` comes before anyone else hears of the event."""

    def append(self, event: ev.Event) -> None: ...

    async def commit(self) -> None:
        """Return when all that was appended is on the disk."""
        ...


class Stage:
    """Emits events: to the record first, then into the folds, then to the listeners."""

    def __init__(self, clock: Clock, record: Record | None = None) -> None:
        self.clock = clock
        self.record = record
        self.state = RunState()
        self.projection = Projection()
        self.interrupts = Interrupts()
        self.turn: int | None = None
        self._listeners: tuple[ev.Listener, ...] = ()

    def listen(self, listener: ev.Listener) -> Callable[[], None]:
        """Call `listener` with every event from now on, in order. Returns what ends that."""
        self._listeners = (*self._listeners, listener)

        def unsubscribe() -> None:
            self._listeners = tuple(x for x in self._listeners if x is not listener)

        return unsubscribe

    def stamp(self) -> Stamp:
        """When and in which turn an event happens."""
        return {"at": self.clock.now(), "turn": self.turn}

    def emit(self, event: ev.Event) -> None:
        if self.record is not None:
            self.record.append(event)
        self.fold(event)
        for listener in self._listeners:
            listener(event)

    def pass_on(self, event: ev.MessageDelta | ev.ToolProgress) -> None:
        """A piece that no fold needs: to the record, which keeps it loosely (rule J3), and to the listeners."""
        if self.record is not None:
            self.record.append(event)
        for listener in self._listeners:
            listener(event)

    def fold(self, event: ev.Event) -> None:
        """Take an event into the folds only: how a stored run is read back."""
        self.state.apply(event)
        self.projection.apply(event)

    async def commit(self) -> None:
        """Return when everything emitted so far is on the disk (rule J1)."""
        if self.record is not None:
            await self.record.commit()
