"""The HTTP answer to a request: its events, its body, and its faults as data (rule K1)."""

from __future__ import annotations

import asyncio
import os
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing

import httpx

from handrail.clock import Clock
from handrail.messages import Failure, Phase, clean
from handrail.providers._decoded import BodyDecoder
from handrail.providers._sse import EventDecoder, ServerEvent, is_json

HANG_UP = frozenset({"llama.cpp"})
"""Servers, by their `server` header, that close the connection behind a stream though they offer to keep it."""

ERROR_BODY_S = 10.0  # for the body of an error, which tells more than the status but is not worth a hang
BODY_TAIL_S = 0.5  # for the end of a body that is whole
MAX_ERROR_BODY = 64 * 1024
MAX_BODY = 32 * 1024 * 1024
_SECRET_HEADERS = {"authorization", "proxy-authorization", "x-api-key", "api-key", "cookie", "set-cookie"}


class HttpFailure(Exception):
    """A call that failed, as the data that recovery reads."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.text)
        self.failure = failure


class HttpReply:
    """A reply that began well. It must be read inside the block of `Http.post` that gave it."""

    def __init__(self, response: httpx.Response, provider: str, clock: Clock) -> None:
        self._response = response
        self._provider = provider
        self._clock = clock
        self._until: float | None = None
        self._last = False
        self._keeps = response.headers.get("server", "").lower() not in HANG_UP

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers, names in lower case, without cookies."""
        return _public_headers(self._response)

    def failure(self, text: str, *, phase: Phase = "stream", status: int | None = None) -> Failure:
        """A failure that this reply tells of; the status is its own unless another is given."""
        failure = reply_failure(self._response, self._provider, phase, text)
        return failure if status is None else Failure(text, self._provider, phase, status, failure.headers)

    def ending(self, seconds: float | None, *, last: bool = False) -> None:
        """Wait for the rest of the stream no longer than `seconds` from now; None waits as long as it takes.

        `last`: nothing is missed any more. Reading to the end lets the connection be used again; a server that never
        ends must not hold it. Where the server hangs up behind each stream nothing more is read then: a connection
        that is closing must not be used again, for the next request would race with the end of it.
        """
        self._until = None if seconds is None else asyncio.get_running_loop().time() + seconds
        self._last = last

    async def events(self) -> AsyncGenerator[ServerEvent, None]:
        """The events as they come. A JSON body without events is one event with the name `body`.

        Ends with the body, or when the time of `ending` is over. Raises HttpFailure when the stream breaks, and for a
        body that is neither (a web page, say).
        """
        decoder = EventDecoder()
        seen = bytearray()  # what came before the first event, to show when no event comes
        streaming = False
        broken: HttpFailure | None = None
        async with aclosing(self._chunks()) as chunks:
            try:
                async for chunk in chunks:
                    if not streaming and not _begins_as_events(bytes(seen + chunk)):
                        text = await self._rest(bytes(seen + chunk), chunks)
                        if is_json(text):
                            yield ServerEvent("body", text)
                            return
                        chunk, streaming = (
                            text.encode(),
                            True,
                        )  # JSON in lines, or what stands in front of events
                    for event in self._decoded(decoder, chunk):
                        streaming = True
                        yield event
                    if not streaming:
                        seen += chunk[: max(0, MAX_ERROR_BODY - len(seen))]
            except HttpFailure as error:
                broken = error
        for event in decoder.close():
            streaming = True
            yield event
        if broken is not None:
            raise broken
        if not streaming:
            words = clean(seen.decode("utf-8", "replace")).strip()
            raise HttpFailure(self.failure(words or "the stream ended before any event came"))

    def _decoded(self, decoder: EventDecoder, chunk: bytes) -> list[ServerEvent]:
        try:
            return decoder.feed(chunk)
        except ValueError as error:
            raise HttpFailure(self.failure(str(error))) from None

    async def _rest(self, head: bytes, chunks: AsyncIterator[bytes]) -> str:
        """A body that is no stream of events, as text. One that is whole JSON is not waited behind for long."""
        pieces, size, broken = [head], len(head), None
        if _is_whole(head):
            self.ending(BODY_TAIL_S, last=True)
        try:
            async for chunk in chunks:
                pieces.append(chunk)
                size += len(chunk)
                if size > MAX_BODY:
                    raise HttpFailure(
                        self.failure(f"the body exceeds limit {MAX_BODY} bytes: no more of it is read")
                    )
                if size < MAX_ERROR_BODY and _is_whole(b"".join(pieces)):
                    self.ending(BODY_TAIL_S, last=True)
        except HttpFailure as error:
            broken = error
        text = b"".join(pieces).decode("utf-8-sig", "replace").strip()
        if text.startswith("<"):
            raise HttpFailure(self.failure(clean(text[:MAX_ERROR_BODY]), phase="response"))
        if broken is not None and not is_json(text):
            raise broken
        return text

    async def _chunks(self) -> AsyncGenerator[bytes, None]:
        # Taken as it comes: each layer of the client's own costs as much as a delta does.
        stream = self._response.aiter_raw()
        busy = self._clock.busy
        try:
            decoder = BodyDecoder(self._response.headers.get("content-encoding", ""))
            while self._keeps or not self._last:
                with busy():
                    if self._until is None:
                        chunk = await anext(stream)
                    else:
                        async with asyncio.timeout_at(self._until):
                            chunk = await anext(stream)
                for piece in decoder.feed(chunk):
                    yield piece
        except (StopAsyncIteration, TimeoutError):
            return
        except ValueError as error:
            raise HttpFailure(self.failure(str(error))) from None
        except (httpx.HTTPError, httpx.StreamError, OSError, zlib.error) as error:
            raise HttpFailure(self.failure(root_words(error))) from None


