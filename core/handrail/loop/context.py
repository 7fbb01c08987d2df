"""What every part of a run shares: the clock, the event stream, the interrupts, the configuration, the bounds.

`RunContext` emits events; `RunConfig` says what the run works with; `Interrupts` ends awaits at once (rule L9);
`exceeded` and `DeadlineWatch` enforce the bounds (rules L1 to L3); a `RunEnd` says why a run ends.
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
    "stop", "deadline", "suspend", "idle", "retry", "skip", "later", "steer", "recovery_off", "nobody", "cut"
]


class Scope:
    """`with interrupts.scope() as scope: await …`; afterwards `scope.cause` says what ended it, None for nothing.

    `moment` is what came with the cause: for `later`, when the pause shall end.

    It works as asyncio.timeout does: interrupting it cancels the task inside, and the scope swallows exactly that
    cancellation. A cancellation from outside passes through (rule S7). It starts no child task, so it is nearly free.
    """

    def __init__(self, owner: Interrupts, accepts: tuple[Cause, ...]) -> None:
        self._owner = owner
        self.accepts = accepts
        self._open = False
        self._delivered = False
        self.cause: Cause | None = None
        self.moment: float | None = None

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

    def interrupt(self, cause: Cause, moment: float | None = None) -> None:
        """End what is awaited inside. The first cause counts."""
        if not self._open or self.cause is not None:
            return
        self.cause, self.moment = cause, moment
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
    """What may end a run's awaits. `cause` is latched until `clear`: stop, deadline and suspend end the whole run."""

    def __init__(self) -> None:
        self._scopes: list[Scope] = []
        self.cause: Cause | None = None

    def scope(self, *accepts: Cause) -> Scope:
        """A new scope. `fire` always ends it; `send` does when the cause is one of `accepts`."""
        return Scope(self, accepts)

    def send(self, cause: Cause, moment: float | None = None) -> None:
        """End only the awaits that accept this cause: a pause (skip, later, steer, recovery_off), a stream (retry)."""
        for scope in tuple(self._scopes):
            if cause in scope.accepts:
                scope.interrupt(cause, moment)

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


class Recorder(Protocol):
    """Stores events (rule J1). `append` is called before any listener sees the event."""

    def append(self, event: ev.Event) -> None: ...

    async def commit(self) -> str | None:
        """Write everything that was appended to disk. Returns None, or the reason why it cannot be written."""
        ...


RETRY_S = 5.0  # seconds until a failed write to the journal is tried again


class RunContext:
    """A run's state and its event stream. Each event is masked, recorded, folded, then sent to the listeners."""

    def __init__(self, clock: Clock, record: Recorder | None = None, masker: Masker | None = None) -> None:
        self.clock = clock
        self.record = record
        self._masker = masker if masker else None
        self._streams: dict[str, MaskStream] = {}
        self.state = RunState()
        self.projection = Projection()
        self.interrupts = Interrupts()
        self.turn: int | None = None
        self._listeners: tuple[ev.Listener, ...] = ()
        self._unwritten = False  # the last write to the record failed
        self._outbox: deque[ev.Event] = deque()
        self._sending = False

    def listen(self, listener: ev.Listener) -> Callable[[], None]:
        """Call `listener` with every event from now on, in order. Returns a function that unsubscribes it."""
        self._listeners = (*self._listeners, listener)

        def unsubscribe() -> None:
            self._listeners = tuple(x for x in self._listeners if x is not listener)

        return unsubscribe

    def stamp(self) -> Stamp:
        """The time and the turn for an event that happens now."""
        return {"at": self.clock.now(), "turn": self.turn}

    def since(self, moment: float) -> float:
        """Seconds from `moment` to now, to the microsecond."""
        return round(self.clock.now() - moment, 6)

    def emit(self, event: ev.Event) -> None:
        """Record and publish an event. API keys in it are masked first (rule J5)."""
        if self._masker is not None:
            event = self._masker.masked(event)
            if isinstance(event, ev.MessageFinished | ev.ToolFinished):
                self._streams.clear()
        if self.record is not None:
            self.record.append(event)
        self.fold(event)
        self._send(event)

    def pass_on(self, event: ev.MessageDelta | ev.ToolProgress) -> None:
        """Publish a piece of live output. No fold needs it; the record may keep it only in part (rule J3)."""
        if self._masker is not None:
            event = replace(event, text=self._masked_piece(self._masker, event))
        if self.record is not None:
            self.record.append(event)
        self._send(event)

    def _send(self, event: ev.Event) -> None:
        """Deliver events in order, even when a listener acts at once and so emits the next event during delivery."""
        self._outbox.append(event)
        if self._sending:
            return
        self._sending = True
        try:
            while self._outbox:
                event = self._outbox.popleft()
                for listener in self._listeners:
                    listener(event)
        finally:
            self._sending = False

    def _masked_piece(self, masker: Masker, piece: ev.MessageDelta | ev.ToolProgress) -> str:
        """The text of a piece with keys masked. A key may span pieces, so text that may start one is held back."""
        if isinstance(piece, ev.ToolProgress):
            lane = piece.call_id
        else:
            lane = f"{piece.kind} {piece.index}"
            if lane not in self._streams:
                self._streams = {k: v for k, v in self._streams.items() if " " not in k}
        stream = self._streams.setdefault(lane, masker.stream())
        return stream.feed(piece.text)

    def fold(self, event: ev.Event) -> None:
        """Apply an event to the folds only. This is how a stored run is read back."""
        self.state.apply(event)
        self.projection.apply(event)

    async def commit(self) -> None:
        """Return once everything emitted so far is on disk (rule J1).

        While writing fails, the run pauses here and says so, until it works again or somebody stops it (rule J6).
        """
        if self.record is None:
            return
        while (problem := await self.record.commit()) is not None:
            if not self._unwritten:
                self._unwritten = True
                self._notify(ev.Notice(**self.stamp(), level="error", text=problem))
            with self.interrupts.scope() as scope:
                await self.clock.sleep(RETRY_S)
            if scope.cause is not None:
                return
        if self._unwritten:
            self._unwritten = False
            self._notify(
                ev.Notice(**self.stamp(), text="the journal can be written again; the run continues")
            )

    def _notify(self, notice: ev.Notice) -> None:
        """Emit a notice while the run is going. The last event of a run is its end."""
        if self.state.running:
            self.emit(notice)


