"""What happens: the closed list of events of a run. The screen, the lines and the journal are made from these.

Every event has `type`, `at` (seconds since the epoch; RFC 3339 in UTC on a wire) and `turn` (the request it belongs
to, counted from 1; None outside a turn). The list only ever grows; `run_started.schema` names the version.

Text in events is as it came (control characters included): whoever draws it cleans it (rule L11).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from handrail.events.parts import CallInfo as CallInfo
from handrail.events.parts import Decision as Decision
from handrail.events.parts import FieldError as FieldError
from handrail.events.parts import HumanKind as HumanKind
from handrail.events.parts import Instruction as Instruction
from handrail.events.parts import Ledger as Ledger
from handrail.events.parts import Moment as Moment
from handrail.events.parts import Outcome as Outcome
from handrail.events.parts import QueuedMessage as QueuedMessage
from handrail.events.parts import Reason as Reason
from handrail.messages import AssistantMessage, Failure, Image, Usage

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Event:
    at: Moment = 0.0
    turn: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(_Event):
    """A run begins, or goes on after an interruption (`resumed`). `limits` holds bounds and recovery's settings."""

    type: Literal["run_started"] = "run_started"
    schema: int = SCHEMA
    session: str = ""
    prompt: str = ""
    context: str | None = None
    model: str = ""
    window: int | None = None
    max_output: int | None = None
    cwd: str = ""
    approve: str = "ask"
    instructions: tuple[Instruction, ...] = ()
    tools: tuple[str, ...] = ()
    output: dict[str, Any] | None = None
    max_turns: int = 0
    max_attempts: int = 0
    deadline_s: float | None = None
    max_total_tokens: int | None = None
    max_cost: float | None = None
    recovery: dict[str, Any] = field(default_factory=dict)
    resumed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted(_Event):
    """A request is about to be made. `purpose` tells a summary for compaction from the task itself; `attempt` counts
    the tries of one unbroken failure from 1."""

    type: Literal["turn_started"] = "turn_started"
    purpose: Literal["task", "summary"] = "task"
    attempt: int = 1
    checkpoint: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageStarted(_Event):
    type: Literal["message_started"] = "message_started"
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageDelta(_Event):
    """More of the reply. For calls `index` numbers the call in the reply, `name` is set on its first piece and `text`
    is raw JSON."""

    type: Literal["message_delta"] = "message_delta"
    kind: Literal["text", "thinking", "tool_call"] = "text"
    text: str = ""
    index: int | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageFinished(_Event):
    """The reply, whole or as far as it came. It supersedes its deltas. `cost` in dollars, None while unknown.

    `estimate` stands in for a usage that the provider did not tell, so that bounds on tokens and cost still hold."""

    message: AssistantMessage
    type: Literal["message_finished"] = "message_finished"
    purpose: Literal["task", "summary"] = "task"
    seconds: float = 0.0
    cost: float | None = None
    estimate: Usage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolBatchStarted(_Event):
    type: Literal["tool_batch_started"] = "tool_batch_started"
    calls: tuple[CallInfo, ...] = ()
    sequential: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted(_Event):
    """A tool really starts: its arguments were valid and nobody denied it."""

    call_id: str
    name: str
    type: Literal["tool_started"] = "tool_started"
    title: str = ""
    effect: Literal["read", "edit", "run"] = "read"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolProgress(_Event):
    """More live output of a running tool."""

    call_id: str
    type: Literal["tool_progress"] = "tool_progress"
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFinished(_Event):
    """The one result of a call, executed or not. `text` is what the model gets; `summary` a few words for people."""

    call_id: str
    name: str
    type: Literal["tool_finished"] = "tool_finished"
    is_error: bool = False
    terminate: bool = False
    text: str = ""
    images: tuple[Image, ...] = ()
    seconds: float = 0.0
    summary: str = ""
    diff: str | None = None
    executed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolBatchFinished(_Event):
    """All results are there. `votes` of `of` results asked to end the loop; `ends` says whether it does (rule L7)."""

    type: Literal["tool_batch_finished"] = "tool_batch_finished"
    votes: int = 0
    of: int = 0
    ends: bool = False
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFinished(_Event):
    """Sums of the run so far. `cost` is None while a price is unknown. `context` is the share of a known window."""

    type: Literal["turn_finished"] = "turn_finished"
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)
    cost: float | None = None
    context: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission(_Event):
    """A call of submit was judged. `attempt` counts invalid ones so far, this one included when it is invalid."""

    accepted: bool
    call_id: str
    type: Literal["submission"] = "submission"
    attempt: int = 0
    of: int = 0
    errors: tuple[FieldError, ...] = ()
    value: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided(_Event):
    """What recovery decided after a reply, and why (rule R2). `class` is the failure's class (rule K2).

    `delay_s`/`until` are set when a pause comes first. `omits` says that the last reply and its results leave the
    model's view. `number` of `limit` counts the allowance named by the decision. `before` and `after` are the ledger.
    """

    decision: Decision
    reason: Reason
    type: Literal["decided"] = "decided"
    class_: Annotated[str | None, Field(alias="class")] = None
    delay_s: float | None = None
    until: Moment | None = None
    why: str = ""
    number: int | None = None
    limit: int | None = None
    omits: bool = False
    failure: Failure | None = None
    evidence: dict[str, Any] = field(default_factory=dict)
    before: Ledger = field(default_factory=Ledger)
    after: Ledger = field(default_factory=Ledger)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointMade(_Event):
    """The one checkpoint in force, as the model will see it (rules R8, R9). `quoted` counts quoted code points."""

    text: str
    type: Literal["checkpoint_made"] = "checkpoint_made"
    quoted: int = 0
    of: int = 0
    pieces: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitStarted(_Event):
    """A planned pause. `words` are the provider's own, `source` says where guidance was found, `poll` of `polls`
    counts when there is none (rule U8)."""

    seconds: float
    until: Moment
    type: Literal["wait_started"] = "wait_started"
    decision: Decision = "wait"
    reason: Reason = ""
    words: str = ""
    source: str = ""
    number: int | None = None
    limit: int | None = None
    poll: int | None = None
    polls: int | None = None


