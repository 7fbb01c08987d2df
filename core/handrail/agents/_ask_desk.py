"""Where the questions of an agent's `ask_human` arrive (see ask_server), and what the agent is handed for it."""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
from collections.abc import Awaitable, Callable
from typing import Any, Final, get_args

from handrail.agents import ask_server
from handrail.events import HumanKind
from handrail.messages import clean

Ask = Callable[[HumanKind, str, str, str], Awaitable[str]]
"""Asks the person: kind, needed, where, tried. Returns the answer; raises LookupError when nobody is there."""

_LONGEST: Final = 256 * 1024
_KINDS: Final[tuple[HumanKind, ...]] = get_args(HumanKind)


class AskDesk:
    """Listens on a loopback port while a run lasts. Used with `async with`."""

    def __init__(self, ask: Ask) -> None:
        self._ask, self._token = ask, secrets.token_urlsafe(24)
        self._server: asyncio.Server | None = None
        self._calls: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> AskDesk:
        self._server = await asyncio.start_server(self._call, "127.0.0.1", 0, limit=_LONGEST)
        return self

    async def __aexit__(self, *error: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in tuple(self._calls):
            task.cancel()
        await asyncio.gather(*self._calls, return_exceptions=True)

    @property
    def server(self) -> dict[str, Any]:
        """The MCP server as the protocol hands it over in `session/new`."""
        assert self._server is not None
        port = self._server.sockets[0].getsockname()[1]
        variables = {ask_server.PORT: str(port), ask_server.TOKEN: self._token}
        return {
            "name": "handrail",
            "command": sys.executable,
            "args": ["-m", ask_server.__name__],
            "env": [{"name": name, "value": value} for name, value in variables.items()],
        }

    async def _call(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._calls.add(task)
        try:
            asked = json.loads(await reader.readline())
            if not isinstance(asked, dict) or not secrets.compare_digest(
                str(asked.get("token")), self._token
            ):
                return
            answer = await self._answer(asked)
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()
        except (ValueError, OSError, asyncio.CancelledError):
            return
        finally:
            self._calls.discard(task)
            writer.close()

    async def _answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        words = {name: clean(str(asked.get(name) or "")) for name in ("kind", "needed", "where", "tried")}
        kind: HumanKind = next((k for k in _KINDS if k == words["kind"]), "other")
        if not words["needed"].strip():
            return {"text": "needed: say what the person should do.", "error": True}
        try:
            return {"text": await self._ask(kind, words["needed"], words["where"], words["tried"])}
        except LookupError as nobody:
            return {"text": str(nobody), "error": True}
