"""Servers that misbehave, and what a test needs to call them."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from handrail.clock import RealClock
from handrail.mcp import Servers
from handrail.messages import Text, ToolCall
from handrail.server_settings import ServerSettings
from handrail.tools.base import Form, FormAnswer, ToolContext, ToolResult

NASTY = Path(__file__).parent / "nasty_mcp.py"


@dataclass
class Bench:
    """Servers under test, and a person who answers forms from a list."""

    servers: Servers
    folder: Path
    log: Path
    answers: list[FormAnswer] = field(default_factory=list)
    asked: list[Form] = field(default_factory=list)
    progress: list[str] = field(default_factory=list)
    resume: Any = None

    async def ask(self, form: Form) -> FormAnswer:
        self.asked.append(form)
        return self.answers.pop(0)

    async def call(self, tool: str, server: str = "nasty", **arguments: Any) -> ToolResult:
        """The result of a call. Raises ToolError."""
        self.servers.take_changes()
        found = self.servers.tools[f"mcp__{server}__{tool}"]
        ctx = ToolContext(
            self.folder, RealClock(), "c1", self.progress.append, ask_form=self.ask, resume=self.resume
        )
        return await found.run(found.parse(ToolCall("c1", found.name, arguments)), ctx)

    def seen(self, method: str) -> list[dict[str, Any]]:
        """The messages of that method that the server got."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [m for m in map(json.loads, lines) if m.get("method") == method]

    @property
    def pids(self) -> list[int]:
        lines = map(json.loads, self.log.read_text().splitlines())
        return [pid for line in lines for pid in line.get("pids", ())]


StartBench = Callable[..., Awaitable[Bench]]


@pytest.fixture
async def nasty(tmp_path: Path) -> AsyncIterator[StartBench]:
    """Start the nasty server with flags; settings by name."""
    open_ones: list[Servers] = []

    async def start(*flags: str, settle: bool = True, **settings: Any) -> Bench:
        bench = Bench(make(tmp_path, flags, settings), tmp_path, tmp_path / "nasty.jsonl")
        open_ones.append(bench.servers)
        bench.servers.start()
        if settle:
            await bench.servers.settle(20)
        return bench

    yield start
    for servers in open_ones:
        await servers.close()


def make(folder: Path, flags: tuple[str, ...], settings: dict[str, Any]) -> Servers:
    args = (str(NASTY), "--log", str(folder / "nasty.jsonl"), *flags)
    one = ServerSettings(command=sys.executable, args=args, **settings)
    return Servers({"nasty": one}, cwd=folder, folder=folder / "mcp")


async def until(check: Callable[[], object], seconds: float = 5.0) -> None:
    """Wait for something that a process does."""
    for _ in range(int(seconds * 100)):
        if check():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never came")


def text_of(result: ToolResult) -> str:
    return "\n".join(block.text for block in result.blocks if isinstance(block, Text))


@asynccontextmanager
async def running(servers: Servers) -> AsyncIterator[Servers]:
    """Servers from start to end."""
    servers.start()
    try:
        await servers.settle(20)
        servers.take_changes()
        yield servers
    finally:
        await servers.close()
