"""Both wires against a server that is not ours: a task of several turns, and faults on order."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from aimock import aimock
from histories import TOOL, result, user
from replay import ask, check_parts

from handrail.messages import AssistantMessage, Message, Usage
from handrail.providers.base import ModelInfo, Provider, Request
from handrail.providers.messages import Anthropic
from handrail.providers.responses import OpenAIResponses

pytestmark = pytest.mark.servers

LONG = "This sentence is long enough to be cut somewhere in its middle."
FIXTURES: list[dict[str, Any]] = [
    {
        "match": {"userMessage": "task", "hasToolResult": False},
        "response": {
            "reasoning": "I should look. 思考",
            "content": "I look twice.",
            "toolCalls": [
                {"id": "call_a", "name": "look", "arguments": '{"at":"Zürich 🏔"}'},
                {"id": "call_b", "name": "look", "arguments": "{}"},
            ],
        },
    },
    {
        "match": {"userMessage": "task", "hasToolResult": True},
        "response": {"content": "Done: 世界 👋", "usage": {"input_tokens": 11, "output_tokens": 7}},
    },
    {"match": {"userMessage": "long"}, "response": {"content": "cut off he", "finishReason": "length"}},
    {
        "match": {"userMessage": "limit"},
        "response": {
            "error": {"message": "Too many", "type": "rate_limit_error"},
            "status": 429,
            "retryAfter": 7,
        },
    },
    {
        "match": {"userMessage": "break"},
        "latency": 5,
        "truncateAfterChunks": 9,
        "response": {"content": LONG},
    },
]


@pytest.fixture(scope="module")
def address(peers: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with aimock(FIXTURES, peers, tmp_path_factory.mktemp("aimock")) as url:
        yield url


@pytest.fixture(params=["anthropic", "responses"])
async def provider(request: pytest.FixtureRequest, address: str) -> AsyncIterator[Provider]:
    model = ModelInfo("mock/m")
    client: Anthropic | OpenAIResponses
    if request.param == "anthropic":
        client = Anthropic(model, base_url=address, api_key="k")
    else:
        client = OpenAIResponses(model, base_url=f"{address}/v1", api_key="k")
    yield client
    await client.aclose()


async def say(provider: Provider, words: str) -> AssistantMessage:
    return (await ask(provider, Request([user(words)])))[1]


async def test_a_task_of_two_turns(provider: Provider) -> None:
    history: list[Message] = [user("the task")]
    parts, first = await ask(provider, Request(history, system="Be kind.", tools=(TOOL,)))
    check_parts(parts, first)
    assert (first.text, first.thinking, first.stop_reason) == (
        "I look twice.",
        "I should look. 思考",
        "tool_use",
    )
    assert [(c.id, c.arguments) for c in first.calls] == [("call_a", {"at": "Zürich 🏔"}), ("call_b", {})]
    history += [first, result("call_a", "seen"), result("call_b", "not there", is_error=True)]
    parts, second = await ask(provider, Request(history, system="Be kind.", tools=(TOOL,)))
    check_parts(parts, second)
    assert (second.text, second.stop_reason, second.usage) == ("Done: 世界 👋", "stop", Usage(11, 7))


async def test_length(provider: Provider) -> None:
    message = await say(provider, "long")
    assert (message.stop_reason, message.text) == ("length", "cut off he")


async def test_K1_a_limit(provider: Provider) -> None:
    failure = (await say(provider, "limit")).failure
    assert failure is not None
    assert (failure.status, failure.headers["retry-after"], failure.provider) == (429, "7", "mock")
    assert "Too many" in failure.text


async def test_a_cut_keeps_what_came(provider: Provider) -> None:
    message = await say(provider, "break")
    assert message.stop_reason == "error"
    assert message.text and LONG.startswith(message.text)
    assert message.failure is not None and message.failure.phase == "stream"


async def test_L9_a_request_that_was_given_up_leaves_the_server_well(provider: Provider) -> None:
    stream = provider.stream(Request([user("break")]))
    await anext(stream)
    await stream.aclose()  # type: ignore[attr-defined]
    assert (await say(provider, "long")).text == "cut off he"
