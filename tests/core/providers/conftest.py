"""What tests of providers share: a server that misbehaves on demand, and no proxy in between."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from mock_server import MockServer
from replay import ask, check_parts, stream_of
from responses_events import Reply

from handrail.messages import AssistantMessage
from handrail.providers.base import ModelInfo
from handrail.providers.chat import OpenAIChat
from handrail.providers.responses import OpenAIResponses


@pytest.fixture
async def server() -> AsyncIterator[MockServer]:
    """A provider on loopback; it answers what `server.answer(…)` said."""
    mock = MockServer()
    await mock.start()
    yield mock
    await mock.stop()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests speak to loopback, whatever the environment says about proxies."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
async def gpt(server: MockServer) -> AsyncIterator[OpenAIResponses]:
    """A client of `server`."""
    client = OpenAIResponses(ModelInfo("openai/gpt-test"), base_url=f"{server.url}/v1", api_key="sk-test")
    yield client
    await client.aclose()


@pytest.fixture
async def gpt_reply(server: MockServer, gpt: OpenAIResponses) -> Reply:
    """The message that a stream of events makes; its deltas add up to it."""

    async def play(*events: Mapping[str, Any]) -> AssistantMessage:
        server.forget()
        server.answer(stream_of(*events))
        parts, made = await ask(gpt)
        check_parts(parts, made)
        return made

    return play


@pytest.fixture
async def chat_model(server: MockServer) -> AsyncIterator[OpenAIChat]:
    provider = OpenAIChat(ModelInfo("demo/model"), base_url=f"{server.url}/v1", api_key="secret")
    yield provider
    await provider.aclose()
