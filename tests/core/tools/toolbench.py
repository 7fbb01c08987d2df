"""What the tests of tools share: a folder, a context, and a call from JSON text to result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from handrail.clock import ManualClock
from handrail.messages import text_of
from handrail.providers._calls import parse_call
from handrail.tools.base import Preview, Tool, ToolContext, ToolResult


class Bench:
    """A working folder with tools at work in it. The clock stands still: real work must not wait for it."""

    def __init__(self, cwd: Path) -> None:
        self.cwd = cwd
        self.live: list[str] = []
        self.ctx = ToolContext(cwd, ManualClock(), call_id="c1", progress=self.live.append, env=None)

    def parse(self, tool: Tool, arguments: dict[str, Any] | str) -> Any:
        raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
        return tool.parse(parse_call("c1", tool.name, raw))

    def preview(self, tool: Tool, **arguments: Any) -> Preview:
        return tool.preview(self.parse(tool, arguments), self.ctx)

    async def run(self, tool: Tool, **arguments: Any) -> ToolResult:
        return await tool.run(self.parse(tool, arguments), self.ctx)

    def write(self, path: str, content: str | bytes) -> Path:
        file = self.cwd / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    def read(self, path: str) -> bytes:
        return (self.cwd / path).read_bytes()


def words(result: ToolResult) -> str:
    """The text of a result."""
    return text_of(result.blocks)
