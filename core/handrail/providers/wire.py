"""What every wire over HTTP shares: its model, its connection, and how both are let go."""

from __future__ import annotations

from collections.abc import Mapping

import httpx

from handrail._version import __version__
from handrail.clock import Clock
from handrail.providers.base import ModelInfo
from handrail.providers.http import Http


class Wire:
    """A model behind an HTTP address. `own` headers say how this wire shows its key; `headers` are sent beside them.

    Raises ValueError for a base URL or a header that cannot be used.
    """

    def __init__(
        self,
        model: ModelInfo,
        *,
        base_url: str,
        own: Mapping[str, str],
        clock: Clock | None,
        headers: Mapping[str, str] | None,
        client: httpx.AsyncClient | None,
    ) -> None:
        self._model = model
        ours = {"content-type": "application/json", "user-agent": f"handrail/{__version__}"}
        sent = {**ours, **own, **(headers or {})}
        self._http = Http(base_url, sent, provider=model.provider, clock=clock, client=client)

    @property
    def model(self) -> ModelInfo:
        return self._model

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should know about the connection."""
        return self._http.warnings

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()


def bearer(api_key: str | None) -> dict[str, str]:
    """The key as most wires show it; nothing where there is none."""
    return {"authorization": f"Bearer {api_key}"} if api_key else {}
