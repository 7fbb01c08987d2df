"""The events of a run, its turns and its replies."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field

from handrail.events._people import HumanRequested
from handrail.events.parts import EventBase, Instruction, Moment, Outcome
from handrail.messages import AssistantMessage, Usage

SCHEMA = 1  # the version of the list of events


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(EventBase):
    """A run begins, or continues after an interruption (`resumed`). `recovery` holds the recovery settings."""

    type: Literal["run_started"] = "run_started"
    schema: int = SCHEMA
    session: str = ""
    prompt: str = ""
    context: str | None = None
    model: str = ""
    window: int | None = None
    max_output: int | None = None
    cwd: str = ""
    sandbox: str = ""
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
class TurnStarted(EventBase):
    """A request is about to be made. `purpose` distinguishes a summary for compaction from the task itself; `attempt`
    counts the attempts of one unbroken failure from 1."""

    type: Literal["turn_started"] = "turn_started"
    purpose: Literal["task", "summary"] = "task"
    attempt: int = 1
    checkpoint: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageStarted(EventBase):
    type: Literal["message_started"] = "message_started"
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageDelta(EventBase):
    """A piece of the reply. For calls, `index` is the call's number in the reply, `name` is set on its first piece, and
    `text` is raw JSON."""

    type: Literal["message_delta"] = "message_delta"
    kind: Literal["text", "thinking", "tool_call"] = "text"
    text: str = ""
    index: int | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageFinished(EventBase):
    """The reply, complete or as far as it came. It supersedes its deltas. `cost` is in dollars, None while unknown.

    `estimate` replaces a usage that the provider did not report, so that bounds on tokens and cost still work."""

    message: AssistantMessage
    type: Literal["message_finished"] = "message_finished"
    purpose: Literal["task", "summary"] = "task"
    seconds: float = 0.0
    cost: float | None = None
    estimate: Usage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFinished(EventBase):
    """Sums of the run so far. `cost` is None while a price is unknown. `context` is the share of a known window."""

    type: Literal["turn_finished"] = "turn_finished"
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)
    cost: float | None = None
    context: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsChanged(EventBase):
    """A person changed something: the model, a bound, recovery on or off, the approval mode, the folder of a fork.

    `by` says who changed the approval mode."""

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
    cwd: str | None = None
    by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice(EventBase):
    """A message for the person."""

    text: str
    type: Literal["notice"] = "notice"
    level: Literal["info", "warning", "error"] = "info"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished(EventBase):
    """The end of a run. Fields that do not apply are null. `class` is that of the last failure, `advice` what a
    person can do about it (rule R15)."""

    outcome: Outcome
    type: Literal["run_finished"] = "run_finished"
    class_: Annotated[str | None, Field(alias="class")] = None
    error: str | None = None
    advice: str = ""
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
class RunInterrupted(EventBase):
    """The program exited; the run can be resumed (rule J7)."""

    type: Literal["run_interrupted"] = "run_interrupted"
    signal: str | None = None
    session: str | None = None
