"""Real tools of a scenario that is not trusted: confined to its temporary folder (rule H7)."""

from __future__ import annotations

from typing import Any, Final

from handrail.errors import ConfigError
from handrail.messages import ToolCall
from handrail.scenario._file import Scenario
from handrail.toml import short_path
from handrail.tools import builtin_tools
from handrail.tools.base import Preview, Tool, ToolContext, ToolError, ToolResult

_RUNS: Final = "bash"


def would_run(scenario: Scenario) -> list[str]:
    """The commands that the replies of a scenario call for, in order; none when it does not use bash."""
    if _RUNS not in scenario.use:
        return []
    calls = [call for reply in scenario.replies for call in reply.calls if call.tool == _RUNS]
    return [str((call.args or {}).get("command", call.raw or "")) for call in calls]


def held_tools(scenario: Scenario) -> list[Tool]:
    """The real tools of a scenario that is not trusted. Commands run in the system's sandbox, without a network; the
    other tools refuse what lies outside the folder, whatever the scenario's own person approves.

    Raises ConfigError when it uses bash and this system has no sandbox.
    """
    from handrail.tools.sandbox import find_sandbox

    sandbox = None
    if _RUNS in scenario.use:
        try:
            sandbox = find_sandbox("on")
        except ConfigError as error:
            commands = "; ".join(would_run(scenario)) or "commands"
            raise ConfigError(
                f"{short_path(scenario.path)} is not trusted and would run: {commands}. Nothing was run: {error} "
                "Read the file; if you trust its folder: handrail config trust"
            ) from None
    return [
        tool if tool.name == _RUNS else _Held(tool) for tool in builtin_tools(scenario.use, sandbox=sandbox)
    ]


class _Held(Tool):
    """A file tool that works in the temporary folder only."""

    def __init__(self, tool: Tool) -> None:
        self._tool = tool
        self.name, self.description, self.parameters = tool.name, tool.description, tool.parameters
        self.effect, self.sequential, self.time_limit = tool.effect, tool.sequential, tool.time_limit

    def parse(self, call: ToolCall) -> Any:
        return self._tool.parse(call)

    def preview(self, args: Any, ctx: ToolContext) -> Preview:
        return self._tool.preview(args, ctx)

    async def run(self, args: Any, ctx: ToolContext) -> ToolResult:
        preview = await ctx.clock.in_thread(lambda: self._tool.preview(args, ctx))
        if preview.outside:
            places = ", ".join(preview.outside)
            raise ToolError(f"refused: {places}: a scenario that is not trusted has only its own folder")
        return await self._tool.run(args, ctx)
