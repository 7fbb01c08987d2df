"""A provider on loopback that says exactly the bytes that a test wants, cut and broken where it wants."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

End = Literal["eof", "reset", "hang"]


@dataclass(frozen=True)
class Received:
    """One request as it came. Header names are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw)


@dataclass(frozen=True)
class Answer:
    """What to say to one request.

    `chunks` are written one by one. `framing` tells the client where the body ends. `cut` is what happens
    behind the last chunk instead of the proper end: the connection closes, is reset, or stays silent.
    """

    chunks: Sequence[bytes]
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    framing: Literal["chunked", "length", "close"] = "chunked"
    cut: End | None = None
    head: bool = True
    pause: float = 0.0


class MockServer:
    """Answers requests in order; the last answer is repeated. `requests` holds what came."""

    def __init__(self) -> None:
        self.requests: list[Received] = []
        self.connections = 0
        self._arrived = asyncio.Event()
        self.closed_by_client = asyncio.Event()
        self._answers: deque[Answer] = deque()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._connection, "127.0.0.1", 0)

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def port(self) -> int:
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    @property
    def url(self) -> str:
        """The address without a path: `http://127.0.0.1:1234`."""
        return f"http://127.0.0.1:{self.port}"

    def answer(
        self,
        body: bytes | str | Sequence[bytes] = b"",
        status: int = 200,
        headers: dict[str, str] | None = None,
        *,
        framing: Literal["chunked", "length", "close"] = "chunked",
        cut: End | None = None,
        head: bool = True,
        pause: float = 0.0,
    ) -> None:
        """Add an answer. `head=False` answers nothing at all: `cut` is all that happens. `pause` is the time in
        seconds before the head and each chunk."""
        if isinstance(body, str):
            body = body.encode()
        chunks = [body] if isinstance(body, bytes) else list(body)
        kind = {"content-type": "text/event-stream" if status == 200 else "application/json"}
        self._answers.append(Answer(chunks, status, kind | (headers or {}), framing, cut, head, pause))

    @property
    def open(self) -> int:
        """Connections that the client holds open."""
        return len(self._tasks)

    async def idle(self) -> None:
        """Let what the client did reach us: a few turns of the event loop."""
        for _ in range(20):
            await asyncio.sleep(0.001)
            if not self._tasks:
                break

    async def arrival(self) -> None:
        """Wait for the next request."""
        self._arrived.clear()
        await self._arrived.wait()

    def forget(self) -> None:
        """Drop the answers that are left."""
        self._answers.clear()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            self.closed_by_client.set()
        except asyncio.CancelledError:
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ", 2)
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:] if line)}
        raw = await reader.readexactly(int(headers.get("content-length", 0)))
        self.requests.append(Received(method, path, headers, raw))
        self._arrived.set()
        answer = self._answers.popleft() if len(self._answers) > 1 else self._answers[0]
        if answer.pause:
            await asyncio.sleep(answer.pause)
        if answer.head:
            writer.write(_head(answer))
        for chunk in answer.chunks:
            if answer.pause:
                await writer.drain()
                await asyncio.sleep(answer.pause)
            if chunk:
                framed = b"%x\r\n%s\r\n" % (len(chunk), chunk) if answer.framing == "chunked" else chunk
                writer.write(framed)
                await writer.drain()
                if len(answer.chunks) > 1:
                    await asyncio.sleep(0)  # so that the client may see it on its own
        if answer.cut == "hang":
            await reader.read()  # until the client goes away
            self.closed_by_client.set()
            return False
        if answer.cut == "reset":
            await asyncio.sleep(0)
            writer.transport.abort()
            return False
        if answer.cut is None and answer.framing == "chunked":
            writer.write(b"0\r\n\r\n")
        await writer.drain()
        return answer.cut is None and answer.framing != "close"


def _head(answer: Answer) -> bytes:
    headers = dict(answer.headers)
    if answer.framing == "chunked":
        headers["transfer-encoding"] = "chunked"
    elif answer.framing == "length":
        headers["content-length"] = str(sum(map(len, answer.chunks)) + (1 if answer.cut else 0))
    else:
        headers["connection"] = "close"
    lines = "".join(f"{k}: {v}\r\n" for k, v in headers.items())
    return f"HTTP/1.1 {answer.status} Status\r\n{lines}\r\n".encode("latin-1")


def sse(*events: Any, done: bool = True) -> bytes:
    """Events as a chat stream sends them; a string is sent as it is, all else as JSON."""
    lines = [e if isinstance(e, str) else json.dumps(e, ensure_ascii=False) for e in events]
    return "".join(f"data: {line}\n\n" for line in [*lines, *(["[DONE]"] if done else [])]).encode()
