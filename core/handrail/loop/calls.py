"""What a batch works with: the kit, one slot for each call, and what comes of it all."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from handrail import events as ev
from handrail.human.approvals import Mode
from handrail.messages import Text, ToolCall
from handrail.tools.base import Preview, Tool, ToolContext, ToolResult
from handrail.tools.submit import SubmitTool


@dataclass(slots=True)
class Kit:
    """What calls may use: tools by name, the submission, the working folder, how approvals go."""

    tools: Mapping[str, Tool]
    cwd: Path
    submit: SubmitTool | None = None
    mode: Mode = "ask"
    env: Mapping[str, str] | None = None
    memory: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Slot:
    """One call on its way to its one result."""

    call: ToolCall
    tool: Tool | None = None
    args: Any = None
    preview: Preview = field(default_factory=lambda: Preview(""))
    wrong: str | None = None  # why it cannot run: unknown tool, bad arguments
    result: ToolResult | None = None
    ctx: ToolContext | None = None
    began: float | None = None
    task: asyncio.Task[None] | None = None
    open: bool = False  # holds for a person who is not there


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What a batch came to. `absent` is a question that found nobody; its call has no result yet (rule H4)."""

    results: tuple[tuple[ToolCall, ToolResult], ...] = ()
    votes: int = 0
    ends: bool = False
    exhausted: bool = False
    absent: ev.HumanRequested | None = None
    ran: bool = False


def stored_result(event: ev.ToolFinished | None) -> ToolResult | None:
    """A result on record, as it counts for the votes."""
    if event is None:
        return None
    return ToolResult(
        (Text(event.text), *event.images), event.is_error, event.terminate, event.summary, event.diff
    )
