"""/mcp: the servers of a run on the screen, and switched on and off from there."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from ports import FakeSession
from textual.widgets import OptionList

from handrail.messages import ToolCall
from handrail.tools.base import Tool, ToolContext, ToolResult
from handrail.tools.source import ServerStatus
from handrail_tui.app import HandrailApp
from handrail_tui.screens.servers import ServersScreen


class Served(Tool):
    description = "For tests."
    parameters = MappingProxyType({"type": "object"})

    def __init__(self, name: str, effect: Any) -> None:
        self.name, self.effect = name, effect

    def parse(self, call: ToolCall) -> dict[str, Any]:
        return call.arguments

    async def run(self, args: Any, ctx: ToolContext) -> ToolResult:
        return ToolResult("")


class FakeSource:
    """Servers that are what they are told to be."""

    def __init__(self) -> None:
        self.switched: list[tuple[str, bool]] = []
        tools = (Served("mcp__git__log", "read"), Served("mcp__git__commit", "run"))
        self.all = [
            ServerStatus(
                "git", "ready", "uvx mcp-server-git", version="git 1", tools=tools, left_out=(("x", "no"),)
            ),
            ServerStatus("bad", "failed", "nowhere", why="it says \x1b[2J nothing"),
        ]

    def statuses(self) -> list[ServerStatus]:
        return self.all

    def switch(self, name: str, on: bool) -> None:
        if name not in [status.name for status in self.all]:
            raise KeyError(name)
        self.switched.append((name, on))


def started() -> tuple[HandrailApp, FakeSource]:
    session = FakeSession()
    session.tool_source = FakeSource()
    return HandrailApp(session), session.tool_source


async def test_the_servers_are_listed_and_switched() -> None:
    app, source = started()
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press(*"/mcp", "enter")
        await pilot.pause(0.1)
        assert isinstance(app.screen, ServersScreen)
        options = app.screen.query_one(OptionList)
        shown = "\n".join(str(options.get_option_at_index(n).prompt) for n in range(options.option_count))
        for words in (
            "git",
            "ready · 2 tools · git 1",
            "asks first: commit",
            "does not ask: log",
            "left out: x: no",
        ):
            assert words in shown
        assert "bad" in shown and "failed" in shown and "\x1b" not in shown
        await pilot.press("enter", "down", "enter")
        await pilot.pause()
        assert source.switched == [("git", False), ("bad", True)]
        await pilot.press("escape")
        await pilot.pause()
        assert not isinstance(app.screen, ServersScreen)


async def test_a_server_is_switched_by_its_name() -> None:
    app, source = started()
    async with app.run_test(size=(100, 30)) as pilot:
        controller = app.screen.controller  # type: ignore[attr-defined]
        assert controller.perform("mcp", "off git") == "git is switched off, from the next request on"
        assert source.switched == [("git", False)]
        assert controller.perform("mcp", "off nothing") == "there is no server nothing; there are git, bad"
        assert "takes on NAME or off NAME" in controller.perform("mcp", "maybe")
        await pilot.pause()


async def test_without_a_server_the_command_says_how_to_get_one() -> None:
    app = HandrailApp(FakeSession())
    async with app.run_test(size=(100, 30)) as pilot:
        words = app.screen.controller.perform("mcp")  # type: ignore[attr-defined]
        assert "handrail mcp add" in words
        await pilot.pause()
