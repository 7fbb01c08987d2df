"""The events of a person's part in a run: questions, approvals, queued messages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from handrail.events.parts import EventBase, FormField, HumanKind, QueuedMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanRequested(EventBase):
    """The run waits for a person (rules H1, H2). `call_id` is None for the marked last line.

    With `fields` the answer is a form: JSON, or `name=value` pairs. `resume` is what the tool that asks needs to
    continue after a restart.
    """

    id: str
    kind: HumanKind
    needed: str
    type: Literal["human_requested"] = "human_requested"
    where: str = ""
    tried: str = ""
    call_id: str | None = None
    tool: str | None = None
    secret: bool = False
    fields: tuple[FormField, ...] = ()
    resume: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanAnswered(EventBase):
    """What the person said. A secret answer has no text here (rule H3); that to a form is JSON.

    `by` says who answered: a user and a terminal.

    `cancelled`: the person took no decision. `withdrawn`: the asker no longer asks.
    """

    id: str
    how: Literal["resolved", "answered", "declined", "cancelled", "stopped", "nobody", "withdrawn"]
    type: Literal["human_answered"] = "human_answered"
    text: str = ""
    secret: bool = False
    by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequested(EventBase):
    """A call needs approval (rule H5). `pattern` is what «always this session» would allow; None: not available.

    `covers` is an example of a call that the pattern would allow, `asks_again` of one that would be asked about.
    """

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
    covers: str = ""
    asks_again: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAnswered(EventBase):
    """Whether the call may run. `pattern` is what is allowed from now on; `by` says who: a user and a terminal."""

    id: str
    how: Literal["once", "session", "deny", "stopped", "nobody"]
    type: Literal["approval_answered"] = "approval_answered"
    text: str = ""
    pattern: str | None = None
    by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueChanged(EventBase):
    """The messages that are now queued, in order. `returned` holds those that went back to the person (rule L8)."""

    type: Literal["queue_changed"] = "queue_changed"
    steering: tuple[QueuedMessage, ...] = ()
    follow_ups: tuple[QueuedMessage, ...] = ()
    returned: tuple[QueuedMessage, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Steered(EventBase):
    """A queued message was delivered to the model and removed from the queue (rule L8)."""

    id: str
    text: str
    type: Literal["steered"] = "steered"
    kind: Literal["steer", "follow_up"] = "steer"
