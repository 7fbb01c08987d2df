"""JSON-RPC 2.0 in lines of JSON, as agents and editors speak it over a pipe.

Messages are handed on in the order in which they came. What is no message is counted and passed over: many a program
prints a greeting, or a warning, where only messages belong. One that sends nothing else is given up on.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias

READ: Final = 256 * 1024
MAX_LINE: Final = 64 * 1024 * 1024
MAX_GARBAGE: Final = 200
"""Lines that are no message, in a row, until nothing else is expected to come."""

INVALID_PARAMS: Final = -32602
METHOD_NOT_FOUND: Final = -32601
INTERNAL_ERROR: Final = -32603

Id: TypeAlias = str | int
Params: TypeAlias = dict[str, Any]
Asked: TypeAlias = Callable[[str, Params, Id | None], object]
"""Hears of a request or, when the id is None, of a notification. A request is answered later, by `respond`."""


class Reads(Protocol):
    async def read(self, size: int, /) -> bytes: ...


class Writes(Protocol):
    def write(self, data: bytes, /) -> object: ...

    async def drain(self) -> object: ...


class RpcError(Exception):
    """The other side answered with an error. `words` holds its message and what it says in the details."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        self.code, self.message, self.data = code, message, data
        super().__init__(self.words)

    @property
    def words(self) -> str:
        """For a person: the details where they say more than the message."""
        details = self.data.get("details") if isinstance(self.data, dict) else self.data
        said = details if isinstance(details, str) else json.dumps(details) if details else ""
        generic = self.message.strip().lower() in ("internal error", "")
        return said if said and generic else f"{self.message}: {said}" if said else self.message


class PeerGone(Exception):
    """The other side ended, or sends nothing that can be read."""


class Peer:
    """One side of a connection. `run` reads until the other side ends; everything else may be called meanwhile."""

    def __init__(self, reader: Reads, writer: Writes, asked: Asked) -> None:
        self._reader, self._writer, self._asked = reader, writer, asked
        self._waiting: dict[Id, asyncio.Future[Any]] = {}
        self._number = 0
        self._garbage = 0
        self._gone: str | None = None
        self.last_bytes = 0.0

    async def request(self, method: str, params: Params) -> Any:
        """The result of `method`. Raises RpcError, PeerGone."""
        if self._gone is not None:
            raise PeerGone(self._gone)
        self._number += 1
        id = self._number
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[id] = future
        try:
            await self._send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
            return await future
        finally:
            self._waiting.pop(id, None)

    async def notify(self, method: str, params: Params) -> None:
        """Tell the other side; nothing comes back. Raises PeerGone."""
        await self._send({"jsonrpc": "2.0", "method": method, "params": params})

    async def respond(self, id: Id, result: object) -> None:
        """Answer a request. One whose asker is gone is answered to nobody."""
        await self._reply({"jsonrpc": "2.0", "id": id, "result": result})

    async def refuse(self, id: Id, code: int, message: str) -> None:
        """Answer a request with an error."""
        await self._reply({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})

    async def run(self) -> None:
        """Read messages until the other side ends. Whoever waits for an answer then gets PeerGone."""
        pending = b""
        why = "it ended"
        try:
            while data := await self._reader.read(READ):
                self.last_bytes = asyncio.get_running_loop().time()
                *lines, pending = (pending + data).split(b"\n")
                for line in lines:
                    self._line(line)
                if len(pending) > MAX_LINE:
                    raise PeerGone(f"it sent a line of more than {MAX_LINE} bytes")
                await asyncio.sleep(0)  # a flood must leave room for whoever wants to stop it
        except PeerGone as gone:
            why = str(gone)
        except OSError as error:
            why = error.strerror or str(error)
        finally:
            self._end(why)

    def _line(self, line: bytes) -> None:
        try:
            message = json.loads(line.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict) or not self._message(message):
            if line.strip():
                self._garbage += 1
                if self._garbage >= MAX_GARBAGE:
                    raise PeerGone(f"it sent {MAX_GARBAGE} lines that are no messages of the protocol")
            return
        self._garbage = 0

    def _message(self, message: dict[str, Any]) -> bool:
        """Hand one message on. False: it is none."""
        method, id = message.get("method"), message.get("id")
        if not isinstance(id, str | int) or isinstance(id, bool):
            id = None
        if isinstance(method, str):
            params = message.get("params")
            self._asked(method, params if isinstance(params, dict) else {}, id)
            return True
        if id is None or not ("result" in message or "error" in message):
            return False
        future = self._waiting.get(id)
        if future is None or future.done():
            return True  # an answer to what nobody waits for any more
        error = message.get("error")
        if error is None:
            future.set_result(message.get("result"))
        else:
            future.set_exception(_rpc_error(error))
        return True

    async def _send(self, message: dict[str, Any]) -> None:
        if self._gone is not None:
            raise PeerGone(self._gone)
        try:
            self._writer.write(json.dumps(message, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
            await self._writer.drain()
        except OSError as error:
            raise PeerGone(error.strerror or str(error)) from None

    async def _reply(self, message: dict[str, Any]) -> None:
        try:
            await self._send(message)
        except PeerGone:
            return

    def _end(self, why: str) -> None:
        self._gone = why
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(PeerGone(why))


def _rpc_error(error: object) -> RpcError:
    if not isinstance(error, dict):
        return RpcError(INTERNAL_ERROR, str(error))
    code, message = error.get("code"), error.get("message")
    return RpcError(
        code if isinstance(code, int) else INTERNAL_ERROR, str(message or "error"), error.get("data")
    )
