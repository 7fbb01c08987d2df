"""The whole program against a server that is not ours, over HTTP, through each of the three protocols.

Between them stands a relay that keeps the bytes that the program sent: validators of each protocol read them, and the
server's own journal tells how the server understood them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import httpx
import pytest
from aimock import aimock
from program import Ended, handrail
from tee import Tee, tee
from wire_anthropic import check_anthropic
from wire_check import check_chat
from wire_responses import check_responses

pytestmark = pytest.mark.servers

CHECKS = {"openai-chat": check_chat, "openai-responses": check_responses, "anthropic": check_anthropic}
QUICK = {"HANDRAIL_RETRY_BASE": "0.05"}
LONG = "This sentence is long enough to be cut somewhere in its middle, wherever that may be."


def _calls(*named: tuple[str, str, str]) -> list[dict[str, str]]:
    return [{"id": id, "name": name, "arguments": arguments} for id, name, arguments in named]


def _fixtures(api: str) -> list[dict[str, Any]]:
    """What the server says to each model's name; a name for each task and protocol, for fixtures count their uses."""
    task, limited, cut = f"task-{api}", f"limited-{api}", f"cut-{api}"
    two = _calls(("call_a", "read", '{"path":"shop.py"}'), ("call_b", "ls", "{}"))
    edit = _calls(("call_c", "edit", '{"path":"shop.py","old":"price = 10","new":"price = 12  # 値上げ"}'))
    again = _calls(("call_d", "read", '{"path":"shop.py"}'))
    return [
        {
            "match": {"model": task, "hasToolResult": False},
            "response": {"reasoning": "Two things at once.", "content": "I look first.", "toolCalls": two},
        },
        {
            "match": {"model": task, "toolCallId": "call_b", "toolResultContains": "shop.py"},
            "response": {"toolCalls": edit},
        },
        {"match": {"model": task, "toolCallId": "call_c"}, "response": {"toolCalls": again}},
        {
            "match": {"model": task, "toolCallId": "call_d", "toolResultContains": "値上げ"},
            "response": {"content": "The price is 12 now. 完了"},
        },
        {
            "match": {"model": limited, "sequenceIndex": 0},
            "response": {
                "error": {"message": "Rate limit reached for requests", "type": "rate_limit_error"},
                "status": 429,
                "retryAfter": 1,
            },
        },
        {"match": {"model": limited}, "response": {"content": "Here I am."}},
        {
            "match": {"model": cut, "sequenceIndex": 0},
            "latency": 5,
            "truncateAfterChunks": 9,
            "response": {"content": LONG},
        },
        {"match": {"model": cut}, "response": {"content": "Whole this time."}},
    ]


@pytest.fixture(scope="module")
def server(peers: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    fixtures = [fixture for api in CHECKS for fixture in _fixtures(api)]
    with aimock(fixtures, peers, tmp_path_factory.mktemp("aimock")) as url:
        yield url


@pytest.fixture(params=list(CHECKS))
def api(request: pytest.FixtureRequest) -> str:
    assert isinstance(request.param, str)
    return request.param


@pytest.fixture
async def relay(server: str) -> AsyncIterator[Tee]:
    async with tee(server) as relay:
        yield relay


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/shop.py").write_text("price = 10\n", "utf-8")
    return tmp_path / "shop"


async def run(api: str, kind: str, relay: Tee, folder: Path) -> Ended:
    """`handrail run` with the model `kind`; what it sent must please whoever made the protocol."""
    base = relay.url if api == "anthropic" else f"{relay.url}/v1"
    where = ["--api", api, "--base-url", base, "--model", f"x/{kind}-{api}"]
    ended = await handrail(
        "run", "--json", "--approve", "edits", *where, "raise it", folder=folder, env=QUICK
    )
    assert ended.err == ""
    assert relay.bodies
    for body in relay.bodies:
        CHECKS[api](body)
    return ended


async def test_a_task_of_several_turns_with_a_batch_and_an_edit(
    api: str, server: str, relay: Tee, folder: Path
) -> None:
    ended = await run(api, "task", relay, folder)
    last = ended.events[-1]
    assert (ended.code, last["type"], last["outcome"]) == (0, "run_finished", "completed")
    assert (last["text"], last["requests"], len(relay.bodies)) == ("The price is 12 now. 完了", 4, 4)
    assert (folder / "shop.py").read_text("utf-8") == "price = 12  # 値上げ\n"
    batches = [[call["id"] for call in batch["calls"]] for batch in ended.of("tool_batch_started")]
    assert batches == [["call_a", "call_b"], ["call_c"], ["call_d"]]
    assert not any(result["is_error"] for result in ended.of("tool_finished"))
    first = ended.of("message_finished")[0]["message"]["content"]
    kinds = [block["type"] for block in first]
    assert kinds == ["thinking", "text", "tool_call", "tool_call"]
    await _understood(server, f"task-{api}")


async def _understood(server: str, model: str) -> None:
    """The server's own reading of the last request, which it keeps in the form of the chat protocol."""
    async with httpx.AsyncClient() as client:
        journal = (await client.get(f"{server}/__aimock/journal")).json()
    bodies = [entry["body"] for entry in journal if entry["body"]["model"] == model]
    assert len(bodies) == 4
    talk = [m for m in bodies[-1]["messages"] if m["role"] != "system"]
    turns = [role for role, _ in groupby(m["role"] for m in talk)]  # one reply may be several messages
    assert turns == ["user", *["assistant", "tool"] * 3]
    results = {m["tool_call_id"]: str(m["content"]) for m in talk if m["role"] == "tool"}
    assert list(results) == ["call_a", "call_b", "call_c", "call_d"]  # in call order (rule L5)
    assert "price = 10" in results["call_a"] and "値上げ" in results["call_d"]


async def test_R4_a_limit_that_says_when_is_waited_for(api: str, relay: Tee, folder: Path) -> None:
    ended = await run(api, "limited", relay, folder)
    last = ended.events[-1]
    assert (ended.code, last["outcome"], last["text"], last["requests"]) == (0, "completed", "Here I am.", 2)
    (decided,) = [d for d in ended.of("decided") if d["decision"] != "finish"]
    assert (decided["decision"], decided["reason"], decided["delay_s"]) == ("retry", "transient", 1.0)
    assert [end["how"] for end in ended.of("wait_ended")] == ["elapsed"]


async def test_R8_a_stream_that_is_cut_is_asked_again_with_what_it_said(
    api: str, relay: Tee, folder: Path
) -> None:
    ended = await run(api, "cut", relay, folder)
    last = ended.events[-1]
    assert (ended.code, last["outcome"], last["text"]) == (0, "completed", "Whole this time.")
    (decided,) = [d for d in ended.of("decided") if d["decision"] != "finish"]
    assert (decided["decision"], decided["reason"]) == ("retry", "transient")
    broken = ended.of("message_finished")[0]["message"]
    said = "".join(block["text"] for block in broken["content"])
    assert broken["stop_reason"] == "error" and said and LONG.startswith(said)
    assert said in str(relay.bodies[-1]) and said not in str(relay.bodies[0])