def _begins_as_events(head: bytes) -> bool:
    """Whether `head` may be the beginning of an event stream: no field of one begins like JSON or HTML."""
    return head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] not in (b"{", b"[", b"<")


def _is_whole(body: bytes) -> bool:
    return body.rstrip()[-1:] in (b"}", b"]") and is_json(body.decode("utf-8-sig", "replace"))


async def error_body(response: httpx.Response) -> str:
    pieces, size = [], 0
    try:
        async with asyncio.timeout(ERROR_BODY_S):
            decoder = BodyDecoder(response.headers.get("content-encoding", ""))
            async for chunk in response.aiter_raw():
                for piece in decoder.feed(chunk):
                    pieces.append(piece)
                    size += len(piece)
                    if size >= MAX_ERROR_BODY:
                        break
                if size >= MAX_ERROR_BODY:
                    break
    except (ValueError, zlib.error, httpx.HTTPError, httpx.StreamError, OSError):
        pass
    return clean(b"".join(pieces)[:MAX_ERROR_BODY].decode("utf-8", "replace")).strip()


def reply_failure(response: httpx.Response, provider: str, phase: Phase, text: str) -> Failure:
    return Failure(text, provider, phase, response.status_code, _public_headers(response))


def _public_headers(response: httpx.Response) -> dict[str, str]:
    """Names in lower case; what could hold a secret is left out (rule J5)."""
    return {k: clean(v) for k, v in response.headers.items() if k not in _SECRET_HEADERS}


def root_words(error: BaseException) -> str:
    """What an error says, and what the error at its root says where that is more (`Connection refused`)."""
    if isinstance(error, zlib.error | httpx.RemoteProtocolError | httpx.DecodingError):
        return clean(f"connection error: {error or 'the framing of the response is broken'}")
    words = str(error) or ("timed out" if isinstance(error, httpx.TimeoutException) else type(error).__name__)
    root = error
    while (inner := _inner(root)) is not None:
        root = inner
    deep = str(root)
    if isinstance(root, OSError) and root.errno:
        deep = os.strerror(root.errno) if root.errno > 0 else str(root.strerror)
    return clean(words if not deep or deep in words else f"{words}: {deep}")


def _inner(error: BaseException) -> BaseException | None:
    if isinstance(error, BaseExceptionGroup):
        return error.exceptions[0]
    return error.__cause__ or error.__context__
