"""A stored run that plays itself: with its original timing, long pauses shortened, on its own clock.

Playing time is the time of the replay; recorded time is the time of the events. `Track` maps one to the other, and
`Replay` plays, pauses, seeks and changes the speed.
"""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from handrail import events as ev
from handrail.clock import ManualClock
from handrail.events import Event, QueuedMessage, RunEnded
from handrail.messages import AssistantMessage, Text, Thinking
from handrail.session.records import JournalContents

LONGEST_S: Final = 3.0
"""The longest pause between two events, in seconds of playing time."""

SPEEDS: Final = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
_STEP_S: Final = 0.05
_PIECE: Final = 24


def recorded(contents: JournalContents) -> list[Event]:
    """The events of a journal. A journal stores complete replies; here they stream again over their original time."""
    return list(streamed(contents.events()))


def streamed(events: Iterable[Event]) -> Iterator[Event]:
    """`events`, with deltas added before complete replies that have none."""
    began: float | None = None
    for event in events:
        match event:
            case ev.MessageStarted():
                began = event.at
            case ev.MessageDelta():
                began = None
            case ev.MessageFinished() if began is not None:
                yield from _pieces(event, began)
                began = None
        yield event


def _pieces(event: ev.MessageFinished, began: float) -> Iterator[ev.MessageDelta]:
    parts = [
        (kind, text[i : i + _PIECE])
        for kind, text in _texts(event.message)
        for i in range(0, len(text), _PIECE)
    ]
    length = max(0.0, event.at - began)
    for number, (kind, text) in enumerate(parts, 1):
        yield ev.MessageDelta(at=began + length * number / len(parts), turn=event.turn, kind=kind, text=text)


def _texts(message: AssistantMessage) -> Iterator[tuple[Any, str]]:
    for block in message.content:
        if isinstance(block, Text | Thinking):
            yield block.type, block.text


