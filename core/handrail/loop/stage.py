"""Where a run plays: time, the events' way out, what may interrupt it. Shared by the parts of the loop."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol, TypedDict

from handrail import events as ev
from handrail.clock import Clock
from handrail.loop.interrupts import Interrupts
from handrail.loop.projection import Projection
from handrail.loop.state import RunState
from handrail.mask import Masker, MaskStream


class Stamp(TypedDict):
    at: float
    turn: int | None


class Record(Protocol):
    """Where events are kept (rule J1). `append` comes before anyone else hears of the event."""

    def append(self, event: ev.Event) -> None: ...

    async def commit(self) -> str | None:
        """Return None when all that was appended is on the disk, else why it cannot be written."""
        ...


RETRY_S = 5.0  # how soon a record that cannot be written is tried again


class Stage:
    """Emits events: masked, to the record first, then into the folds, then to the listeners."""

    def __init__(self, clock: Clock, record: Record | None = None, masker: Masker | None = None) -> None:
        self.clock = clock
        self.record = record
        self._masker = masker if masker else None
        self._streams: dict[str, MaskStream] = {}
        self.state = RunState()
        self.projection = Projection()
        self.interrupts = Interrupts()
        self.turn: int | None = None
        self._listeners: tuple[ev.Listener, ...] = ()
        self._unwritten = False  # the record could not be written when it was tried last
        self._untold: deque[ev.Event] = deque()
        self._telling = False

    def listen(self, listener: ev.Listener) -> Callable[[], None]:
        """Call `listener` with every event from now on, in order. Returns what ends that."""
        self._listeners = (*self._listeners, listener)

        def unsubscribe() -> None:
            self._listeners = tuple(x for x in self._listeners if x is not listener)

        return unsubscribe

    def stamp(self) -> Stamp:
        """When and in which turn an event happens."""
        return {"at": self.clock.now(), "turn": self.turn}

    def since(self, moment: float) -> float:
        """Seconds from `moment` to now, to the microsecond."""
        return round(self.clock.now() - moment, 6)

    def emit(self, event: ev.Event) -> None:
        """Something happened. Keys in it are masked before anyone hears of it (rule J5)."""
        if self._masker is not None:
            event = self._masker.masked(event)
            if isinstance(event, ev.MessageFinished | ev.ToolFinished):
                self._streams.clear()
        if self.record is not None:
            self.record.append(event)
        self.fold(event)
        self._tell(event)

    def pass_on(self, event: ev.MessageDelta | ev.ToolProgress) -> None:
        """A piece that no fold needs: to the record, which keeps it loosely (rule J3), and to the listeners."""
        if self._masker is not None:
            event = replace(event, text=self._masked_piece(self._masker, event))
        if self.record is not None:
            self.record.append(event)
        self._tell(event)

    def _tell(self, event: ev.Event) -> None:
        """Every listener hears every event in the order in which they happened, also when one of them acts at once and
        so makes the next event happen while this one is still being told."""
        self._untold.append(event)
        if self._telling:
            return
        self._telling = True
        try:
            while self._untold:
                event = self._untold.popleft()
                for listener in self._listeners:
                    listener(event)
        finally:
            self._telling = False

    def _masked_piece(self, masker: Masker, piece: ev.MessageDelta | ev.ToolProgress) -> str:
        """The words of a piece without keys, which may stretch over several; what may begin one is held back."""
        if isinstance(piece, ev.ToolProgress):
            lane = piece.call_id
        else:
            lane = f"{piece.kind} {piece.index}"
            if lane not in self._streams:
                self._streams = {k: v for k, v in self._streams.items() if " " not in k}
        stream = self._streams.setdefault(lane, masker.stream())
        return stream.feed(piece.text)

    def fold(self, event: ev.Event) -> None:
        """Take an event into the folds only: how a stored run is read back."""
        self.state.apply(event)
        self.projection.apply(event)

    async def commit(self) -> None:
        """Return when everything emitted so far is on the disk (rule J1).

        While it cannot be written the run holds here and says so, until it can or somebody stops it (rule J6).
        """
        if self.record is None:
            return
        while (words := await self.record.commit()) is not None:
            if not self._unwritten:
                self._unwritten = True
                self._say(ev.Notice(**self.stamp(), level="error", text=words))
            with self.interrupts.scope() as scope:
                await self.clock.sleep(RETRY_S)
            if scope.cause is not None:
                return
        if self._unwritten:
            self._unwritten = False
            self._say(ev.Notice(**self.stamp(), text="the journal can be written again; the run goes on"))

    def _say(self, notice: ev.Notice) -> None:
        """Say something while the run goes on: its end has the last word."""
        if self.state.running:
            self.emit(notice)
