"""The chat-completions wire: OpenAI's, and what nearly every other server speaks too."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing

import httpx

from handrail.clock import Clock
from handrail.messages import Failure
from handrail.providers.base import Finished, ModelInfo, Part, Request
from handrail.providers.chat_reply import STOPS, ChatReader
from handrail.providers.chat_request import ChatQuirks, chat_body
from handrail.providers.http import HttpFailure, Reply
from handrail.providers.wire import Wire, bearer

USAGE_S = 5.0  # what may follow the finish reason: usage, the end mark
END_S = (
    0.5  # what may follow the end mark or an error: the end of the body, so that the connection serves again
)


class OpenAIChat(Wire):
    """A model behind `POST {base_url}/chat/completions`. The base URL includes `/v1`.

    `api_key` None sends no key; `headers` are sent beside our own. Raises ValueError for a base URL or a header
    that cannot be used.
    """

    def __init__(
        self,
        model: ModelInfo,
        *,
        base_url: str,
        api_key: str | None = None,
        quirks: ChatQuirks | None = None,
        clock: Clock | None = None,
        headers: Mapping[str, str] | None = None,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        self._quirks = quirks or ChatQuirks()
        super().__init__(
            model,
            base_url=base_url.rstrip("/").removesuffix("/chat/completions"),
            own=bearer(api_key),
            clock=clock,
            headers=headers,
            client=client,
        )

    async def stream(self, request: Request) -> AsyncIterator[Part]:
        """Ask once. Parts as they arrive, `Finished` last; a fault is in it, with what came before."""
        reader = ChatReader(self._model.name)
        failure: Failure | None = None
        fault: Failure | None = None
        body = chat_body(self._model, request, self._quirks)
        for note in self._http.notes():
            yield note
        try:
            async with (
                self._http.post("chat/completions", body) as reply,
                aclosing(reply.events()) as events,
            ):
                async for event in events:
                    for part in reader.read(event):
                        yield part
                    if reader.done or reader.error is not None:
                        reply.ending(END_S)
                    elif reader.whole:
                        reply.ending(USAGE_S)
                fault = _told(reader, reply)
                failure = reply.failure("the stream ended before the reply was finished")
        except HttpFailure as stopped:
            failure = stopped.failure
        parts, message = reader.message(failure, fault)
        for part in parts:
            yield part
        yield Finished(message)


def _told(reader: ChatReader, reply: Reply) -> Failure | None:
    """The failure that the stream itself told of, if any."""
    if reader.error is not None:
        return reply.failure(reader.error, status=reader.error_status)
    if STOPS.get(reader.finish_reason or "") == "error":
        return reply.failure(f"finish_reason: {reader.finish_reason}")
    return None
