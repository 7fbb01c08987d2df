"""Reads a reply while its bytes pass, with the reader of its wire: what was said, usage, failures.

The bytes go to the client first; what is read here never holds them up.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final

import httpx

from handrail.agents._wires import WireName
from handrail.messages import AssistantMessage, Failure
from handrail.providers.base import Finished, ModelInfo, Part, Provider, Request
from handrail.providers.chat import OpenAIChat
from handrail.providers.gemini import Gemini
from handrail.providers.messages import Anthropic
from handrail.providers.responses import OpenAIResponses

_HERE: Final = "http://127.0.0.1"  # no request is made: the transport holds the reply already
_ASKED: Final = Request(())


class Tap(httpx.AsyncBaseTransport):
    """The reply to one request. `head`, `feed` and `end` as its bytes come; `message` is there when it was read.

    `tell` gets the parts as they come, all those of one burst at once.
    """

    def __init__(self, wire: WireName, model: ModelInfo, tell: Callable[[Sequence[Part]], object]) -> None:
        self._model, self._tell = model, tell
        self._bytes = _Bytes(self._flush)
        self._parts: list[Part] = []
        self._head: tuple[int, list[tuple[bytes, bytes]]] | None = None
        self._reading: asyncio.Task[AssistantMessage] | None = None
        self._wire = wire

    def head(self, status: int, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """The reply began."""
        self._head = (status, [*headers])
        self._reading = asyncio.create_task(self._read())

    def feed(self, data: bytes) -> None:
        """More of the body."""
        self._bytes.put(data)

    def end(self, *, whole: bool) -> None:
        """No more comes. `whole`: the body ended as its framing says."""
        self._bytes.end(whole=whole)

    async def message(self) -> AssistantMessage | None:
        """The reply as far as it came; None when none began. Waits until all that came was read."""
        return None if self._reading is None else await self._reading

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Called by the reader of the wire: the reply that passes."""
        assert self._head is not None
        status, headers = self._head
        return httpx.Response(status, headers=headers, stream=self._bytes, request=request)

    async def _read(self) -> AssistantMessage:
        async with httpx.AsyncClient(transport=self) as client:
            try:
                async for part in _provider(self._wire, self._model, client).stream(_ASKED):
                    if isinstance(part, Finished):
                        self._flush()
                        return part.message
                    self._parts.append(part)
            except Exception as error:  # whatever a provider sends, the books stay whole
                failure = Failure(f"{type(error).__name__}: {error}", self._model.provider, "stream")
                return AssistantMessage((), "error", None, self._model.name, None, failure)
        raise AssertionError("a stream ends with Finished")

    def _flush(self) -> None:
        if self._parts:
            parts, self._parts = self._parts, []
            self._tell(parts)


class _Bytes(httpx.AsyncByteStream):
    """What came of a body, handed on as it is asked for; `idle` is called before it waits for more."""

    def __init__(self, idle: Callable[[], object]) -> None:
        self._idle = idle
        self._pieces: list[bytes] = []
        self._more = asyncio.Event()
        self._ended: bool | None = None

    def put(self, data: bytes) -> None:
        self._pieces.append(data)
        self._more.set()

    def end(self, *, whole: bool) -> None:
        if self._ended is None:
            self._ended = whole
            self._more.set()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            if self._pieces:
                pieces, self._pieces = self._pieces, []
                yield b"".join(pieces)
            elif self._ended is not None:
                if not self._ended:
                    raise httpx.ReadError("the connection to the provider broke off")
                return
            else:
                self._idle()
                self._more.clear()
                await self._more.wait()


def _provider(wire: WireName, model: ModelInfo, client: httpx.AsyncClient) -> Provider:
    made: dict[WireName, Any] = {
        "openai-chat": OpenAIChat,
        "openai-responses": OpenAIResponses,
        "anthropic": Anthropic,
        "gemini": Gemini,
    }
    provider: Provider = made[wire](model, base_url=_HERE, client=client)
    return provider
