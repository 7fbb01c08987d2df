"""The gateway passes everything unchanged, and keeps the books of what passed (rules L1 to L3, J5)."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator

import httpx
import pytest
from gateways import Front, front, routes_to
from mock_server import MockServer, sse

from handrail import events as ev
from handrail.messages import Usage
from handrail.policy import Bounds

CHUNK = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
BODY = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hello"}]}


def text(words: str, finish: str | None = None, **more: object) -> dict[str, object]:
    return {**CHUNK, "choices": [{"index": 0, "delta": {"content": words}, "finish_reason": finish}], **more}


REPLY = sse(
    text("one "),
    text("two", "stop"),
    {**CHUNK, "choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 5}},
)


@pytest.fixture
async def server() -> AsyncIterator[MockServer]:
    server = MockServer()
    await server.start()
    yield server
    await server.stop()


async def ask(at: Front, path: str = "/chat/completions", **more: object) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False) as client:
        return await client.post(
            at.url() + path, json=BODY | more, headers={"Authorization": "Bearer sk-client"}
        )


async def test_bytes_pass_unchanged_both_ways(server: MockServer) -> None:
    server.answer(REPLY, headers={"x-request-id": "r1"})
    async with front(server.url) as at:
        response = await ask(at)
    assert response.content == REPLY
    assert response.headers["x-request-id"] == "r1"
    (seen,) = server.requests
    assert (seen.method, seen.path, seen.body) == ("POST", "/v1/chat/completions", BODY)
    assert seen.headers["authorization"] == "Bearer sk-client"
    assert seen.headers["host"] == f"127.0.0.1:{server.port}"


async def test_the_first_byte_does_not_wait_for_the_second(server: MockServer) -> None:
    server.answer([sse(text("first"), done=False)], cut="hang")
    async with (
        front(server.url) as at,
        httpx.AsyncClient(trust_env=False) as client,
        client.stream("POST", at.url() + "/chat/completions", json=BODY) as response,
    ):
        assert b"first" in await anext(response.aiter_raw())
    await server.closed_by_client.wait()


async def test_a_reply_becomes_events_and_sums(server: MockServer) -> None:
    server.answer(REPLY)
    async with front(server.url) as at:
        await ask(at)
        await at.session.settled()
        kinds = [event.type for event in at.events]
        assert kinds[:2] == ["turn_started", "message_started"]
        assert kinds[-2:] == ["message_finished", "turn_finished"]
        assert "".join(e.text for e in at.of(ev.MessageDelta)) == "one two"
        (finished,) = at.of(ev.MessageFinished)
        assert finished.message.text == "one two"
        assert finished.message.stop_reason == "stop"
        assert at.session.usage == Usage(7, 5)
        assert at.session.cost == pytest.approx((7 * 1 + 5 * 2) / 1e6)


async def test_L1_the_bound_on_requests_holds_exactly_and_in_the_shape_of_the_wire(
    server: MockServer,
) -> None:
    server.answer(REPLY)
    async with front(server.url, Bounds(max_turns=2)) as at:
        answers = await asyncio.gather(*(ask(at) for _ in range(5)))
    assert sorted(a.status_code for a in answers) == [200, 200, 400, 400, 400]
    assert len(server.requests) == 2
    refused = next(a for a in answers if a.status_code == 400)
    assert refused.headers["x-should-retry"] == "false"
    assert refused.json()["error"]["code"] == "max_turns"
    assert "2 turns are used" in refused.json()["error"]["message"]
    assert at.session.refused == 3
    assert len(at.of(ev.Notice)) == 1


async def test_L3_a_bound_on_tokens_counts_the_reply_that_has_just_passed(server: MockServer) -> None:
    server.answer(REPLY)
    async with front(server.url, Bounds(max_total_tokens=20)) as at:
        codes = [(await ask(at)).status_code for _ in range(3)]
    assert codes == [200, 200, 400]


async def test_L3_a_bound_on_cost_needs_a_price(server: MockServer) -> None:
    server.answer(REPLY)
    async with front(server.url, Bounds(max_cost=1.0), routes=routes_to(server.url, at_home=False)) as at:
        refused = await ask(at)
    assert refused.status_code == 400
    assert "price of openai/m is not known" in refused.json()["error"]["message"]
    assert server.requests == []


async def test_L3_the_deadline_refuses_what_comes_after_it(server: MockServer) -> None:
    server.answer(REPLY)
    async with front(server.url, Bounds(deadline_s=60)) as at:
        assert (await ask(at)).status_code == 200
        at.clock.advance(61)
        assert (await ask(at)).status_code == 400


async def test_usage_that_nobody_told_is_estimated_so_that_bounds_bite(server: MockServer) -> None:
    server.answer(sse(text("word " * 40, "stop")))
    async with front(server.url) as at:
        await ask(at)
        await at.session.settled()
        (finished,) = at.of(ev.MessageFinished)
    assert finished.message.usage is None
    assert finished.estimate.output >= 40


async def test_requests_side_by_side_are_told_one_turn_after_the_other(server: MockServer) -> None:
    server.answer([sse(text(f"{n} "), done=False) for n in range(8)], pause=0.002)
    async with front(server.url) as at:
        await asyncio.gather(*(ask(at) for _ in range(3)))
        await at.session.settled()
    turns = [event.turn for event in at.events]
    assert turns == sorted(turns)
    assert set(turns) == {1, 2, 3}


async def test_L9_a_client_that_goes_away_ends_the_request_at_the_provider(server: MockServer) -> None:
    server.answer([sse(text("begun"), done=False)], cut="hang")
    async with front(server.url) as at:
        async with (
            httpx.AsyncClient(trust_env=False) as client,
            client.stream("POST", at.url() + "/chat/completions", json=BODY) as response,
        ):
            await anext(response.aiter_raw())
        await server.closed_by_client.wait()
        while not at.of(ev.MessageFinished):
            await asyncio.sleep(0)
            await at.session.settled()
        (finished,) = at.of(ev.MessageFinished)
    assert finished.message.stop_reason == "aborted"
    assert finished.message.text == "begun"


@pytest.mark.parametrize("path", ["/s1/wrong/openai/models", "/nobody/x/openai/models", "/", "/s1"])
async def test_a_wrong_token_or_session_is_refused(server: MockServer, path: str) -> None:
    async with front(server.url) as at, httpx.AsyncClient(trust_env=False) as client:
        response = await client.get(f"http://127.0.0.1:{at.gateway.port}{path}")
    assert response.status_code == 401
    assert "token is wrong" in response.json()["error"]["message"]
    assert server.requests == []


async def test_an_unknown_provider_is_named(server: MockServer) -> None:
    async with front(server.url) as at, httpx.AsyncClient(trust_env=False) as client:
        response = await client.get(at.url("opnai") + "/models")
    assert response.status_code == 404
    assert "anthropic, gemini, openai" in response.json()["error"]["message"]


async def test_what_asks_no_model_passes_and_is_not_counted(server: MockServer) -> None:
    server.answer(b'{"data": []}', headers={"content-type": "application/json"})
    async with front(server.url, Bounds(max_turns=1)) as at, httpx.AsyncClient(trust_env=False) as client:
        for _ in range(3):
            assert (await client.get(at.url() + "/models?limit=5")).json() == {"data": []}
    assert at.session.requests == 0
    assert server.requests[0].path == "/v1/models?limit=5"
    assert server.connections == 1


async def test_an_unreachable_provider_is_a_clear_error_and_on_the_record(server: MockServer) -> None:
    gone = MockServer()
    await gone.start()
    url = gone.url
    await gone.stop()
    async with front(url) as at:
        response = await ask(at)
        await at.session.settled()
        (finished,) = at.of(ev.MessageFinished)
    assert response.status_code == 502
    assert "could not connect to 127.0.0.1" in response.json()["error"]["message"]
    assert finished.message.failure.phase == "connect"


@pytest.mark.parametrize("garbage", [b"\x00\xff" * 400 + b"\r\n\r\n", b"SSH-2.0-OpenSSH\r\n\r\n"])
async def test_a_provider_that_speaks_no_http_is_a_clear_error(garbage: bytes) -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(garbage)
        await writer.drain()
        writer.close()

    other = await asyncio.start_server(speak, "127.0.0.1", 0)
    async with other, front(f"http://127.0.0.1:{other.sockets[0].getsockname()[1]}") as at:
        response = await ask(at)
    assert response.status_code == 502
    assert "no HTTP" in response.json()["error"]["message"]


async def test_a_stream_that_breaks_off_breaks_off_at_the_client_and_is_a_failure(server: MockServer) -> None:
    server.answer([sse(text("half a"), done=False)], cut="reset")
    async with front(server.url) as at:
        with pytest.raises(httpx.HTTPError):
            await ask(at)
        await at.session.settled()
        (finished,) = at.of(ev.MessageFinished)
    assert finished.message.stop_reason == "error"
    assert finished.message.text == "half a"


async def test_garbage_from_a_client_gets_an_answer(server: MockServer) -> None:
    async with front(server.url) as at:
        reader, writer = await asyncio.open_connection("127.0.0.1", at.gateway.port)
        writer.write(b"\x16\x03\x01 hello\r\n\r\n")
        said = await reader.read()
        writer.close()
    assert said.startswith(b"HTTP/1.1 400")


async def test_one_connection_serves_many_requests(server: MockServer) -> None:
    server.answer(REPLY)
    async with front(server.url) as at, httpx.AsyncClient(trust_env=False) as client:
        for _ in range(3):
            assert (await client.post(at.url() + "/chat/completions", json=BODY)).content == REPLY
    assert server.connections == 1


async def test_the_gateway_holds_the_key_and_the_client_never_sees_it(server: MockServer) -> None:
    server.answer(REPLY)
    async with front(server.url, routes=routes_to(server.url, key="sk-real")) as at:
        await ask(at)
        async with httpx.AsyncClient(trust_env=False) as client:
            await client.post(at.url("anthropic") + "/v1/messages", json=BODY, headers={"x-api-key": "tok"})
            await client.post(at.url("gemini") + "/v1beta/models/g:generateContent?key=tok&alt=sse", json={})
    chat, messages, gemini = server.requests
    assert chat.headers["authorization"] == "Bearer sk-real"
    assert messages.headers["x-api-key"] == "sk-real"
    assert gemini.headers["x-goog-api-key"] == "sk-real"
    assert gemini.path == "/v1beta/models/g:generateContent?alt=sse"
    assert "sk-real" not in repr(at.events)


async def test_a_compressed_reply_passes_as_it_is_and_is_read(server: MockServer) -> None:
    whole = {
        "id": "c",
        "object": "chat.completion",
        "model": "m",
        "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    }
    whole |= {
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "packed"}, "finish_reason": "stop"}
        ]
    }
    server.answer(
        gzip.compress(json.dumps(whole).encode()),
        headers={"content-encoding": "gzip", "content-type": "application/json"},
        framing="length",
    )
    async with front(server.url) as at:
        assert (await ask(at)).json() == whole
        await at.session.settled()
        assert at.session.usage == Usage(3, 2)
    assert server.requests[0].headers["accept-encoding"] == "identity"


async def test_stopping_leaves_nothing_open(server: MockServer) -> None:
    server.answer([sse(text("x"), done=False)], cut="hang")
    async with front(server.url) as at:
        asking = asyncio.create_task(ask(at))
        await server.arrival()
    with pytest.raises(httpx.HTTPError):
        await asking
    await server.closed_by_client.wait()
