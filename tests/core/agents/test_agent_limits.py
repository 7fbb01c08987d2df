"""A foreign agent behind the gateway: bounds hold, limits are waited out, silence is noticed (L1, L3, L10, U)."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from foreign import entry, foreign
from mock_server import MockServer

from handrail import events as ev
from handrail.clock import ManualClock
from handrail.policy import Bounds, RecoveryPolicy
from handrail.providers.base import ModelInfo, Price

pytestmark = pytest.mark.skipif(os.name == "nt", reason="process groups")

REPLY = {
    "id": "m",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "ok"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 100, "output_tokens": 10},
}
LIMIT = "You have hit your usage limit. Try again in ~42 min."
MINUTE = 60.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    return place


@pytest.fixture
async def server() -> AsyncIterator[MockServer]:
    server = MockServer()
    await server.start()
    yield server
    await server.stop()


def reply(server: MockServer) -> None:
    server.answer(json.dumps(REPLY), headers={"content-type": "application/json"}, framing="length")


def limit(server: MockServer) -> None:
    server.answer(json.dumps({"type": "error", "error": {"type": "rate_limit_error", "message": LIMIT}}), 429)


async def test_L1_the_bound_on_requests_holds_exactly(server: MockServer, folder: Path) -> None:
    reply(server)
    at = foreign(folder, url=server.url, bounds=Bounds(max_turns=3))
    last = await at.session.run("model 9")
    assert len(server.requests) == 3
    assert (last.outcome, last.bound, last.requests) == ("turn-limit", "max_turns", 3)
    assert last.usage.total == 330


async def test_L3_cost_and_tokens_are_counted_from_the_replies(server: MockServer, folder: Path) -> None:
    reply(server)
    at = foreign(
        folder,
        url=server.url,
        bounds=Bounds(max_cost=0.0002),
        model_info=lambda name: ModelInfo(name, price=Price(1.0, 1.0)),
    )
    last = await at.session.run("model 9")
    assert (last.outcome, last.bound) == ("budget", "max_cost")
    assert len(server.requests) == 2
    (finished,) = at.of(ev.MessageFinished)
    assert finished.message.usage.total == 220
    assert finished.cost == pytest.approx(0.00022)


async def test_L1_an_agent_that_swallows_the_refusal_is_cut(
    server: MockServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handrail.agents._run.LET_END_S", 0.1)
    reply(server)
    last = await foreign(folder, url=server.url, bounds=Bounds(max_turns=1)).session.run("swallow 3")
    assert (last.outcome, last.bound) == ("turn-limit", "max_turns")


@pytest.mark.parametrize("prompt", ["model 1", "swallow 1"])
async def test_U1_a_usage_limit_is_waited_out_and_the_agent_goes_on(
    server: MockServer, folder: Path, prompt: str
) -> None:
    limit(server)
    reply(server)
    clock = ManualClock()
    at = foreign(folder, url=server.url, clock=clock)
    waits: list[float] = []

    def pass_time(event: ev.Event) -> None:
        """The agent ends its turn, or is cut after its patience; then the 42 minutes pass."""
        if isinstance(event, ev.WaitStarted):
            waits.append(event.until - clock.now())
            asyncio.get_running_loop().call_later(0.05, clock.advance_to, event.until)

    at.session.listen(pass_time)
    running = asyncio.create_task(at.session.run(prompt))
    if prompt == "swallow 1":
        await server.arrival()
        for _ in range(200):
            if waits or running.done():
                break
            await asyncio.sleep(0.02)
            clock.advance(0.5)
    last = await asyncio.wait_for(running, 30)
    assert last.outcome == "completed"
    assert last.text == "I heard: Go on with the task from where you were interrupted."
    assert waits == [pytest.approx(42 * MINUTE, abs=MINUTE)]
    (decided,) = at.of(ev.Decided)
    assert (decided.decision, decided.class_) == ("wait", "usage_limit")
    assert [e.how for e in at.of(ev.WaitEnded)] == ["elapsed"]


async def test_U5_a_limit_further_away_than_the_longest_wait_ends_the_run(
    server: MockServer, folder: Path
) -> None:
    limit(server)
    at = foreign(folder, url=server.url, recovery=RecoveryPolicy(max_wait_s=60.0))
    last = await at.session.run("model 1")
    assert last.outcome == "usage-limit"
    assert LIMIT in last.error
    assert last.until is not None


async def test_U8_a_skipped_wait_asks_the_provider_at_once(server: MockServer, folder: Path) -> None:
    limit(server)
    reply(server)
    at = foreign(folder, url=server.url)
    at.when(ev.WaitStarted, lambda e: asyncio.get_running_loop().call_later(0.05, at.session.skip_wait))
    last = await at.session.run("model 1")
    assert last.outcome == "completed"
    assert [e.how for e in at.of(ev.WaitEnded)] == ["skipped"]


async def test_U_without_the_gateway_the_agents_words_tell_of_a_limit(folder: Path) -> None:
    at = foreign(folder, recovery=RecoveryPolicy(max_wait_s=60.0))
    last = await at.session.run(f"fails {LIMIT}")
    assert last.outcome == "usage-limit"


async def test_K_a_refused_key_is_a_permanent_end_in_the_providers_words(
    server: MockServer, folder: Path
) -> None:
    server.answer(
        '{"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}}', 401
    )
    last = await foreign(folder, url=server.url).session.run("model 1")
    assert (last.outcome, last.class_) == ("provider", "auth")
    assert "invalid x-api-key" in last.error


async def test_L10_silence_is_noticed_and_a_person_decides(folder: Path) -> None:
    clock = ManualClock()
    at = foreign(folder, clock=clock, attended=True)
    running = asyncio.create_task(at.session.run("silent"))
    asked = asyncio.create_task(at.first(ev.HumanRequested))
    while not asked.done():
        await asyncio.sleep(0.02)
        clock.advance(10)
    question = asked.result()
    assert "has said nothing for" in question.needed
    at.session.answer(question.id, "declined")
    last = await asyncio.wait_for(running, 20)
    assert last.text == "I heard: Go on with the task from where you were interrupted."


async def test_L10_silence_with_nobody_there_ends_the_run(folder: Path) -> None:
    clock = ManualClock()
    at = foreign(folder, clock=clock)
    running = asyncio.create_task(at.session.run("silent"))
    while not running.done():
        await asyncio.sleep(0.02)
        clock.advance(10)
    last = running.result()
    assert (last.outcome, last.class_, last.error) == ("provider", "transient", "Fake said nothing for 180 s")


async def test_L1_a_resumed_run_keeps_its_counters(server: MockServer, folder: Path) -> None:
    reply(server)
    first = foreign(folder, url=server.url, bounds=Bounds(max_turns=3))
    await first.session.run("model 1")
    second = foreign(folder, url=server.url)
    second.session.load(first.events)
    last = await second.session.resume(answer="model 9")
    assert (last.outcome, last.requests) == ("turn-limit", 3)
    assert len(server.requests) == 3


def test_J5_an_agent_gets_its_own_keys_and_nobody_elses() -> None:
    environ = {
        "PATH": "/bin",
        "ANTHROPIC_API_KEY": "a",
        "OPENAI_API_KEY": "o",
        "GITHUB_TOKEN": "g",
        "CLAUDE_X": "1",
    }
    agent = entry(keys=("ANTHROPIC_API_KEY",), variables=("ANTHROPIC_*", "CLAUDE_*"))
    assert agent.environ(environ) == {"PATH": "/bin", "ANTHROPIC_API_KEY": "a", "CLAUDE_X": "1"}
