"""How a server is reached: its process, its address, or a server in this process; each as a target for the client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from handrail.clock import Clock
from handrail.mcp._log import ServerLog
from handrail.mcp._process import ServerProcess, Watcher
from handrail.server_settings import ServerSettings
from handrail.tools.stopping import whole

if TYPE_CHECKING:
    import httpx2

    from handrail.mcp._border import Border


@dataclass(frozen=True, slots=True)
class Wire:
    """A way to a server. `closed` returns, with the reason, once nothing can come any more."""

    target: Any
    border: Border
    closed: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Place:
    """Where servers run and what they leave behind goes."""

    cwd: Path
    folder: Path | None
    watcher: Watcher
    clock: Clock


@asynccontextmanager
async def process_wire(
    name: str, settings: ServerSettings, place: Place, log: ServerLog
) -> AsyncIterator[Wire]:
    """A server that is started. Raises OSError, ValueError when its command cannot be started."""
    from handrail.mcp._border import Border
    from handrail.mcp._stdio import StdioWire

    server, cancelled = await whole(
        ServerProcess.start(
            settings.command or "",
            settings.args,
            cwd=_folder(settings.cwd, place.cwd),
            env=settings.env,
            watcher=place.watcher,
            note=place.folder / name if place.folder is not None else None,
        )
    )
    try:
        if cancelled:
            raise asyncio.CancelledError
        border = Border()
        wire = StdioWire(server, border, log, probe_s=min(settings.start_s / 2, 10.0))
        yield Wire(wire.transport(), border, wire.closed)
    finally:
        left, cancelled = await whole(server.end(place.clock))
        for each in left:
            log.add(f"[handrail] may still be running: {each}\n".encode())
        if cancelled:
            raise asyncio.CancelledError


@asynccontextmanager
async def http_wire(settings: ServerSettings, auth: httpx2.Auth | None) -> AsyncIterator[Wire]:
    """A server at an address."""
    from handrail.mcp._border import Border
    from handrail.mcp._http import http_transport

    border = Border()
    if auth is None and not any(name.lower() == "authorization" for name in settings.headers):
        from handrail.mcp.login import stored_auth

        auth = await stored_auth(settings.url or "")
    yield Wire(http_transport(settings.url or "", settings.headers, border, auth), border, _never)


@asynccontextmanager
async def inside_wire(server: Any) -> AsyncIterator[Wire]:
    """A server of the SDK in this process: scenarios and tests."""
    from handrail.mcp._border import Border

    yield Wire(server, Border(), _never)


async def _never() -> str:
    await asyncio.get_running_loop().create_future()
    raise AssertionError("unreachable")


def _folder(given: str | None, cwd: Path) -> Path:
    return (cwd / Path(given).expanduser()) if given else cwd
