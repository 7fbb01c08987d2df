"""Replies from bytes, without a socket: chunks as a test cuts them, pauses in no time, a connection that breaks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import httpx
from oddities import provider_for
from replay import HELLO

from handrail.messages import AssistantMessage
from handrail.providers.base import Finished, Part, Request

CONTENT_TYPE = "text/event-stream"
LIMIT_S = 3600.0  # a reply that takes longer on the loop's clock hangs


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer when nothing else is to be done: pauses take no time."""

    _ahead = 0.0

    def time(self) -> float:
        return super().time() + self._ahead

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            self._ahead += max(0.0, self._scheduled[0].when() - self.time())  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]


class _Bytes(httpx.AsyncByteStream):
    def __init__(self, chunks: Sequence[bytes | float], broken: bool) -> None:
        self._chunks, self._broken = chunks, broken

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            if isinstance(chunk, bytes):
                yield chunk
            else:
                await asyncio.sleep(chunk)
        if self._broken:
            raise httpx.ReadError("the connection was reset")


class ByteServer(httpx.AsyncBaseTransport):
    """Answers each request with the same chunks; a number among them is a pause in seconds. `requests` holds the
    bodies that came."""

    def __init__(
        self,
        chunks: Sequence[bytes | float],
        *,
        broken: bool = False,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._chunks, self._broken, self._status = chunks, broken, status
        self._headers = {"content-type": CONTENT_TYPE, **(headers or {})}
        self.requests: list[bytes] = []

    def say(self, chunks: Sequence[bytes | float], *, broken: bool = False) -> None:
        """Answer with these from now on."""
        self._chunks, self._broken = chunks, broken
        self.requests.clear()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request.content)
        return httpx.Response(
            self._status, headers=self._headers, stream=_Bytes(self._chunks, self._broken), request=request
        )


async def ask_bytes(
    row: Mapping[str, Any], chunks: Sequence[bytes | float], *, broken: bool = False, request: Request = HELLO
) -> tuple[list[Part], AssistantMessage]:
    """The parts and the message that `chunks` make on the wire of `row`."""
    headers = {"content-type": row.get("ctype", CONTENT_TYPE), **row.get("headers", {})}
    server = ByteServer(chunks, broken=broken, status=row.get("status", 200), headers=headers)
    async with httpx.AsyncClient(transport=server) as client:
        provider = provider_for(row, "http://127.0.0.1:9", client)
        async with asyncio.timeout(LIMIT_S):
            *parts, last = [part async for part in provider.stream(request)]
    assert isinstance(last, Finished)
    return parts, last.message


def reply_of(
    row: Mapping[str, Any], chunks: Sequence[bytes | float], *, broken: bool = False
) -> AssistantMessage:
    """The same from outside of a loop."""
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(ask_bytes(row, chunks, broken=broken))[1]


def paused(row: Mapping[str, Any], body: bytes) -> list[bytes | float]:
    """The bytes of a row with its pauses between them."""
    chunks: list[bytes | float] = []
    at = 0
    for place, seconds in row.get("pause_s", ()):
        chunks += [body[at:place], float(seconds)]
        at = place
    return [*chunks, body[at:]]
