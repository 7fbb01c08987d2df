"""The chat wire against a server that is not ours: a task of several turns, and faults on order."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from aimock import aimock
from histories import TOOL, result, user
from replay import ask, check_parts
from wire_check import check_chat

from handrail.messages import Message, Usage
from handrail.providers.base import ModelInfo, Request, Started, TextDelta
from handrail.providers.chat import OpenAIChat

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
        "response": {"content": "Done: 世界 👋", "usage": {"prompt_tokens": 11, "completion_tokens": 7}},
    },
    {"match": {"userMessage": "long"}, "response": {"content": "cut off he", "finishReason": "length"}},
    {"match": {"userMessage": "filtered"}, "response": {"content": "", "finishReason": "content_filter"}},
    {
        "match": {"userMessage": "limit"},
        "response": {
            "error": {"message": "Too many", "type": "rate_limit_error"},
            "status": 429,
            "retryAfter": 7,
        },
    },
    {
        "match": {"userMessage": "busy", "sequenceIndex": 0},
        "response": {"error": {"message": "Overloaded", "type": "server_error"}, "status": 503},
    },
    {"match": {"userMessage": "busy"}, "response": {"content": "back again"}},
    {
        "match": {"userMessage": "break"},
        "latency": 5,
        "truncateAfterChunks": 4,
        "response": {"content": LONG},
    },
    {
        "match": {"userMessage": "malformed"},
        "chaos": {"malformedRate": 1.0},
        "response": {"content": "never seen"},
    },
]


@pytest.fixture(scope="module")
def address(peers: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with aimock(FIXTURES, peers, tmp_path_factory.mktemp("aimock")) as url:
        yield url


@pytest.fixture
async def model(address: str) -> AsyncIterator[OpenAIChat]:
    client = OpenAIChat(ModelInfo("mock/m"), base_url=f"{address}/v1", api_key="k")
    yield client
    await client.aclose()


def say(words: str) -> Request:
    return Request([user(words)])


async def test_a_task_of_two_turns(model: OpenAIChat, address: str) -> None:
    history: list[Message] = [user("the task")]
    parts, first = await ask(model, Request(history, system="Be kind.", tools=(TOOL,)))
    check_parts(parts, first)
    assert (first.text, first.thinking) == ("I look twice.", "I should look. 思考")
    assert first.stop_reason == "tool_use"
    assert [(c.id, c.arguments) for c in first.calls] == [("call_a", {"at": "Zürich 🏔"}), ("call_b", {})]
    history += [first, result("call_a", "seen"), result("call_b", "not there", is_error=True)]
    parts, second = await ask(model, Request(history, system="Be kind.", tools=(TOOL,)))
    check_parts(parts, second)
    assert (second.text, second.stop_reason, second.usage) == ("Done: 世界 👋", "stop", Usage(11, 7))
    async with httpx.AsyncClient() as client:
        journal = (await client.get(f"{address}/__aimock/journal")).json()
    bodies = [entry["body"] for entry in journal]
    assert len(bodies) >= 2
    for body in bodies:
        check_chat({k: v for k, v in body.items() if not k.startswith("_")})


@pytest.mark.parametrize(
    ("words", "reason", "text"), [("long", "length", "cut off he"), ("filtered", "refusal", "")]
)
async def test_stop_reasons(model: OpenAIChat, words: str, reason: str, text: str) -> None:
    _, message = await ask(model, say(words))
    assert (message.stop_reason, message.text) == (reason, text)


async def test_K1_a_limit(model: OpenAIChat) -> None:
    failure = (await ask(model, say("limit")))[1].failure
    assert failure is not None
    assert (failure.status, failure.headers["retry-after"], failure.provider) == (429, "7", "mock")
    assert "Too many" in failure.text


async def test_K1_busy_and_then_well_again(model: OpenAIChat) -> None:
    _, first = await ask(model, say("busy"))
    assert first.failure is not None and (first.failure.status, first.failure.phase) == (503, "response")
    assert "Overloaded" in first.failure.text
    assert (await ask(model, say("busy")))[1].text == "back again"


async def test_K1_a_cut_keeps_what_came(model: OpenAIChat) -> None:
    _, message = await ask(model, say("break"))
    assert message.stop_reason == "error" and message.failure is not None
    assert message.failure.phase == "stream"
    assert message.text and LONG.startswith(message.text)


async def test_K1_a_malformed_body(model: OpenAIChat) -> None:
    _, message = await ask(model, say("malformed"))
    assert message.stop_reason == "error" and message.failure is not None and message.failure.text


async def test_K1_a_model_that_is_not_scripted(model: OpenAIChat) -> None:
    failure = (await ask(model, say("nothing matches this")))[1].failure
    assert failure is not None and failure.status == 404


async def test_L9_a_request_that_was_given_up_leaves_the_server_well(model: OpenAIChat) -> None:
    stream = model.stream(say("break"))
    assert isinstance(await anext(stream), Started)
    assert isinstance(await anext(stream), TextDelta)
    await stream.aclose()  # type: ignore[attr-defined]
    assert (await ask(model, say("long")))[1].text == "cut off he"
