"""A gateway in front of a provider of the test's own, with every event kept."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from handrail import events as ev
from handrail.agents.gateway import Gateway
from handrail.agents.gateway_session import GatewaySession
from handrail.agents.routes import Route
from handrail.clock import ManualClock
from handrail.policy import Bounds
from handrail.providers.base import ModelInfo, Price

PRICE = Price(input=1.0, output=2.0)


@dataclass
class Front:
    """What a test needs: addresses for clients, the clock, the books, the events."""

    gateway: Gateway
    session: GatewaySession
    clock: ManualClock
    events: list[ev.Event] = field(default_factory=list)

    def url(self, provider: str = "openai") -> str:
        return self.gateway.base_url(self.session, provider)

    def of(self, kind: type[Any]) -> list[Any]:
        """The events of one kind, once every reply is in the books."""
        return [event for event in self.events if isinstance(event, kind)]


def priced(name: str) -> ModelInfo:
    return ModelInfo(name, price=PRICE)


def routes_to(url: str, **more: Any) -> Mapping[str, Route]:
    """Every provider of the tests at one address."""
    return {
        "openai": Route("openai", f"{url}/v1", **more),
        "anthropic": Route("anthropic", url, **more),
        "gemini": Route("gemini", url, **more),
    }


@asynccontextmanager
async def front(url: str, bounds: Bounds | None = None, **more: Any) -> AsyncIterator[Front]:
    """A gateway whose requests go to `url`."""
    clock = ManualClock()
    events: list[ev.Event] = []
    routes = more.pop("routes", None) or routes_to(url)
    session = GatewaySession(
        "s1", clock=clock, routes=routes, bounds=bounds, emit=events.append, model_info=priced, **more
    )
    async with Gateway() as gateway:
        gateway.add(session)
        yield Front(gateway, session, clock, events)
