"""The Messages wire: Anthropic's, and what other servers offer in its place."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping

import httpx

from handrail.clock import Clock
from handrail.providers.anthropic_request import AnthropicQuirks, messages_body
from handrail.providers.anthropic_stream import MessagesReader
from handrail.providers.base import ModelInfo, Part, Request
from handrail.providers.reading import read_reply
from handrail.providers.wire import Wire

PATH = "v1/messages"
VERSION = "2023-06-01"


class Anthropic(Wire):
    """A model behind `POST {base_url}/v1/messages`. The base URL does not include `/v1`.

    `api_key` None sends no key; `headers` are sent beside our own. Raises ValueError for a base URL or a header
    that cannot be used.
    """

    def __init__(
        self,
        model: ModelInfo,
        *,
        base_url: str,
        api_key: str | None = None,
        quirks: AnthropicQuirks | None = None,
        clock: Clock | None = None,
        headers: Mapping[str, str] | None = None,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        self._quirks = quirks or AnthropicQuirks()
        own = {"anthropic-version": VERSION, **({"x-api-key": api_key} if api_key else {})}
        super().__init__(
            model,
            base_url=base_url.rstrip("/").removesuffix(f"/{PATH}").removesuffix("/v1"),
            own=own,
            clock=clock,
            headers=headers,
            client=client,
        )

    def stream(self, request: Request) -> AsyncGenerator[Part, None]:
        """Ask once. Parts as they arrive, `Finished` last; a fault is in it, with what came before."""
        body = messages_body(self._model, request, self._quirks)
        return read_reply(self._http, PATH, body, MessagesReader(self._model.name))
