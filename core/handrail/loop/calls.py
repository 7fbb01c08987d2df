"""What a tool batch works on: what calls may use, one call on its way to its result, and the outcome of all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from handrail import events as ev
from handrail.messages import ToolCall
from handrail.providers.base import ToolSpec
from handrail.tools.approval import Mode
from handrail.tools.base import Preview, Tool, ToolContext, ToolResult
from handrail.tools.source import ToolsChange, ToolSource
from handrail.tools.submit import SubmitTool


@dataclass(slots=True)
class ToolSet:
    """What calls may use: tools by name, the submit tool, the working folder, the approval mode. At most `at_once` of
    them run at the same time (rule L6). `source` has tools that come and go."""

    tools: Mapping[str, Tool]
    cwd: Path
    submit: SubmitTool | None = None
    mode: Mode = "ask"
    env: Mapping[str, str] | None = None
    memory: dict[str, Any] = field(default_factory=dict)
    at_once: int = 16
    source: ToolSource | None = None
    fixed: Mapping[str, Tool] = field(init=False)

    def __post_init__(self) -> None:
        self.fixed = self.tools

    def look(self) -> Sequence[ToolsChange]:
        """Take over the tools that the source has now; a fixed tool keeps its name. Returns what changed."""
        if self.source is None:
            return ()
        changes = self.source.take_changes()
        self.tools = {**self.source.tools, **self.fixed}
        return changes

    @property
    def specs(self) -> list[ToolSpec]:
        """The tools as the model sees them."""
        specs = [tool.spec for tool in self.tools.values()]
        return [*specs, self.submit.spec] if self.submit else specs


@dataclass(slots=True)
class PendingCall:
    """One call on its way to its one result."""

    call: ToolCall
    tool: Tool | None = None
    args: Any = None
    preview: Preview = field(default_factory=lambda: Preview(""))
    wrong: str | None = None  # why it cannot run: unknown tool, bad arguments
    result: ToolResult | None = None
    tool_context: ToolContext | None = None
    began: float | None = None
    task: asyncio.Task[None] | None = None
    allowed: str = ""  # why it may run, for the record
    open: bool = False  # waits for a person who is not there


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The outcome of a batch. `absent`: a question without anybody to answer it; its call has no result (rule H4)."""

    results: tuple[tuple[ToolCall, ToolResult], ...] = ()
    votes: int = 0
    ends: bool = False
    exhausted: bool = False
    absent: ev.HumanRequested | None = None
    ran: bool = False