class Track:
    """The events, when each is due in playing time, and where the turns begin."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.events = list(events)
        self._moments: list[float] = []
        self._due: list[float] = []
        moment, due = 0.0, 0.0
        for number, event in enumerate(self.events):
            # If the clock was set back during the run, the order of the events still holds.
            later = max(event.at, moment) if number else event.at
            due += min(later - moment, LONGEST_S) if number else 0.0
            moment = later
            self._moments.append(moment)
            self._due.append(due)
        starts = [
            n for n, e in enumerate(self.events) if isinstance(e, ev.TurnStarted) and e.purpose == "task"
        ]
        self.turns: Sequence[float] = [self._due[n] for n in starts]
        """Where each turn begins, in playing time."""

    @property
    def length(self) -> float:
        """Seconds of playing time."""
        return self._due[-1] if self._due else 0.0

    def upto(self, position: float) -> int:
        """How many events are due at `position`."""
        return bisect_right(self._due, position + 1e-9)

    def moment(self, position: float) -> float:
        """The recorded time at `position`."""
        if not self.events:
            return 0.0
        after = bisect_right(self._due, position)
        if after == 0:
            return self._moments[0]
        if after == len(self._due):
            return self._moments[-1]
        began, ended = self._due[after - 1], self._due[after]
        share = (position - began) / (ended - began)
        return self._moments[after - 1] + share * (self._moments[after] - self._moments[after - 1])

    def turn_at(self, position: float) -> int:
        """The number of the turn at `position`, from 1; 0 before the first."""
        return bisect_right(self.turns, position + 1e-9)

    def beside(self, position: float, by: int) -> float:
        """Where the next turn begins (1), or the current or the previous one (-1)."""
        if by > 0:
            after = bisect_right(self.turns, position + 1e-9)
            return self.turns[after] if after < len(self.turns) else self.length
        # Shortly after a turn begins, back means the previous turn: the key may be pressed twice in a row.
        before = bisect_left(self.turns, position - 1.0)
        return self.turns[before - 1] if before else 0.0


class ReplayClock(ManualClock):
    """A clock that can be turned back."""

    def turn_to(self, moment: float) -> None:
        """Set the clock to this moment."""
        self._now = moment


class InertSession:
    """A session whose commands do nothing: what a screen needs of one that is only shown."""

    running = False
    tool_source = None

    def start_servers(self) -> None:
        """Nothing to start."""

    async def end_servers(self) -> None:
        """Nothing to end."""

    async def run(self, prompt: str, *, context: str | None = None) -> RunEnded:
        raise RuntimeError("a replay cannot be continued")

    async def resume(self, *, answer: str | None = None) -> RunEnded:
        raise RuntimeError("a replay cannot be continued")

    def steer(self, text: str, /) -> str:
        return ""

    def follow_up(self, text: str, /) -> str:
        return ""

    def withdraw(self, id: str, /) -> QueuedMessage | None:
        return None

    def answer(self, id: str, how: str, text: str = "", *, secret: bool = False) -> bool:
        return False

    def approve(self, id: str, how: str, text: str = "") -> bool:
        return False

    def postpone_wait(self, until: float, /) -> bool:
        return False

    def _nothing(self, *args: object, **amounts: object) -> None:
        """Ignore the command."""

    edit_queued = move_queued = stop = suspend = skip_wait = retry_now = compact = notice = _nothing
    set_recovery = set_provider = set_approve = raise_bounds = _nothing


class Replay(InertSession):
    """Plays a track to its listeners. It never counts as running, and session commands do nothing."""

    def __init__(self, events: Iterable[Event], real: Callable[[], float] = time.monotonic) -> None:
        """`real` is the machine's clock, which drives the playing time."""
        self.track = Track(events)
        self.clock = ReplayClock(self.track.moment(0.0))
        self.position = 0.0
        self.playing = False
        self.speed = 1.0
        self.on_rewind: Callable[[], object] = lambda: None
        """Called before the events are sent again from the first one."""
        self._real, self._seen = real, 0.0
        self._sent = 0
        self._listeners: list[Callable[[Event], object]] = []
        self._timer: asyncio.TimerHandle | None = None

    # Controls -----------------------------------------------------------------------------------------------

    @property
    def at_end(self) -> bool:
        return self.position >= self.track.length

    def play(self) -> None:
        """Play; from the start when it is at the end."""
        if self.at_end:
            self.seek(0.0)
        self.playing, self._seen = True, self._real()
        self._later()

    def pause(self) -> None:
        """Pause."""
        self._catch_up()
        self.playing = False
        self._cancel()

    def faster(self, by: int) -> None:
        """The next speed up (1) or down (-1)."""
        self._catch_up()
        beyond = [s for s in SPEEDS if (s > self.speed if by > 0 else s < self.speed)]
        if beyond:
            self.speed = beyond[0] if by > 0 else beyond[-1]

    def turn(self, by: int) -> None:
        """To the next or the previous turn."""
        self._catch_up()
        self.seek(self.track.beside(self.position, by))

    def seek(self, position: float) -> None:
        """To `position`, in seconds of playing time."""
        position = min(max(0.0, position), self.track.length)
        if self.track.upto(position) < self._sent:
            self._sent = 0
            self.clock.turn_to(self.track.moment(0.0))
            self.on_rewind()
        self.position, self._seen = position, self._real()
        self._send_due()

    def close(self) -> None:
        """Stop playing."""
        self.playing = False
        self._cancel()

    def _later(self) -> None:
        self._cancel()
        if self.playing:
            self._timer = asyncio.get_running_loop().call_later(_STEP_S, self._step)

    def _step(self) -> None:
        self._timer = None
        self._catch_up()
        if self.at_end:
            self.playing = False
        self._later()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _catch_up(self) -> None:
        """Advance by the time that has passed."""
        if self.playing:
            now = self._real()
            passed, self._seen = (now - self._seen) * self.speed, now
            self.position = min(self.position + passed, self.track.length)
            self._send_due()

    def _send_due(self) -> None:
        due = self.track.upto(self.position)
        for event in self.track.events[self._sent : due]:
            self.clock.turn_to(event.at)
            for listener in list(self._listeners):
                listener(event)
        self._sent = due
        self.clock.turn_to(self.track.moment(self.position))

    def listen(self, listener: Callable[[Event], object], /) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)
