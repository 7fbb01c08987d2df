"""The Responses wire: OpenAI's, and what other servers offer in its place."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping

import httpx

from handrail.clock import Clock
from handrail.providers.base import ModelInfo, Part, Request
from handrail.providers.reading import read_reply
from handrail.providers.responses_request import ResponsesQuirks, output_cap, responses_body
from handrail.providers.responses_stream import ResponsesReader
from handrail.providers.wire import Wire, bearer

PATH = "responses"


class OpenAIResponses(Wire):
    """A model behind `POST {base_url}/responses`. The base URL includes `/v1`.

    `api_key` None sends no key; `headers` are sent beside our own. Raises ValueError for a base URL or a header
    that cannot be used.
    """

    def __init__(
        self,
        model: ModelInfo,
        *,
        base_url: str,
        api_key: str | None = None,
        quirks: ResponsesQuirks | None = None,
        clock: Clock | None = None,
        headers: Mapping[str, str] | None = None,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        self._quirks = quirks or ResponsesQuirks()
        super().__init__(
            model,
            base_url=base_url.rstrip("/").removesuffix(f"/{PATH}"),
            own=bearer(api_key),
            clock=clock,
            headers=headers,
            client=client,
        )

    def stream(self, request: Request) -> AsyncGenerator[Part, None]:
        """Ask once. Parts as they arrive, `Finished` last; a fault is in it, with what came before."""
        body = responses_body(self._model, request, self._quirks)
        reader = ResponsesReader(self._model.name, output_cap(self._model, request))
        return read_reply(self._http, PATH, body, reader)
