"""Clients that are not ours through the gateway, against a provider that is not ours: each wire, streamed and whole."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest
from aimock import aimock
from gateways import Front, front, routes_to

from handrail import events as ev
from handrail.policy import Bounds

pytestmark = pytest.mark.servers

FIXTURES: list[dict[str, Any]] = [
    {
        "match": {"userMessage": "look", "hasToolResult": False},
        "response": {
            "content": "I look.",
            "toolCalls": [{"id": "call_a", "name": "look", "arguments": '{"at":"Zürich 🏔"}'}],
        },
    },
    {"match": {"userMessage": "look", "hasToolResult": True}, "response": {"content": "Nothing there: 世界"}},
    {"match": {"userMessage": "hello"}, "response": {"content": "Hello to you, 世界 👋, at some length."}},
    {
        "match": {"userMessage": "limit"},
        "response": {
            "error": {
                "message": "You have hit your usage limit. Try again in ~42 min.",
                "type": "usage_limit_reached",
            },
            "status": 429,
        },
    },
]
SAID = "Hello to you, 世界 👋, at some length."
HELLO: list[Any] = [{"role": "user", "content": "hello"}]


@pytest.fixture(scope="module")
def provider(peers: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with aimock(FIXTURES, peers, tmp_path_factory.mktemp("aimock")) as url:
        yield url


@pytest.fixture
async def at(provider: str) -> AsyncIterator[Front]:
    async with front(provider, Bounds(max_turns=2)) as made:
        yield made


def chat(at: Front) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=at.url(), api_key="sk-test")


def messages(at: Front) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(base_url=at.url("anthropic"), api_key="sk-test")


async def told(at: Front) -> str:
    """What the events say that the model said."""
    await at.session.settled()
    deltas = "".join(e.text for e in at.of(ev.MessageDelta) if e.kind == "text")
    assert deltas == "".join(e.message.text for e in at.of(ev.MessageFinished))
    return deltas


async def test_chat_completions_of_openais_sdk(at: Front) -> None:
    async with chat(at) as client:
        whole = await client.chat.completions.create(model="m", messages=HELLO)
        stream = await client.chat.completions.create(model="m", messages=HELLO, stream=True)
        pieces = [chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices]
        assert whole.choices[0].message.content == "".join(pieces) == SAID
        assert await told(at) == SAID * 2
        with pytest.raises(openai.BadRequestError, match="all 2 turns are used"):
            await client.chat.completions.create(model="m", messages=HELLO)
    assert at.session.refused == 1  # the SDK did not try again


async def test_responses_of_openais_sdk(at: Front) -> None:
    async with chat(at) as client:
        whole = await client.responses.create(model="m", input="hello")
        async with client.responses.stream(model="m", input="hello") as stream:
            streamed = await stream.get_final_response()
        assert whole.output_text == streamed.output_text == SAID
        assert await told(at) == SAID * 2
        with pytest.raises(openai.BadRequestError, match="all 2 turns are used"):
            await client.responses.create(model="m", input="hello")
    assert at.session.refused == 1


async def test_messages_of_anthropics_sdk(at: Front) -> None:
    async with messages(at) as client:
        whole = await client.messages.create(model="m", max_tokens=99, messages=HELLO)
        async with client.messages.stream(model="m", max_tokens=99, messages=HELLO) as stream:
            streamed = await stream.get_final_text()
        assert whole.content[0].text == streamed == SAID  # type: ignore[union-attr]
        assert await told(at) == SAID * 2
        with pytest.raises(anthropic.BadRequestError, match="all 2 turns are used"):
            await client.messages.create(model="m", max_tokens=99, messages=HELLO)
    assert at.session.refused == 1


async def test_geminis_wire(at: Front) -> None:
    body = {"contents": [{"role": "user", "parts": [{"text": "hello"}]}]}
    base = at.url("gemini") + "/v1beta/models/gemini-x"
    async with httpx.AsyncClient(trust_env=False) as client:
        whole = await client.post(f"{base}:generateContent", json=body)
        streamed = await client.post(f"{base}:streamGenerateContent?alt=sse", json=body)
        refused = await client.post(f"{base}:generateContent", json=body)
    assert whole.json()["candidates"][0]["content"]["parts"][0]["text"] == SAID
    assert streamed.status_code == 200
    assert await told(at) == SAID * 2
    assert {e.message.model for e in at.of(ev.MessageFinished)} == {"gemini/gemini-x"}
    assert refused.json()["error"]["status"] == "INVALID_ARGUMENT"
    assert "all 2 turns are used" in refused.json()["error"]["message"]


@pytest.mark.parametrize("kind", ["chat", "messages"])
async def test_a_limit_reaches_the_client_and_then_the_provider_has_peace(at: Front, kind: str) -> None:
    say: list[Any] = [{"role": "user", "content": "limit"}]
    async with chat(at) as one, messages(at) as other:
        for retries in (0, 0, 2):
            if kind == "chat":
                with pytest.raises(openai.RateLimitError, match="usage limit"):
                    await one.with_options(max_retries=retries).chat.completions.create(
                        model="m", messages=say
                    )
            else:
                asking = other.with_options(max_retries=retries)
                with pytest.raises(anthropic.RateLimitError, match="usage limit"):
                    await asking.messages.create(model="m", max_tokens=9, messages=say)
    (wait,) = at.of(ev.WaitStarted)
    assert "42 min" in wait.words
    assert at.session.requests == 1
    assert at.session.refused == 2  # the client with retries asked once


async def test_a_tool_run_of_pydantic_ai(provider: str) -> None:
    ai = pytest.importorskip("pydantic_ai")
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    async with front(provider) as at, chat(at) as client:
        model = OpenAIChatModel("m", provider=OpenAIProvider(openai_client=client))
        agent = ai.Agent(model)
        places: list[str] = []

        @agent.tool_plain  # type: ignore[untyped-decorator]
        def look(at: str) -> str:
            places.append(at)
            return "nothing"

        result = await agent.run("look")
        await at.session.settled()
        assert result.output == "Nothing there: 世界"
        assert places == ["Zürich 🏔"]
        first, second = at.of(ev.MessageFinished)
    assert first.message.stop_reason == "tool_use"
    assert [(c.name, c.arguments) for c in first.message.calls] == [("look", {"at": "Zürich 🏔"})]
    assert second.message.text == "Nothing there: 世界"


async def test_routes_of_two_providers_at_once(provider: str) -> None:
    async with front(provider, routes=routes_to(provider)) as at:
        async with chat(at) as one, messages(at) as other:
            await one.chat.completions.create(model="m", messages=HELLO)
            await other.messages.create(model="m", max_tokens=9, messages=HELLO)
        await at.session.settled()
        assert [e.message.model for e in at.of(ev.MessageFinished)] == ["openai/m", "anthropic/m"]
