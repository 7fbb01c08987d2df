"""Stop, deadline and the other things that end an await at once (rule L9).

A `Scope` works as asyncio.timeout does: firing it cancels the task that is inside, and the scope swallows exactly that
cancellation. A cancellation from outside passes through (rule S7). No child task is needed, so a scope costs next to
nothing when nothing fires.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Literal, Protocol, TypeAlias, TypedDict

from handrail import events as ev
from handrail.clock import Clock, Timer
from handrail.loop.projection import Projection
from handrail.loop.state import RunState
from handrail.mask import Masker, MaskStream
from handrail.policy import Effort, RecoveryPolicy
from handrail.providers.base import Provider, ToolChoice

Cause: TypeAlias = Literal[
    "stop", "deadline", "suspend", "idle", "retry", "skip", "steer", "recovery_off", "nobody"
]


class Scope:
    """`with interrupts.scope() as scope: await …`; afterwards `scope.cause` says what ended it, None for nothing."""

    def __init__(self, owner: Interrupts) -> None:
        self._owner = owner
        self._open = False
        self._delivered = False
        self.cause: Cause | None = None

    def __enter__(self) -> Scope:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a scope needs a running task")
        self._task, self._cancelling = task, task.cancelling()
        self._open = True
        self._owner._scopes.append(self)
        if self._owner.cause is not None:
            self.interrupt(self._owner.cause)
        return self

    def interrupt(self, cause: Cause) -> None:
        """End what is awaited inside. The first cause counts."""
        if not self._open or self.cause is not None:
            return
        self.cause = cause
        if asyncio.current_task() is self._task:
            # From inside itself: the cancellation must find the task at an await that is still inside.
            asyncio.get_running_loop().call_soon(self._deliver)
        else:
            self._deliver()

    def _deliver(self) -> None:
        if self._open and not self._delivered:
            self._delivered = True
            self._task.cancel()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._open = False
        self._owner._scopes.remove(self)
        if self.cause is None or not self._delivered:
            return False
        mine = self._task.uncancel() <= self._cancelling
        return mine and kind is not None and issubclass(kind, asyncio.CancelledError)


class Interrupts:
    """What may end a run's awaits. `cause` is latched until `clear`: stop, deadline and suspend hold for the run."""

    def __init__(self) -> None:
        self._scopes: list[Scope] = []
        self.cause: Cause | None = None

    def scope(self) -> Scope:
        return Scope(self)

    def fire(self, cause: Cause) -> None:
        """End every await of the run, now and from now on. A person's stop outranks a deadline."""
        if self.cause is None or cause == "stop":
            self.cause = cause
        for scope in tuple(self._scopes):
            scope.interrupt(cause)

    def clear(self) -> None:
        self.cause = None


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


class RunContext:
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


@dataclass(frozen=True, slots=True)
class Hit:
    """A bound that forbids the next request. `outcome` is turn-limit or budget."""

    outcome: ev.Outcome
    bound: str
    why: str


def forbids(stage: RunContext, *, after_s: float = 0.0) -> Hit | None:
    """The bound that forbids a request made `after_s` counted seconds from now, or None."""
    state, bounds = stage.state, stage.state.bounds
    if bounds.deadline_s is not None and state.active(stage.clock.now()) + after_s >= bounds.deadline_s:
        return Hit("budget", "deadline_s", f"the deadline of {bounds.deadline_s:g} s is reached")
    if bounds.max_total_tokens is not None and state.usage.total >= bounds.max_total_tokens:
        return Hit(
            "budget", "max_total_tokens", f"{state.usage.total} of {bounds.max_total_tokens} tokens are used"
        )
    if bounds.max_cost is not None and state.cost is not None and state.cost >= bounds.max_cost:
        return Hit("budget", "max_cost", f"${state.cost:.4f} of ${bounds.max_cost:g} is spent")
    if state.requests >= bounds.max_turns:
        return Hit("turn-limit", "max_turns", f"all {bounds.max_turns} turns are used")
    return None


class DeadlineWatch:
    """Fires `deadline` when the run has been active that long. It stands still while the clock of the run holds."""

    _MOVES = (ev.WaitEnded, ev.HumanAnswered, ev.ApprovalAnswered, ev.SettingsChanged)

    def __init__(self, stage: RunContext) -> None:
        self._stage = stage
        self._timer: Timer | None = None
        self._unsubscribe = stage.listen(self._on_event)
        self._arm()

    def _on_event(self, event: ev.Event) -> None:
        if isinstance(event, self._MOVES):
            self._arm()

    def _arm(self) -> None:
        stage, state = self._stage, self._stage.state
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if state.bounds.deadline_s is None or state.held:
            return
        left = state.bounds.deadline_s - state.active(stage.clock.now())
        self._timer = stage.clock.call_later(max(0.0, left), self._ring)

    def _ring(self) -> None:
        self._timer = None
        state = self._stage.state
        if state.held:
            return  # armed again when the hold ends
        if forbids(self._stage) is not None and _reached(self._stage):
            self._stage.interrupts.fire("deadline")
        else:
            self._arm()

    def close(self) -> None:
        self._unsubscribe()
        if self._timer is not None:
            self._timer.cancel()


def _reached(stage: RunContext) -> bool:
    limit = stage.state.bounds.deadline_s
    return limit is not None and stage.state.active(stage.clock.now()) >= limit - 1e-6


@dataclass(slots=True)
class RunConfig:
    """What a run works with. A person may change the provider and the policy in mid-run; the next request sees it."""

    provider: Provider
    policy: RecoveryPolicy
    system: str = ""
    max_output: int | None = None
    effort: Effort | None = None
    tool_choice: ToolChoice = "auto"
    compact_now: bool = False

    @property
    def cap(self) -> int | None:
        """The output cap to ask for, in tokens."""
        return self.max_output or self.provider.model.max_output


@dataclass(frozen=True, slots=True)
class End:
    """Why a run ends. `interrupted`: the program was told to end; there is no outcome yet (rule J7)."""

    outcome: ev.Outcome
    class_: str | None = None
    error: str | None = None
    bound: str | None = None
    until: float | None = None
    question: ev.HumanRequested | None = None
    text: str | None = None
    interrupted: bool = False


def interrupted(stage: RunContext) -> End | None:
    """The end that a stop, a deadline or the program's own end means (rules L9, L3, J7)."""
    cause = stage.interrupts.cause
    if cause == "suspend":
        return End("cancelled", interrupted=True)
    if cause == "stop":
        return End("cancelled", error="stopped by the person")
    if cause == "deadline":
        limit = stage.state.bounds.deadline_s
        return End("budget", bound="deadline_s", error=f"the deadline of {limit:g} s is reached")
    return None


def bounded(stage: RunContext) -> End | None:
    """The end that a bound means: checked before every request, whoever asked for it (rule L1)."""
    hit = forbids(stage)
    return bound_end(hit) if hit else None


def bound_end(hit: Hit) -> End:
    return End(hit.outcome, bound=hit.bound, error=hit.why)
