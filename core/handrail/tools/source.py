"""Tools that come and go while a run continues: those of MCP servers.

The run looks at a source before each request, so that a request and the calls it leads to agree on the tools.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from handrail.tools.base import Tool


def own_name(name: str) -> str:
    """A server's own name for its tool, from ours (`mcp__server__tool`); cut names stay cut."""
    return name.split("__", 2)[-1]


@dataclass(frozen=True, slots=True)
class ToolsChange:
    """What changed at one server since the last look. `state` is the server's, `why` says what is wrong with it."""

    server: str
    state: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """One server as a person sees it. `state` is off, starting, ready, restarting or failed; `why` says what is wrong;
    `left_out` holds the names of tools that cannot be offered, with the reason; `log` is the file with its noise."""

    name: str
    state: str
    where: str
    why: str = ""
    version: str = ""
    protocol: str = ""
    tools: tuple[Tool, ...] = ()
    prompts: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    log: Path | None = None


class ToolSource(Protocol):
    """Where such tools come from."""

    def start(self) -> None:
        """Start in the background. Does nothing when it runs already."""
        ...

    async def settle(self, *, patiently: bool = False) -> None:
        """Wait a few seconds, once, for what is still starting; `patiently`: until all of it is up or has failed."""
        ...

    def take_changes(self) -> Sequence[ToolsChange]:
        """What changed since the last look. From now on `tools` holds the tools of this moment."""
        ...

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools by name, as of the last look."""
        ...

    def instructions(self) -> Sequence[tuple[str, str]]:
        """What each server says about its use: (server, text)."""
        ...

    def statuses(self) -> Sequence[ServerStatus]:
        """Every server as it is now."""
        ...

    def switch(self, name: str, on: bool) -> None:
        """Switch a server on or off; its tools come or go at the next request. Raises KeyError."""
        ...

    async def close(self) -> None:
        """End it, with every process that it started."""
        ...
