"""Two wires against a second third-party server, which is sloppier than the first."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from fakellm import fakellm
from histories import TOOL, result, user
from replay import ask, check_parts

from handrail.messages import Message
from handrail.providers.base import ModelInfo, Provider, Request
from handrail.providers.chat import OpenAIChat
from handrail.providers.messages import Anthropic

pytestmark = pytest.mark.servers

RULES = [
    {
        "name": "first",
        "when": {"turn": 1, "messages_contain": "the task"},
        "respond": {
            "tool_calls": [
                {"name": "look", "arguments": {"at": "Zürich 🏔"}},
                {"name": "look", "arguments": {}},
            ]
        },
    },
    {
        "name": "second",
        "when": {"tool_result_contains": "seen"},
        "respond": {"content": "Done: 世界 👋"},
    },
    {
        "name": "plain",
        "when": {"messages_contain": "plain"},
        "respond": {"content": "Nothing to look at."},
    },
]


@pytest.fixture(scope="module")
def address(peers: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with fakellm(RULES, peers, tmp_path_factory.mktemp("fakellm")) as url:
        yield url


@pytest.fixture(params=["chat", "anthropic"])
async def provider(request: pytest.FixtureRequest, address: str) -> AsyncIterator[Provider]:
    model = ModelInfo("fake/m")
    client: Anthropic | OpenAIChat
    if request.param == "anthropic":
        client = Anthropic(model, base_url=address, api_key="k")
    else:
        client = OpenAIChat(model, base_url=f"{address}/v1", api_key="k")
    yield client
    await client.aclose()


async def test_a_task_of_two_turns(provider: Provider) -> None:
    # A conversation is known by its first message there, so each wire has its own.
    history: list[Message] = [user(f"the task of {type(provider).__name__}")]
    parts, first = await ask(provider, Request(history, tools=(TOOL,)))
    check_parts(parts, first)
    assert [(c.name, c.arguments) for c in first.calls] == [("look", {"at": "Zürich 🏔"}), ("look", {})]
    assert first.stop_reason == "tool_use" and len({c.id for c in first.calls}) == 2
    history += [first, *(result(c.id, "seen") for c in first.calls)]
    parts, second = await ask(provider, Request(history, tools=(TOOL,)))
    check_parts(parts, second)
    assert (second.text, second.stop_reason) == ("Done: 世界 👋", "stop")


async def test_a_plain_reply(provider: Provider) -> None:
    parts, message = await ask(provider, Request([user("plain")]))
    check_parts(parts, message)
    assert (message.text, message.stop_reason, message.failure) == ("Nothing to look at.", "stop", None)
