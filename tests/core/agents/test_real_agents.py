"""Claude Code and Codex under Handrail, against a mock provider: what the contract promises, as it really goes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from aimock import aimock
from foreign import Foreign
from real_agents import REAL, environment, real_agent

from handrail import events as ev
from handrail.agents.agent_session import AgentSession
from handrail.agents.routes import routes
from handrail.policy import Bounds, RecoveryPolicy
from handrail.session.changes import SNAPSHOT, changes

pytestmark = pytest.mark.servers

LIMIT = "You have hit your usage limit. Try again in ~42 min."
Make = Callable[..., Foreign]


@pytest.fixture(params=sorted(REAL), scope="module")
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory, name: str) -> Path:
    place = tmp_path_factory.mktemp(name) / "work"
    place.mkdir()
    return place


@pytest.fixture(scope="module")
def provider(peers: Path, work: Path, name: str) -> Iterator[str]:
    """A model that writes a file when it is asked to, loops, meets a limit, or just talks."""
    call = {"name": REAL[name].tool, "arguments": REAL[name].arguments % work}
    fixtures: list[dict[str, Any]] = [
        {
            "match": {"userMessage": "meet the limit"},
            "response": {"error": {"message": LIMIT}, "status": 429},
        },
        {"match": {"userMessage": "loop"}, "response": {"content": "Again.", "toolCalls": [call]}},
        {
            "match": {"userMessage": "write it", "hasToolResult": True},
            "response": {"content": "It is written."},
        },
        {"match": {"userMessage": "write it"}, "response": {"content": "I write it.", "toolCalls": [call]}},
        {
            "match": {"userMessage": "stall"},
            "latency": 60_000,
            "response": {"content": "much too late"},
        },
        {"match": {}, "response": {"content": "Hello from the model."}},
    ]
    with aimock(fixtures, peers, work.parent) as url:
        yield url


@pytest.fixture
def make(peers: Path, work: Path, name: str, provider: str, tmp_path: Path) -> Make:
    entry = real_agent(name, peers)

    def session(kept: Path | None = None, **more: Any) -> Foreign:
        environ = environment(work.parent / "home", provider)
        (folder := kept or tmp_path / "session").mkdir(exist_ok=True)
        made = Foreign(
            AgentSession(
                entry,
                cwd=work,
                environ=environ,
                routes=routes(environ),
                id=uuid4().hex[:11],
                folder=folder,
                **more,
            )
        )
        made.session.listen(made.events.append)
        return made

    return session


async def test_it_talks(make: Make) -> None:
    at = make()
    last = await at.session.run("say hello")
    assert (last.outcome, last.text) == ("completed", "Hello from the model.")
    assert last.requests >= 1


async def test_H5_it_asks_and_goes_on_with_the_answer(make: Make, work: Path) -> None:
    at = make(attended=True)
    at.when(ev.ApprovalRequested, lambda e: at.session.approve(e.id, "once"))
    last = await at.session.run("write it")
    assert len(at.of(ev.ApprovalRequested)) == 1
    assert (work / "a.txt").read_text() == "hello\n"
    told = [e for e in at.of(ev.ToolFinished) if e.name != SNAPSHOT]
    assert [e.is_error for e in told] == [False]
    assert [c.path for c in changes(at.events)] == ["a.txt"]
    assert (last.outcome, last.text) == ("completed", "It is written.")
    (work / "a.txt").unlink()


async def test_H5_denied_it_does_not_act(make: Make, work: Path) -> None:
    at = make(attended=True)
    at.when(ev.ApprovalRequested, lambda e: at.session.approve(e.id, "deny"))
    await at.session.run("write it")
    assert not (work / "a.txt").exists()


async def test_L1_the_bound_holds_at_the_request_exactly(make: Make) -> None:
    at = make(approve="all", bounds=Bounds(max_turns=3))
    last = await at.session.run("loop")
    assert (last.outcome, last.bound, last.requests) == ("turn-limit", "max_turns", 3)


async def test_U_a_limit_is_seen_in_the_providers_words(make: Make) -> None:
    at = make(recovery=RecoveryPolicy(max_wait_s=60.0))
    last = await at.session.run("meet the limit")
    assert last.outcome == "usage-limit"
    assert "42 min" in last.error
    (decided,) = at.of(ev.Decided)
    assert decided.failure is not None and "42 min" in decided.failure.text


async def test_L9_a_stop_ends_it_within_a_second(make: Make) -> None:
    at = make()
    running = asyncio.create_task(at.session.run("stall"))
    gateway_turn = asyncio.create_task(_request_under_way(at))
    await asyncio.wait_for(gateway_turn, 30)
    began = time.monotonic()
    at.session.stop()
    last = await asyncio.wait_for(running, 20)
    assert (last.outcome, last.stopped) == ("cancelled", True)
    assert time.monotonic() - began < 5


async def test_J_its_session_is_taken_up_again(make: Make, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    first = make(kept)
    await first.session.run("say hello")
    second = make(kept)
    second.session.load(first.events)
    last = await second.session.resume()
    assert last.outcome == "completed"
    assert not any("cannot take up" in e.text for e in second.of(ev.Notice))


async def _request_under_way(at: Foreign) -> None:
    while not at.session.requests:  # noqa: ASYNC110  (its requests are no events of its session)
        await asyncio.sleep(0.02)