@dataclass(frozen=True, slots=True)
class BoundHit:
    """A bound that rules out the next request. `outcome` is turn-limit or budget."""

    outcome: ev.Outcome
    bound: str
    why: str


def exceeded(ctx: RunContext, *, after_s: float = 0.0) -> BoundHit | None:
    """The bound that rules out a request made `after_s` counted seconds from now, or None."""
    state, bounds = ctx.state, ctx.state.bounds
    if bounds.deadline_s is not None and state.active(ctx.clock.now()) + after_s >= bounds.deadline_s:
        return BoundHit("budget", "deadline_s", f"the deadline of {bounds.deadline_s:g} s is reached")
    if bounds.max_total_tokens is not None and state.usage.total >= bounds.max_total_tokens:
        return BoundHit(
            "budget", "max_total_tokens", f"{state.usage.total} of {bounds.max_total_tokens} tokens are used"
        )
    if bounds.max_cost is not None and state.cost is not None and state.cost >= bounds.max_cost:
        return BoundHit("budget", "max_cost", f"${state.cost:.4f} of ${bounds.max_cost:g} is spent")
    if state.requests >= bounds.max_turns:
        return BoundHit("turn-limit", "max_turns", f"all {bounds.max_turns} turns are used")
    return None


class DeadlineWatch:
    """Fires `deadline` once the run has been active that long. Its timer is off while the run's clock is paused."""

    _AFFECTS_CLOCK = (ev.WaitEnded, ev.HumanAnswered, ev.ApprovalAnswered, ev.SettingsChanged)

    def __init__(self, ctx: RunContext) -> None:
        self._ctx = ctx
        self._timer: Timer | None = None
        self._unsubscribe = ctx.listen(self._on_event)
        self._arm()

    def _on_event(self, event: ev.Event) -> None:
        if isinstance(event, self._AFFECTS_CLOCK):
            self._arm()

    def _arm(self) -> None:
        ctx, state = self._ctx, self._ctx.state
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if state.bounds.deadline_s is None or state.paused:
            return
        left = state.bounds.deadline_s - state.active(ctx.clock.now())
        self._timer = ctx.clock.call_later(max(0.0, left), self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        state = self._ctx.state
        if state.paused:
            return  # armed again when the pause ends
        if exceeded(self._ctx) is not None and _reached(self._ctx):
            self._ctx.interrupts.fire("deadline")
        else:
            self._arm()

    def close(self) -> None:
        self._unsubscribe()
        if self._timer is not None:
            self._timer.cancel()


def _reached(ctx: RunContext) -> bool:
    limit = ctx.state.bounds.deadline_s
    return limit is not None and ctx.state.active(ctx.clock.now()) >= limit - 1e-6


@dataclass(slots=True)
class RunConfig:
    """What a run works with. Provider and policy may change during a run, from the next request on."""

    provider: Provider
    policy: RecoveryPolicy
    system: str = ""
    max_output: int | None = None
    effort: Effort | None = None
    tool_choice: ToolChoice = "auto"
    compact_now: bool = False

    @property
    def cap(self) -> int | None:
        """The output cap to request, in tokens."""
        return self.max_output or self.provider.model.max_output


@dataclass(frozen=True, slots=True)
class RunEnd:
    """Why a run ends. `interrupted`: the program itself is exiting, so there is no outcome yet (rule J7)."""

    outcome: ev.Outcome
    class_: str | None = None
    error: str | None = None
    advice: str = ""
    bound: str | None = None
    until: float | None = None
    question: ev.HumanRequested | None = None
    text: str | None = None
    interrupted: bool = False


def interrupted(ctx: RunContext) -> RunEnd | None:
    """The end that follows from a stop, a deadline or the program's exit, if there was one (rules L9, L3, J7)."""
    cause = ctx.interrupts.cause
    if cause == "suspend":
        return RunEnd("cancelled", interrupted=True)
    if cause == "stop":
        return RunEnd("cancelled", error="stopped by the person")
    if cause == "deadline":
        limit = ctx.state.bounds.deadline_s
        return RunEnd("budget", bound="deadline_s", error=f"the deadline of {limit:g} s is reached")
    return None


def bounded(ctx: RunContext) -> RunEnd | None:
    """The end that follows from a bound, if one is reached. Checked before every request (rule L1)."""
    hit = exceeded(ctx)
    return bound_end(hit) if hit else None


def bound_end(hit: BoundHit) -> RunEnd:
    return RunEnd(hit.outcome, bound=hit.bound, error=hit.why)
