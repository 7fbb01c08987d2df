"""What a run works with, and why it ends."""

from __future__ import annotations

from dataclasses import dataclass

from handrail import events as ev
from handrail.loop.bounds import Hit, forbids
from handrail.loop.stage import Stage
from handrail.policy import RecoveryPolicy
from handrail.providers.base import Effort, Provider, ToolChoice


@dataclass(slots=True)
class Plan:
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


def interrupted(stage: Stage) -> End | None:
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


def bounded(stage: Stage) -> End | None:
    """The end that a bound means: checked before every request, whoever asked for it (rule L1)."""
    hit = forbids(stage)
    return bound_end(hit) if hit else None


def bound_end(hit: Hit) -> End:
    return End(hit.outcome, bound=hit.bound, error=hit.why)
