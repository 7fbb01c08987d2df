"""The bounds of a run (rules L1 to L3): what forbids the next request, and the deadline's alarm."""

from __future__ import annotations

from dataclasses import dataclass

from handrail import events as ev
from handrail.clock import Timer
from handrail.loop.stage import Stage


@dataclass(frozen=True, slots=True)
class Hit:
    """A bound that forbids the next request. `outcome` is turn-limit or budget."""

    outcome: ev.Outcome
    bound: str
    why: str


def forbids(stage: Stage, *, after_s: float = 0.0) -> Hit | None:
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

    def __init__(self, stage: Stage) -> None:
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


def _reached(stage: Stage) -> bool:
    limit = stage.state.bounds.deadline_s
    return limit is not None and stage.state.active(stage.clock.now()) >= limit - 1e-6
