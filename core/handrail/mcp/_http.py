"""A server over streamable HTTP: the SDK's transport, with a bound on what an answer may hold and the border in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from handrail.mcp._border import Border
from handrail.mcp._stdio import MAX_LINE
from handrail.tools.output import size

_TIMEOUT = httpx2.Timeout(
    30.0, read=None
)  # a call has its own time limit; an open stream may be quiet for hours


@asynccontextmanager
async def http_transport(
    url: str, headers: Mapping[str, str], border: Border, auth: httpx2.Auth | None
) -> AsyncIterator[tuple[Any, Any]]:
    """The streams for a client. A redirect to another origin is not followed, so headers stay where they belong."""
    wire = _Bounded(httpx2.AsyncHTTPTransport(), signs_in=auth is not None)
    async with (
        httpx2.AsyncClient(headers=dict(headers), timeout=_TIMEOUT, auth=auth, transport=wire) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=MAX_LINE) as (incoming, outgoing),
    ):
        yield _Incoming(incoming, border), _Outgoing(outgoing, border)


class TooLong(httpx2.StreamError):
    """An answer over the bound."""

    def __init__(self) -> None:
        super().__init__(f"it sent an answer of more than {size(MAX_LINE)}")


class NeedsLogin(httpx2.HTTPError):
    """The server wants to know who asks."""

    def __init__(self) -> None:
        super().__init__(
            "it asks for a login: `handrail mcp login NAME`, or a header Authorization in its settings"
        )


class _Bounded(httpx2.AsyncBaseTransport):
    """Cuts bodies off that are one answer. A stream of events is bounded event by event, by the SDK.

    Servers differ in how they say that they do not know a session any more; the protocol's way is 404.
    """

    def __init__(self, inner: httpx2.AsyncBaseTransport, *, signs_in: bool) -> None:
        self._inner, self._signs_in = inner, signs_in

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._inner.handle_async_request(request)
        if response.status_code == 401 and not self._signs_in:
            await response.aclose()
            raise NeedsLogin
        if response.status_code == 400 and "mcp-session-id" in request.headers:
            await response.aclose()
            return httpx2.Response(404, request=request)
        if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = _Body(response.stream)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Body(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        total = 0
        async for chunk in self._inner:
            total += len(chunk)
            if total > MAX_LINE:
                raise TooLong
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Through:
    """A stream that passes everything on to another."""

    def __init__(self, inner: Any, border: Border) -> None:
        self._inner, self._border = inner, border

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        result: bool | None = await self._inner.__aexit__(kind, error, trace)
        return result


class _Incoming(_Through):
    @property
    def last_context(self) -> Any:
        return self._inner.last_context

    async def receive(self) -> SessionMessage | Exception:
        return self._read(await self._inner.receive())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return self._read(await self._inner.__anext__())

    def _read(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        return item if isinstance(item, Exception) else self._border.received(item)


class _Outgoing(_Through):
    async def send(self, item: SessionMessage) -> None:
        self._border.sent(item)
        await self._inner.send(item)
