"""The events of tool calls and submissions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from handrail.events.parts import CallInfo, EventBase, FieldError
from handrail.messages import Image


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolBatchStarted(EventBase):
    type: Literal["tool_batch_started"] = "tool_batch_started"
    calls: tuple[CallInfo, ...] = ()
    sequential: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted(EventBase):
    """A tool starts: its arguments were valid, and it was not denied.

    `allowed` says why it may run: `reads`, `once`, the mode (`mode edits`), or the pattern of an earlier approval
    (`pattern git diff *`)."""

    call_id: str
    name: str
    type: Literal["tool_started"] = "tool_started"
    title: str = ""
    effect: Literal["read", "edit", "run"] = "read"
    allowed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolProgress(EventBase):
    """More live output of a running tool."""

    call_id: str
    type: Literal["tool_progress"] = "tool_progress"
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFinished(EventBase):
    """The one result of a call, executed or not. `text` is for the model; `summary` is a few words for people."""

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
class ToolBatchFinished(EventBase):
    """All results are there. `votes` of `of` results voted to end the loop; `ends` says whether it ends (rule L7)."""

    type: Literal["tool_batch_finished"] = "tool_batch_finished"
    votes: int = 0
    of: int = 0
    ends: bool = False
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission(EventBase):
    """A submission was validated. `attempt` counts the invalid ones so far, including this one if it is invalid."""

    accepted: bool
    call_id: str
    type: Literal["submission"] = "submission"
    attempt: int = 0
    of: int = 0
    errors: tuple[FieldError, ...] = ()
    value: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsChanged(EventBase):
    """The tools of an MCP server came, went or are late. From the next request on the model has the new ones.

    `state` is starting, ready, restarting, failed or off; `why` says what is wrong. `of` counts the server's tools.
    """

    server: str
    type: Literal["tools_changed"] = "tools_changed"
    state: str = ""
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    of: int = 0
    why: str = ""
