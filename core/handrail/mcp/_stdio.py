"""A server over its standard input and output: one JSON-RPC message a line.

The SDK's own transport puts no bound on a line, gives noise to the terminal and reads on when a line is no message.
Here a line has a bound, what is no message goes to the log, and a process that ends ends the connection.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import (
    METHOD_NOT_FOUND,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCRequest,
    jsonrpc_message_adapter,
)

from handrail.mcp._border import Border
from handrail.mcp._log import ServerLog
from handrail.mcp._process import ServerProcess
from handrail.tools.output import size

MAX_LINE: Final = 8 * 1_048_576
"""Bytes of one message."""

_CHUNK: Final = 65_536
_LAST_WORDS_S: Final = 0.2
_DISCOVER: Final = "server/discover"


class LineTooLong(Exception):
    """A message over the bound."""

    def __init__(self) -> None:
        super().__init__(f"it sent a message of more than {size(MAX_LINE)}")


Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]


class StdioWire:
    """The lines of one process as messages."""

    def __init__(self, server: ServerProcess, border: Border, log: ServerLog, probe_s: float) -> None:
        self._server, self._border, self._log, self._probe_s = server, border, log, probe_s
        self._to_session: MemoryObjectSendStream[SessionMessage | Exception]
        self._probes: dict[str | int, asyncio.TimerHandle] = {}
        self._broken: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def closed(self) -> str:
        """Return, with the reason, once the connection has ended."""
        why = await asyncio.shield(self._broken)
        process = self._server.process
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _LAST_WORDS_S)  # how it ended tells more
        words = self._log.last_words
        return (self._server.ended or why) + (f": {words}" if words else "")

    @asynccontextmanager
    async def transport(self) -> AsyncIterator[Streams]:
        """The streams for a client. Ending the process is its owner's."""
        self._to_session, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](16)
        outgoing, from_session = anyio.create_memory_object_stream[SessionMessage](0)
        tasks = [
            asyncio.ensure_future(self._read()),
            asyncio.ensure_future(self._write(from_session)),
            asyncio.ensure_future(self._noise()),
        ]
        try:
            yield incoming, outgoing
        finally:
            for timer in self._probes.values():
                timer.cancel()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for stream in (self._to_session, incoming, outgoing, from_session):
                await stream.aclose()

    async def _read(self) -> None:
        reader = self._server.process.stdout
        assert reader is not None
        buffer = bytearray()
        try:
            while chunk := await reader.read(_CHUNK):
                *lines, rest = chunk.split(b"\n")
                for line in lines:
                    buffer += line
                    await self._line(bytes(buffer))
                    buffer.clear()
                buffer += rest
                if len(buffer) > MAX_LINE:
                    raise LineTooLong
        except LineTooLong as error:
            self._break(str(error))
        except OSError as error:
            self._break(f"its output cannot be read: {error.strerror or error}")
        finally:
            self._break("it closed its output")
            await self._to_session.aclose()

    async def _line(self, line: bytes) -> None:
        if len(line) > MAX_LINE:
            raise LineTooLong
        if not line.strip():
            return
        message = _message(line)
        if message is None:
            self._log.garbage(line)
            return
        item = self._border.received(SessionMessage(message))
        self._answered(getattr(message, "id", None))
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._to_session.send(item)

    async def _write(self, stream: MemoryObjectReceiveStream[SessionMessage]) -> None:
        writer = self._server.process.stdin
        assert writer is not None
        try:
            async for item in stream:
                self._border.sent(item)
                text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                if isinstance(item.message, JSONRPCRequest) and item.message.method == _DISCOVER:
                    self._probe(item.message.id)
                writer.write(text.encode("utf-8", "replace") + b"\n")
                await writer.drain()
        except (OSError, RuntimeError):
            self._break("it closed its input")
            await self._to_session.aclose()

    def _break(self, why: str) -> None:
        if not self._broken.done():
            self._broken.set_result(why)

    async def _noise(self) -> None:
        reader = self._server.process.stderr
        assert reader is not None
        while chunk := await reader.read(_CHUNK):
            self._log.add(chunk)

    def _probe(self, id: str | int) -> None:
        """A server of an earlier protocol may drop a request that it does not know, where it should refuse it. It is
        refused in its place, so that the earlier handshake follows while the deadline allows it."""
        loop = asyncio.get_running_loop()
        self._probes[id] = loop.call_later(self._probe_s, self._refuse, id)

    def _refuse(self, id: str | int) -> None:
        self._probes.pop(id, None)
        error = ErrorData(code=METHOD_NOT_FOUND, message="no answer")
        with suppress(anyio.WouldBlock, anyio.BrokenResourceError, anyio.ClosedResourceError):
            self._to_session.send_nowait(SessionMessage(JSONRPCError(jsonrpc="2.0", id=id, error=error)))

    def _answered(self, id: str | int | None) -> None:
        if id is not None and (timer := self._probes.pop(id, None)) is not None:
            timer.cancel()


def _message(line: bytes) -> JSONRPCMessage | None:
    """The message of a line, None when it is none. Escapes that no text may hold are replaced (rule L11)."""
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        pass
    try:
        return jsonrpc_message_adapter.validate_python(
            _cleaned(json.loads(line.decode("utf-8", "replace"))), by_name=False
        )
    except (ValueError, RecursionError):
        return None


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list):
        return [_cleaned(each) for each in value]
    if isinstance(value, dict):
        return {_cleaned(key): _cleaned(each) for key, each in value.items()}
    return value
