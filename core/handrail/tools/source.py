"""Tools that come and go while a run continues: those of MCP servers.

The run looks at a source before each request, so that a request and the calls it leads to agree on the tools.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from handrail.tools.base import Tool


@dataclass(frozen=True, slots=True)
class ToolsChange:
    """What changed at one server since the last look. `state` is the server's, `why` says what is wrong with it."""

    server: str
    state: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    why: str = ""


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

    async def close(self) -> None:
        """End it, with every process that it started."""
        ...
