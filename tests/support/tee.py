"""A relay on loopback that passes bytes on unread and keeps what the client said: for servers that are not ours."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import urlsplit


class Tee:
    """Stands in front of the server at `target`. `url` is where to ask instead."""

    def __init__(self, target: str) -> None:
        parts = urlsplit(target)
        self._to = (parts.hostname, parts.port)
        self._said: list[bytearray] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.url = ""

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """The JSON bodies that were posted, connection by connection, in order."""
        return [json.loads(body) for said in self._said for body in _bodies(bytes(said))]

    async def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client. A side that closes closes the other one, so that a cut stays a cut."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        said = bytearray()
        self._said.append(said)
        up_reader, up_writer = await asyncio.open_connection(*self._to)
        try:
            sides = {
                asyncio.ensure_future(_copy(reader, up_writer, said)),
                asyncio.ensure_future(_copy(up_reader, writer, bytearray())),
            }
            _, rest = await asyncio.wait(sides, return_when=asyncio.FIRST_COMPLETED)
            for side in rest:
                side.cancel()
            await asyncio.gather(*sides, return_exceptions=True)
        finally:
            writer.close()
            up_writer.close()
            self._tasks.discard(task)

    async def settle(self) -> None:
        """End the connections that are left."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def tee(target: str) -> AsyncIterator[Tee]:
    """A tee, for as long as the block lasts."""
    relay = Tee(target)
    server = await asyncio.start_server(relay.connection, "127.0.0.1", 0)
    relay.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield relay
    finally:
        server.close()
        await relay.settle()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, kept: bytearray) -> None:
    with suppress(ConnectionError):
        while piece := await reader.read(65536):
            kept += piece
            writer.write(piece)
            await writer.drain()


def _bodies(said: bytes) -> list[bytes]:
    """The bodies of the requests in `said`; each has a Content-Length."""
    bodies = []
    while said:
        head, _, said = said.partition(b"\r\n\r\n")
        lengths = [
            line.partition(b":")[2]
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length:")
        ]
        length = int(lengths[0]) if lengths else 0
        body, said = said[:length], said[length:]
        if body:
            bodies.append(body)
    return bodies
