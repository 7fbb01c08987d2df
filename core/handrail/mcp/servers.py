"""All servers of a session: started side by side, their tools as they are now, switched on and off, ended together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from handrail.clock import Clock, RealClock
from handrail.mcp._deadline import within
from handrail.mcp._process import Watcher, sweep
from handrail.mcp._supervisor import Supervisor
from handrail.mcp.tool import ServerTool
from handrail.server_settings import ServerSettings, is_server_name
from handrail.tools.source import ServerStatus, ToolsChange

FIRST_S: Final = 10.0
"""How long the first request waits for servers that are still starting."""


class Servers:
    """The servers of one session. `folder` is where its files go; `inside` holds servers of the SDK in this process.
    `sessions` is the folder of all sessions: what a killed program has left running, as they name it, is ended.

    Raises ValueError for a name that cannot stand in a tool's name.
    """

    def __init__(
        self,
        settings: Mapping[str, ServerSettings],
        *,
        cwd: Path,
        clock: Clock | None = None,
        folder: Path | None = None,
        inside: Mapping[str, Any] | None = None,
        sessions: Path | None = None,
    ) -> None:
        for name in [*settings, *(inside or {})]:
            if not is_server_name(name):
                raise ValueError(
                    f"{name!r} is no name for a server: letters, digits, - and single _, at most 32"
                )
        self._clock = clock or RealClock()
        self._folder, self._sessions = folder, sessions
        self._sweeping: asyncio.Future[Any] | None = None
        self._ending: set[asyncio.Future[None]] = set()
        self._watcher = Watcher()
        self._listeners: list[Callable[[], None]] = []
        self._tools: dict[str, ServerTool] = {}
        self._told: dict[str, tuple[tuple[str, ...], str]] = {}
        self._waited = False
        self._all = {
            name: Supervisor(
                name,
                settings.get(name),
                cwd=cwd,
                clock=self._clock,
                folder=folder,
                watcher=self._watcher,
                on_change=self._changed,
                inside=(inside or {}).get(name),
            )
            for name in [*settings, *(n for n in inside or {} if n not in settings)]
        }

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever a server's state or tools changed."""
        self._listeners.append(listener)

    def start(self) -> None:
        """Start those that are switched on, in the background. Nothing waits."""
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for server in self._all.values():
            if server.settings.enabled and not server.switched_off:
                server.start()
        if self._sessions is not None and self._sweeping is None:
            folders = list(self._sessions.glob("*/mcp"))
            self._sweeping = asyncio.ensure_future(sweep(folders, self._clock))

    async def settle(self, seconds: float = FIRST_S, *, patiently: bool = False) -> None:
        """Return when every server is up or will not come up, at the latest after `seconds`; only once is waited so.

        `patiently`: each is waited for until its own deadline.
        """
        if self._waited and not patiently:
            return
        self._waited = True
        starting = [s for s in self._all.values() if not s.settled]
        if starting:
            limit = sum(s.settings.start_s for s in starting) if patiently else seconds
            with starting[0].busy(), suppress(TimeoutError):
                async with within(starting[0].clock, limit):
                    for server in starting:
                        await _settled(server)

    def take_changes(self) -> list[ToolsChange]:
        """What changed since the last look; the tools are those of now from here on, until the next look."""
        changes: list[ToolsChange] = []
        self._tools = {}
        for name, server in self._all.items():
            names = []
            for tool in self._offered(server):
                if tool.name not in self._tools:
                    self._tools[tool.name] = tool
                    names.append(tool.name)
            now = (tuple(names), server.state if server.state in ("starting", "failed") else "")
            before, self._told[name] = self._told.get(name, ((), "")), now
            if now != before:
                added = tuple(n for n in now[0] if n not in before[0])
                removed = tuple(n for n in before[0] if n not in now[0])
                changes.append(ToolsChange(name, server.state, added, removed, server.why if now[1] else ""))
        return changes

    @property
    def tools(self) -> Mapping[str, ServerTool]:
        """The tools by name, as of the last look."""
        return self._tools

    def instructions(self) -> list[tuple[str, str]]:
        """What each server that is up says of its use: (server, text), at most 2 kB each."""
        found = [(n, s.connection.instructions) for n, s in self._all.items() if s.connection is not None]
        return [(name, text) for name, text in found if text]

    def statuses(self) -> list[ServerStatus]:
        """Every server as it is now."""
        return [self._status(server) for server in self._all.values()]

    def switch(self, name: str, on: bool) -> None:
        """Switch a server on or off; its tools come or go at the next request. Raises KeyError."""
        server = self._all[name]
        server.switched_off = not on
        if on:
            server.start()
        else:
            ending = asyncio.ensure_future(server.stop())
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)

    def server(self, name: str) -> Supervisor:
        """One of them. Raises KeyError."""
        return self._all[name]

    async def close(self) -> None:
        """End them all, with everything that they started."""
        if self._sweeping is not None:
            await asyncio.gather(self._sweeping, return_exceptions=True)
        await asyncio.gather(*self._ending, return_exceptions=True)
        await asyncio.gather(*(server.stop() for server in self._all.values()))
        self._told, self._waited = {}, False
        await self._watcher.close()

    def _offered(self, server: Supervisor) -> list[ServerTool]:
        if server.state not in ("ready", "restarting") or server.lists is None:
            return []
        patterns = server.settings.tools
        return [
            ServerTool(server, tool)
            for tool in server.lists.tools
            if patterns is None or any(fnmatchcase(tool.name, pattern) for pattern in patterns)
        ]

    def _status(self, server: Supervisor) -> ServerStatus:
        connection, lists = server.connection, server.lists
        return ServerStatus(
            server.name,
            server.state,
            "in this process" if server.inside is not None else server.settings.where,
            server.why if server.state in ("failed", "restarting") else "",
            connection.version if connection is not None else "",
            connection.protocol if connection is not None else "",
            tuple(self._offered(server)),
            tuple(p.name for p in lists.prompts) if lists is not None else (),
            tuple(str(r.uri) for r in lists.resources) if lists is not None else (),
            tuple(lists.left_out.items()) if lists is not None else (),
            server.log.path,
        )

    def _changed(self) -> None:
        for listener in self._listeners:
            listener()


async def _settled(server: Supervisor) -> None:
    while not server.settled:
        await server.moved()
