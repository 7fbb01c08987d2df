"""The events of recovery: decisions, checkpoints, waits, compactions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from handrail.events.parts import DecisionKind, EventBase, Ledger, Moment, Reason
from handrail.messages import Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided(EventBase):
    """What recovery decided after a reply, and why (rule R2). `class` is the failure's class (rule K2).

    `advice` says what a person can do about a permanent failure (rule R15). `delay_s`/`until` are set when a pause
    comes first. `omits` says that the last reply and its results are removed from the model's view. `number` of `limit`
    counts the allowance that the decision uses. `before` and `after` are the ledger.
    `piece` is the call whose pictures leave the view (rule W6).
    """

    decision: DecisionKind
    reason: Reason
    type: Literal["decided"] = "decided"
    class_: Annotated[str | None, Field(alias="class")] = None
    delay_s: float | None = None
    until: Moment | None = None
    why: str = ""
    advice: str = ""
    piece: str | None = None
    number: int | None = None
    limit: int | None = None
    omits: bool = False
    failure: Failure | None = None
    evidence: dict[str, Any] = field(default_factory=dict)
    before: Ledger = field(default_factory=Ledger)
    after: Ledger = field(default_factory=Ledger)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointMade(EventBase):
    """The current checkpoint, as the model will see it (rules R8, R9). `quoted` counts quoted code points, `calls`
    names the interrupted calls."""

    text: str
    type: Literal["checkpoint_made"] = "checkpoint_made"
    quoted: int = 0
    of: int = 0
    pieces: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()


WaitHow: TypeAlias = Literal["elapsed", "skipped", "stopped", "steered", "recovery_off", "postponed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitStarted(EventBase):
    """A planned pause. `words` is the provider's message, `source` says where its guidance was found; without guidance,
    `poll` of `polls` counts the polls (rule U8)."""

    seconds: float
    until: Moment
    type: Literal["wait_started"] = "wait_started"
    decision: DecisionKind = "wait"
    reason: Reason = ""
    words: str = ""
    source: str = ""
    number: int | None = None
    limit: int | None = None
    poll: int | None = None
    polls: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitEnded(EventBase):
    """A pause is over. After `postponed` a longer one begins at once, because a person asked for it (rule U8)."""

    type: Literal["wait_ended"] = "wait_ended"
    how: WaitHow = "elapsed"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionStarted(EventBase):
    type: Literal["compaction_started"] = "compaction_started"
    why: str = ""
    messages: int = 0
    before: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionFinished(EventBase):
    """Older messages became `summary`; the newest `kept` messages stay whole. `before`/`after` are token estimates."""

    ok: bool
    type: Literal["compaction_finished"] = "compaction_finished"
    summary: str = ""
    kept: int = 0
    before: int = 0
    after: int = 0
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetSpent(EventBase):
    """An allowance of recovery is used up. This is announced once (rule R11)."""

    which: str
    type: Literal["budget_spent"] = "budget_spent"
    spent: int = 0
    limit: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NoProgress(EventBase):
    """The same call with the same result, or the same reply, `times` in a row (rule L13)."""

    what: Literal["call", "reply"]
    times: int
    type: Literal["no_progress"] = "no_progress"
    name: str = ""
