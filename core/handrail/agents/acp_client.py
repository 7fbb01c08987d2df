"""The client's side of the Agent Client Protocol: starts a session with an agent, asks, cancels, answers.

Only what the protocol promises is taken for granted. What an agent sends beside it is ignored; what it asks for that
we do not offer (files, terminals: agents do that by themselves) is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from handrail._version import __version__
from handrail.agents._rpc import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    Id,
    Params,
    Peer,
    PeerGone,
    Reads,
    RpcError,
    Writes,
)

PROTOCOL: Final = 1
AUTH_REQUIRED: Final = -32000


@dataclass(frozen=True, slots=True)
class PermissionAsked:
    """The agent asks whether it may. `options` are (id, kind, name); `call` is the call as the protocol tells it."""

    id: Id
    call: Mapping[str, Any]
    options: tuple[tuple[str, str, str], ...]

    def option(self, *kinds: str) -> str | None:
        """The id of the first option of the first of these kinds that there is."""
        return next((id for kind in kinds for id, k, _ in self.options if k == kind), None)


@dataclass(frozen=True, slots=True)
class PromptEnded:
    """A prompt is over: the protocol's stop reason, and the tokens where the agent tells them."""

    stop: str
    usage: Mapping[str, Any]


class AcpClient:
    """One session with one agent. `update` hears of every update of it, `permission` of every question; answer with
    `decide`. While a stored session is loaded again, what the agent repeats goes nowhere."""

    def __init__(
        self,
        reader: Reads,
        writer: Writes,
        *,
        update: Callable[[Mapping[str, Any]], object],
        permission: Callable[[PermissionAsked], object],
    ) -> None:
        self._update, self._permission = update, permission
        self._peer = Peer(reader, writer, self._asked)
        self._reading: asyncio.Task[None] | None = None
        self._answers: set[asyncio.Task[None]] = set()
        self._open: dict[Id, PermissionAsked] = {}
        self._capabilities: Mapping[str, Any] = {}
        self._methods: tuple[str, ...] = ()
        self._loading = False
        self.session: str | None = None
        self.name = ""
        self.modes: tuple[str, ...] = ()
        self.mode: str | None = None

    # -- the beginning

    async def start(self) -> None:
        """Say who we are. Raises RpcError, PeerGone."""
        self._reading = asyncio.create_task(self._peer.run())
        answer = _mapping(
            await self._peer.request(
                "initialize",
                {
                    "protocolVersion": PROTOCOL,
                    "clientCapabilities": {
                        "fs": {"readTextFile": False, "writeTextFile": False},
                        "terminal": False,
                    },
                    "clientInfo": {"name": "handrail", "title": "Handrail", "version": __version__},
                },
            )
        )
        self._capabilities = _mapping(answer.get("agentCapabilities"))
        self._methods = tuple(str(m.get("id")) for m in _items(answer.get("authMethods")))
        info = _mapping(answer.get("agentInfo"))
        self.name = " ".join(str(info[k]) for k in ("title", "version") if info.get(k)) or str(
            info.get("name") or ""
        )

    @property
    def can_load(self) -> bool:
        """Whether a session can be taken up again."""
        return self._capabilities.get("loadSession") is True

    async def open(
        self, cwd: Path, servers: Sequence[Params], *, session: str | None = None, login: Sequence[str] = ()
    ) -> bool:
        """Begin a session in `cwd`, or take up `session`; `servers` are handed over as MCP servers. `login` are ways to
        log in that need no person, tried when the agent asks for it. True: the old session goes on. Raises RpcError,
        PeerGone."""
        for method in (*(m for m in login if m in self._methods), None):
            try:
                return await self._open_session(cwd, servers, session)
            except RpcError as error:
                if error.code != AUTH_REQUIRED or method is None:
                    raise
                await self._peer.request("authenticate", {"methodId": method})
        raise AssertionError("the last way either works or raises")

    async def _open_session(self, cwd: Path, servers: Sequence[Params], session: str | None) -> bool:
        params: Params = {"cwd": str(cwd), "mcpServers": list(servers)}
        if session is not None and self.can_load:
            self._loading = True
            try:
                answer = await self._peer.request("session/load", {"sessionId": session, **params})
                self._opened(session, answer)
                return True
            except RpcError as error:
                if error.code == AUTH_REQUIRED:
                    raise
            finally:
                self._loading = False
        answer = await self._peer.request("session/new", params)
        id = _mapping(answer).get("sessionId")
        if not isinstance(id, str) or not id:
            raise RpcError(INVALID_PARAMS, "it began a session without an id")
        self._opened(id, answer)
        return False

    def _opened(self, session: str, answer: object) -> None:
        self.session = session
        modes = _mapping(_mapping(answer).get("modes"))
        self.modes = tuple(str(m.get("id")) for m in _items(modes.get("availableModes")))
        current = modes.get("currentModeId")
        self.mode = current if isinstance(current, str) else None

    # -- while it runs

    async def set_mode(self, mode: str) -> bool:
        """Put the agent's own mode `mode` in force. False: it has none of that name, or refuses."""
        if mode not in self.modes:
            return False
        if mode != self.mode:
            try:
                await self._peer.request("session/set_mode", {"sessionId": self.session, "modeId": mode})
            except RpcError:
                return False
            self.mode = mode
        return True

    async def prompt(self, text: str) -> PromptEnded:
        """Ask, and return when the agent says that its turn is over. Raises RpcError, PeerGone."""
        blocks = [{"type": "text", "text": text}]
        answer = _mapping(
            await self._peer.request("session/prompt", {"sessionId": self.session, "prompt": blocks})
        )
        stop = answer.get("stopReason")
        return PromptEnded(stop if isinstance(stop, str) else "", _mapping(answer.get("usage")))

    async def cancel(self) -> None:
        """Stop what runs: open permissions are answered `cancelled`, as the protocol wants it."""
        for asked in tuple(self._open.values()):
            self.decide(asked, None)
        if self.session is not None:
            try:
                await self._peer.notify("session/cancel", {"sessionId": self.session})
            except PeerGone:
                return

    def decide(self, asked: PermissionAsked, option: str | None) -> bool:
        """Answer a permission with the id of an option; None: cancelled. False: it is not open any more."""
        if self._open.pop(asked.id, None) is None:
            return False
        chosen: Params = (
            {"outcome": "cancelled"} if option is None else {"outcome": "selected", "optionId": option}
        )
        self._later(self._peer.respond(asked.id, {"outcome": chosen}))
        return True

    async def close(self) -> None:
        """Stop listening."""
        if self._reading is not None:
            self._reading.cancel()
        for task in (*self._answers, *([self._reading] if self._reading else ())):
            task.cancel()
        await asyncio.gather(
            *self._answers, *([self._reading] if self._reading else ()), return_exceptions=True
        )

    # -- what the agent says

    def _asked(self, method: str, params: Params, id: Id | None) -> None:
        if method == "session/update" and id is None:
            update = _mapping(params.get("update"))
            if not self._loading and update and params.get("sessionId") in (self.session, None):
                self._update(update)
        elif method == "session/request_permission" and id is not None:
            options = tuple(
                (str(o.get("optionId")), str(o.get("kind")), str(o.get("name") or o.get("optionId")))
                for o in _items(params.get("options"))
            )
            asked = PermissionAsked(id, _mapping(params.get("toolCall")), options)
            self._open[id] = asked
            self._permission(asked)
        elif id is not None:
            self._later(self._peer.refuse(id, METHOD_NOT_FOUND, f"{method} is not offered here"))

    def _later(self, sending: Any) -> None:
        task: asyncio.Task[None] = asyncio.create_task(sending)
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _items(value: object) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