WaitHow: TypeAlias = Literal["elapsed", "skipped", "stopped", "steered", "recovery_off"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitEnded(_Event):
    type: Literal["wait_ended"] = "wait_ended"
    how: WaitHow = "elapsed"


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanRequested(_Event):
    """The run holds for a person (rules H1, H2). `call_id` is None for the marked last line."""

    id: str
    kind: HumanKind
    needed: str
    type: Literal["human_requested"] = "human_requested"
    where: str = ""
    tried: str = ""
    call_id: str | None = None
    tool: str | None = None
    secret: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanAnswered(_Event):
    """What the person said. A secret answer has no text here (rule H3)."""

    id: str
    how: Literal["resolved", "answered", "declined", "stopped", "nobody"]
    type: Literal["human_answered"] = "human_answered"
    text: str = ""
    secret: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequested(_Event):
    """A call asks first (rule H5). `pattern` is what «always this session» would allow; None: it cannot be given."""

    id: str
    call_id: str
    tool: str
    type: Literal["approval_requested"] = "approval_requested"
    title: str = ""
    detail: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    diff: str | None = None
    why: str = ""
    pattern: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAnswered(_Event):
    id: str
    how: Literal["once", "session", "deny", "stopped", "nobody"]
    type: Literal["approval_answered"] = "approval_answered"
    text: str = ""
    pattern: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueChanged(_Event):
    """What waits to be delivered now, in order. `returned` holds what went back to the person (rule L8)."""

    type: Literal["queue_changed"] = "queue_changed"
    steering: tuple[QueuedMessage, ...] = ()
    follow_ups: tuple[QueuedMessage, ...] = ()
    returned: tuple[QueuedMessage, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Steered(_Event):
    """A queued message entered the history; the same record takes it off the queue (rule L8)."""

    id: str
    text: str
    type: Literal["steered"] = "steered"
    kind: Literal["steer", "follow_up"] = "steer"


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsChanged(_Event):
    """A person changed something in mid-run: the model, a bound, recovery on or off, the approval mode."""

    type: Literal["settings_changed"] = "settings_changed"
    model: str | None = None
    window: int | None = None
    max_turns: int | None = None
    max_attempts: int | None = None
    deadline_s: float | None = None
    max_total_tokens: int | None = None
    max_cost: float | None = None
    recovery: bool | None = None
    approve: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionStarted(_Event):
    type: Literal["compaction_started"] = "compaction_started"
    why: str = ""
    messages: int = 0
    before: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionFinished(_Event):
    """Older messages became `summary`; the newest `kept` messages stay whole. `before`/`after` are token estimates."""

    ok: bool
    type: Literal["compaction_finished"] = "compaction_finished"
    summary: str = ""
    kept: int = 0
    before: int = 0
    after: int = 0
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetSpent(_Event):
    """An allowance of recovery is used up: one warning (rule R11)."""

    which: str
    type: Literal["budget_spent"] = "budget_spent"
    spent: int = 0
    limit: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NoProgress(_Event):
    """The same call with the same result, or the same reply, `times` in a row (rule L13)."""

    what: Literal["call", "reply"]
    times: int
    type: Literal["no_progress"] = "no_progress"
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice(_Event):
    """A line for the person."""

    text: str
    type: Literal["notice"] = "notice"
    level: Literal["info", "warning", "error"] = "info"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished(_Event):
    """The end of a run; null where a field does not apply. `class` is that of the last failure."""

    outcome: Outcome
    type: Literal["run_finished"] = "run_finished"
    class_: Annotated[str | None, Field(alias="class")] = None
    error: str | None = None
    bound: str | None = None
    until: Moment | None = None
    question: HumanRequested | None = None
    value: Any = None
    text: str | None = None
    stopped: bool = False
    requests: int = 0
    turns: int = 0
    attempts: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: float | None = None
    session: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInterrupted(_Event):
    """The program was told to end; the run can be resumed (rule J7)."""

    type: Literal["run_interrupted"] = "run_interrupted"
    signal: str | None = None
    session: str | None = None


Event: TypeAlias = (
    RunStarted
    | TurnStarted
    | MessageStarted
    | MessageDelta
    | MessageFinished
    | ToolBatchStarted
    | ToolStarted
    | ToolProgress
    | ToolFinished
    | ToolBatchFinished
    | TurnFinished
    | Submission
    | Decided
    | CheckpointMade
    | WaitStarted
    | WaitEnded
    | HumanRequested
    | HumanAnswered
    | ApprovalRequested
    | ApprovalAnswered
    | QueueChanged
    | Steered
    | SettingsChanged
    | CompactionStarted
    | CompactionFinished
    | BudgetSpent
    | NoProgress
    | Notice
    | RunFinished
    | RunInterrupted
)
Listener: TypeAlias = Callable[[Event], object]
