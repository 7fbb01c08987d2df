"""Passes one request to a provider and its reply back, byte for byte.

The reply's bytes go to the client as they were read; h11 only watches, to know where the reply ends and what is in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol
from urllib.parse import urlsplit

import h11

from handrail.agents._http import READ, ClientRequest
from handrail.agents._upstream import Upstream, UpstreamFailed, connect, origin_of

# These are between two neighbours, or are written anew for the provider. A reply that is not compressed can be read
# while it passes.
_OURS: Final = frozenset(
    b"host connection keep-alive proxy-connection proxy-authorization te trailer transfer-encoding upgrade expect"
    b" content-length accept-encoding".split()
)


class Watcher(Protocol):
    """Hears of a reply while it passes."""

    def head(self, status: int, headers: Sequence[tuple[bytes, bytes]]) -> None: ...

    def body(self, data: bytes) -> None: ...

    def end(self) -> None:
        """The reply is whole. The client does not have its last bytes yet: what it asks next comes later."""
        ...


@dataclass(frozen=True, slots=True)
class Relayed:
    """How it went. `whole`: the reply came to its end. `reusable`: both connections serve again. `rest` is what the
    client sent behind its request. `began`: the client has part of a reply."""

    whole: bool = False
    reusable: bool = False
    client_left: bool = False
    began: bool = False
    rest: bytes = b""


class ClientLeft(Exception):
    """The client hung up before its reply was whole."""


class Relay:
    """The way of one client connection to providers. A connection to a provider is used again by the same client."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._upstream: tuple[str, Upstream] | None = None

    def close(self) -> None:
        """Hang up on the provider."""
        if self._upstream is not None:
            self._upstream[1].close()
            self._upstream = None

    async def carry(
        self, request: ClientRequest, url: str, replaced: Mapping[str, str], watcher: Watcher | None
    ) -> Relayed:
        """Send `request` to `url` and the reply back. `replaced` headers take the place of the client's. The provider
        is hung up on as soon as the client goes away (rule L9). Raises UpstreamFailed when no reply began."""
        patience = asyncio.create_task(self._reader.read(READ))
        carrying = asyncio.create_task(self._carry(request, url, replaced, watcher))
        try:
            await asyncio.wait({patience, carrying}, return_when=asyncio.FIRST_COMPLETED)
            rest = patience.result() if patience.done() and not patience.exception() else None
            if carrying.done():
                pass
            elif rest:
                await asyncio.wait({carrying})
            else:
                self.close()
                return Relayed(client_left=True)
            relayed = carrying.result()
            if not relayed.reusable:
                self.close()
            return Relayed(relayed.whole, relayed.reusable, relayed.client_left, relayed.began, rest or b"")
        except UpstreamFailed:
            self.close()
            raise
        finally:
            for task in (patience, carrying):
                task.cancel()
            await asyncio.gather(patience, carrying, return_exceptions=True)

    async def _carry(
        self, request: ClientRequest, url: str, replaced: Mapping[str, str], watcher: Watcher | None
    ) -> Relayed:
        while True:
            upstream = await self._connection(url)
            again = upstream.used
            upstream.used = True
            parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=4 * READ)
            try:
                upstream.writer.write(_head(parser, request, url, replaced, upstream) + request.body)
                await upstream.writer.drain()
                return await self._reply(upstream, parser, watcher)
            except _NoReply as error:
                self.close()
                if (
                    not again
                ):  # a connection that was kept may have been closed just now: once more on a new one
                    raise UpstreamFailed(str(error)) from None
            except h11.LocalProtocolError as error:
                raise UpstreamFailed(f"the request cannot be passed on: {error}") from None

    async def _connection(self, url: str) -> Upstream:
        origin = origin_of(url)
        if self._upstream is not None:
            if self._upstream[0] == origin and not self._upstream[1].closed:
                return self._upstream[1]
            self.close()
        upstream = await connect(url)
        self._upstream = (origin, upstream)
        return upstream

    async def _reply(self, upstream: Upstream, parser: h11.Connection, watcher: Watcher | None) -> Relayed:
        held, began, keeps = b"", False, True
        while True:
            broken: OSError | None = None
            try:
                data = await upstream.reader.read(READ)
            except OSError as error:
                data, broken = b"", error
            if not (began or data or held):
                raise _NoReply(f"the provider closed the connection without a reply{_why(broken)}")
            if broken is not None:
                return Relayed(began=began)
            held += data
            whole = False
            try:
                parser.receive_data(data)
                while not whole and (event := parser.next_event()) is not h11.NEED_DATA:
                    if isinstance(event, h11.Response):
                        began, keeps = True, _keeps(event)
                        if watcher is not None:
                            watcher.head(event.status_code, tuple(event.headers))
                    elif isinstance(event, h11.Data) and watcher is not None:
                        watcher.body(bytes(event.data))
                    whole = isinstance(event, h11.EndOfMessage)
            except h11.RemoteProtocolError as error:
                if not began:
                    raise UpstreamFailed(f"the provider's answer is no HTTP: {error}") from None
                return Relayed(began=True)
            if whole and watcher is not None:
                watcher.end()
            try:
                if began:
                    self._writer.write(held)
                    held = b""
                    await self._writer.drain()
            except OSError:
                return Relayed(began=began, client_left=True)
            if whole:
                return Relayed(whole=True, reusable=keeps and bool(data), began=True)
            if not data:
                return Relayed(began=began)


class _NoReply(Exception):
    pass


def _why(error: OSError | None) -> str:
    return f": {error.strerror or error}" if error is not None else ""


def _keeps(response: h11.Response) -> bool:
    """Whether the provider keeps the connection, and tells by itself where the body ends."""
    if response.http_version == b"1.0":
        return False
    headers = [(n, v.lower()) for n, v in response.headers]
    closes = any(n == b"connection" and b"close" in v for n, v in headers)
    framed = any(n in (b"content-length", b"transfer-encoding") for n, _ in headers)
    return not closes and (framed or response.status_code in (204, 304))


def _head(
    parser: h11.Connection, request: ClientRequest, url: str, replaced: Mapping[str, str], upstream: Upstream
) -> bytes:
    """The head of the request as the provider gets it; the parser is told that the body follows."""
    parts = urlsplit(url)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    named = {name.lower().encode() for name in replaced}
    ours = [("Host", parts.netloc.rpartition("@")[2]), *replaced.items(), *upstream.headers]
    ours.append(("Accept-Encoding", "identity"))
    if request.body or request.method in ("POST", "PUT", "PATCH"):
        ours.append(("Content-Length", str(len(request.body))))
    headers = [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in ours]
    headers += [(n, v) for n, v in request.headers if n.lower() not in _OURS and n.lower() not in named]
    head = parser.send(
        h11.Request(
            method=request.method,
            target=f"{origin_of(url)}{target}" if upstream.absolute else target or "/",
            headers=headers,
        )
    )
    parser.send(h11.Data(data=request.body))
    parser.send(h11.EndOfMessage())
    return head or b""
