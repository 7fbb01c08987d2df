"""A usage limit: known to all of its account, repeated in the provider's own words while it lasts (U1, U3, U4)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import httpx
import pytest
from gateways import Front, front
from mock_server import MockServer, sse

from handrail import events as ev
from handrail.agents.limits import LimitsHere, account_of

BODY = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
WORDS = "You've hit your usage limit. Try again in ~42 minutes."
LIMIT = json.dumps({"error": {"type": "usage_limit_reached", "message": WORDS}})
REPLY = sse({"choices": [{"index": 0, "delta": {"content": "ok"}, "finish_reason": "stop"}]})
MINUTE = 60.0


@pytest.fixture
async def server() -> AsyncIterator[MockServer]:
    server = MockServer()
    await server.start()
    yield server
    await server.stop()


async def ask(at: Front, key: str = "sk-one") -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False) as client:
        url = at.url() + "/chat/completions"
        return await client.post(url, json=BODY, headers={"Authorization": f"Bearer {key}"})


async def test_U1_a_limit_passes_first_and_is_then_repeated_without_asking_the_provider(
    server: MockServer,
) -> None:
    server.answer(LIMIT, 429, headers={"retry-after": "2520"})
    async with front(server.url) as at:
        first, second = await ask(at), await ask(at)
        assert (first.status_code, first.text) == (429, LIMIT)
        assert "x-should-retry" not in first.headers
        assert (second.status_code, second.text) == (429, LIMIT)
        assert second.headers["x-should-retry"] == "false"
        assert len(server.requests) == 1
        assert at.session.requests == 1
        (wait,) = at.of(ev.WaitStarted)
        assert wait.reason == "usage-limit"
        assert WORDS in wait.words
        assert wait.until - at.clock.now() == pytest.approx(42 * MINUTE, abs=MINUTE)


async def test_U4_after_the_announced_moment_requests_go_through_again(server: MockServer) -> None:
    server.answer(LIMIT, 429)
    server.answer(REPLY)
    async with front(server.url) as at:
        await ask(at)
        await at.session.settled()
        at.clock.advance(41 * MINUTE)
        assert (await ask(at)).status_code == 429
        at.clock.advance(2 * MINUTE)
        assert at.session.limit is None
        assert (await ask(at)).status_code == 200
        (ended,) = at.of(ev.WaitEnded)
    assert ended.how == "elapsed"


async def test_U3_without_guidance_a_request_is_let_through_every_quarter_of_an_hour(
    server: MockServer,
) -> None:
    server.answer(json.dumps({"error": {"message": "You have hit your usage limit."}}), 429)
    async with front(server.url) as at:
        for _ in range(3):
            assert (await ask(at)).status_code == 429
            assert (await ask(at)).status_code == 429
            at.clock.advance(15 * MINUTE)
    assert len(server.requests) == 3


async def test_U1_a_limit_holds_for_the_sessions_of_its_account_and_for_no_other(server: MockServer) -> None:
    server.answer(LIMIT, 429)
    limits = LimitsHere()
    async with front(server.url, limits=limits) as one, front(server.url, limits=limits) as two:
        await ask(one)
        await one.session.settled()
        assert (await ask(two)).status_code == 429
        assert len(server.requests) == 1
        assert len(two.of(ev.WaitStarted)) == 1
        await ask(two, key="sk-another")
    assert len(server.requests) == 2


async def test_a_limit_told_in_the_middle_of_a_stream_counts_too(server: MockServer) -> None:
    server.answer(sse({"error": {"message": WORDS, "code": 429}}, done=False))
    async with front(server.url) as at:
        await ask(at)
        again = await ask(at)
    assert again.status_code == 429
    assert "42 minutes" in again.json()["error"]["message"]


async def test_a_throttle_of_seconds_and_a_busy_provider_stop_nobody(server: MockServer) -> None:
    server.answer(
        '{"error": {"message": "Rate limit reached, try again in 2s"}}', 429, headers={"retry-after": "2"}
    )
    server.answer('{"error": {"message": "Overloaded"}}', 529)
    server.answer(REPLY)
    async with front(server.url) as at:
        codes = [(await ask(at)).status_code for _ in range(3)]
        assert at.of(ev.WaitStarted) == []
    assert codes == [429, 529, 200]


async def test_a_deadline_holds_still_while_a_limit_lasts(server: MockServer) -> None:
    from handrail.policy import Bounds

    server.answer(LIMIT, 429)
    server.answer(REPLY)
    async with front(server.url, Bounds(deadline_s=600)) as at:
        await ask(at)
        await at.session.settled()
        at.clock.advance(43 * MINUTE)
        assert (await ask(at)).status_code == 200


def test_an_account_tells_nobody_its_key() -> None:
    digest = account_of("https://api.openai.com", "sk-secret")
    assert "secret" not in digest
    assert digest != account_of("https://api.openai.com", "sk-other")
    assert digest != account_of("https://api.mistral.ai", "sk-secret")
