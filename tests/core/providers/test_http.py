"""The shared HTTP: events from bytes, faults as data, timeouts, keys that stay where they belong."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest
from mock_server import MockServer

from handrail.clock import VirtualClock
from handrail.messages import Failure
from handrail.providers import _http_reply as http_module
from handrail.providers import _sse as sse_module
from handrail.providers._http_reply import HttpFailure
from handrail.providers._sse import EventDecoder, ServerEvent
from handrail.providers.http import Http

KEY = "Bearer secret-key"


@pytest.fixture
async def http(server: MockServer) -> AsyncIterator[Http]:
    client = Http(f"{server.url}/v1", {"authorization": KEY}, provider="demo")
    yield client
    await client.aclose()


async def events(http: Http) -> list[ServerEvent]:
    async with http.post("chat/completions", {"model": "m"}) as reply, aclosing(reply.events()) as stream:
        return [event async for event in stream]


async def failure(http: Http) -> Failure:
    with pytest.raises(HttpFailure) as caught:
        await events(http)
    return caught.value.failure


RAW = (
    "\ufeff: hello\r\ndata: {\"a\":\"é 🚀\"}\r\n\r\nevent: x\rdata: 1\rdata:2\r\rid: 7\ndata\n\n"
    "data: 5\r\ndata: 6\r\n\r\ndata: no colon space\nretry: 5\nunknown: y\n\nevent: alone\n\n"
).encode()  # fmt: skip
EVENTS = [
    ServerEvent("", '{"a":"é 🚀"}'),
    ServerEvent("x", "1\n2"),
    ServerEvent("", ""),
    ServerEvent("", "5\n6"),
    ServerEvent("", "no colon space"),
    ServerEvent("bare", "unknown: y"),
]


def test_L11_events_are_the_same_wherever_the_bytes_are_cut() -> None:
    for i in range(len(RAW) + 1):
        for j in range(i, len(RAW) + 1, 7):
            decoder = EventDecoder()
            found = [e for piece in (RAW[:i], RAW[i:j], RAW[j:]) for e in decoder.feed(piece)]
            assert found == EVENTS, (i, j)


def test_L11_events_are_the_same_byte_for_byte() -> None:
    decoder = EventDecoder()
    assert [e for k in range(len(RAW)) for e in decoder.feed(RAW[k : k + 1])] == EVENTS


def test_L11_invalid_utf8_is_replaced_and_ends_nothing() -> None:
    assert EventDecoder().feed(b"data: a\xffb\n\n") == [ServerEvent("", "a\ufffdb")]


def test_an_event_that_ends_in_a_lone_cr_is_told_at_once() -> None:
    assert EventDecoder().feed(b"data: now\r\r") == [ServerEvent("", "now")]


def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse_module, "MAX_EVENT", 1000)
    decoder = EventDecoder()
    with pytest.raises(ValueError, match="exceeds limit"):
        for _ in range(20):
            decoder.feed(b"x" * 100)


def test_an_event_of_endless_lines_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse_module, "MAX_EVENT", 1000)
    decoder = EventDecoder()
    with pytest.raises(ValueError, match="exceeds limit"):
        for _ in range(200):
            decoder.feed(b"data: 0123456789\n")


async def test_K1_a_status_is_a_failure_with_headers_and_body(server: MockServer, http: Http) -> None:
    body = '{"error":{"message":"slow down"}}'
    headers = {"Retry-After": "7", "Set-Cookie": "session=1", "X-Request-Id": "r1"}
    server.answer(body, 429, headers)
    found = await failure(http)
    assert (found.provider, found.phase, found.status, found.text) == ("demo", "response", 429, body)
    assert found.headers["retry-after"] == "7" and found.headers["x-request-id"] == "r1"
    assert "set-cookie" not in found.headers  # rule J5


async def test_K1_a_status_without_a_body_says_the_status(server: MockServer, http: Http) -> None:
    server.answer(b"", 503)
    assert (await failure(http)).text == "HTTP 503 Status"


async def test_K1_a_long_error_body_is_cut(server: MockServer, http: Http) -> None:
    server.answer(b"x" * 300_000, 500)
    assert len((await failure(http)).text) == http_module.MAX_ERROR_BODY


async def test_K1_an_error_body_that_never_ends_keeps_what_came(
    server: MockServer, http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_module, "ERROR_BODY_S", 0.05)
    server.answer(b"overloaded", 529, cut="hang")
    found = await failure(http)
    assert (found.status, found.text) == (529, "overloaded")


async def test_K1_nobody_listens(server: MockServer) -> None:
    port = server.port
    await server.stop()
    http = Http(f"http://127.0.0.1:{port}/v1", {}, provider="demo")
    found = await failure(http)
    await http.aclose()
    assert (found.phase, found.status) == ("connect", None)
    assert "Connection refused" in found.text and f"127.0.0.1:{port}" in found.text


async def test_K1_the_server_goes_away_before_it_answers(server: MockServer, http: Http) -> None:
    for cut in ("eof", "reset"):
        server.forget()
        server.answer(head=False, cut=cut)  # type: ignore[arg-type]
        found = await failure(http)
        assert (found.phase, found.status) == ("response", None) and found.text


async def test_K1_no_answer_in_time_is_a_timeout(server: MockServer) -> None:
    server.answer(head=False, cut="hang")
    http = Http(server.url, {}, provider="demo", header_timeout_s=0.05)
    found = await failure(http)
    await http.aclose()
    assert found.phase == "response" and "timed out" in found.text


async def test_K1_a_stream_that_breaks_says_so(server: MockServer, http: Http) -> None:
    server.answer([b"data: 1\n\n", b"data: 2\n\n"], cut="eof")
    seen = []
    with pytest.raises(HttpFailure) as caught:
        async with http.post("x", {}) as reply, aclosing(reply.events()) as stream:
            async for event in stream:
                seen += [event.data]
    assert seen == ["1", "2"]
    assert caught.value.failure.phase == "stream"
    assert "peer closed connection" in caught.value.failure.text


async def test_a_redirect_is_not_followed_and_the_key_stays(server: MockServer, http: Http) -> None:
    other = MockServer()
    await other.start()
    other.answer("data: x\n\n")
    server.answer(b"", 307, {"location": f"{other.url}/v1/chat/completions"})
    found = await failure(http)
    await other.stop()
    assert found.status == 307 and "redirects to http://127.0.0.1" in found.text
    assert other.requests == []


async def test_a_redirect_to_nowhere_is_a_failure(server: MockServer, http: Http) -> None:
    server.answer(b"", 302, {"location": "http://[nonsense:x/\x01"})
    assert "location" in (await failure(http)).text


async def test_a_web_page_under_200_is_a_failure(server: MockServer, http: Http) -> None:
    server.answer("<!doctype html><title>Sign in</title>", headers={"content-type": "text/html"})
    found = await failure(http)
    assert (found.phase, found.status) == ("response", 200) and "Sign in" in found.text


async def test_a_json_body_is_one_event_whatever_its_content_type(server: MockServer, http: Http) -> None:
    for kind in ("application/json", "text/event-stream"):
        server.forget()
        server.answer([b"\n ", b'{"id"', b":1}"], headers={"content-type": kind})
        assert await events(http) == [ServerEvent("body", '{"id":1}')]


async def test_events_are_read_whatever_their_content_type(server: MockServer, http: Http) -> None:
    server.answer(RAW, headers={"content-type": "application/json"})
    assert await events(http) == EVENTS


async def test_W3_words_that_are_no_events_are_evidence(server: MockServer, http: Http) -> None:
    server.answer("upstream is down\n", headers={"content-type": "text/plain"})
    assert await events(http) == [ServerEvent("bare", "upstream is down")]


async def test_an_empty_200_is_a_failure(server: MockServer, http: Http) -> None:
    server.answer(b"")
    assert "ended before any event" in (await failure(http)).text


async def test_one_connection_serves_many_requests(server: MockServer, http: Http) -> None:
    server.answer("data: 1\n\n")
    for _ in range(5):
        await events(http)
    assert (len(server.requests), server.connections) == (5, 1)


async def test_a_server_that_hangs_up_behind_each_stream_is_asked_on_a_new_connection(
    server: MockServer, http: Http
) -> None:
    server.answer("data: 1\n\n", headers={"server": "llama.cpp"})
    for _ in range(3):
        async with http.post("x", {}) as reply, aclosing(reply.events()) as stream:
            async for _ in stream:
                reply.ending(5.0, last=True)
    assert (len(server.requests), server.connections) == (3, 3)


async def test_connections_are_opened_anew_after_they_were_closed(server: MockServer, http: Http) -> None:
    server.answer("data: 1\n\n")
    await events(http)
    await http.aclose()
    await events(http)
    assert server.connections == 2


async def test_L9_leaving_the_block_ends_the_request_at_once(server: MockServer, http: Http) -> None:
    server.answer("data: 1\n\n", cut="hang")
    async with http.post("x", {}) as reply, aclosing(reply.events()) as stream:
        await anext(stream)
    await asyncio.wait_for(server.closed_by_client.wait(), 5)


async def test_L9_cancelling_ends_the_request_at_once(server: MockServer, http: Http) -> None:
    for head in (True, False):
        server.forget()
        server.closed_by_client.clear()
        server.answer(head=head, cut="hang")
        task = asyncio.create_task(events(http))
        await server.arrival()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.closed_by_client.wait(), 5)


async def test_a_whole_reply_does_not_wait_for_a_server_that_never_ends(
    server: MockServer, http: Http
) -> None:
    server.answer("data: 1\n\n", cut="hang")
    async with http.post("x", {}) as reply, aclosing(reply.events()) as stream:
        async for _ in stream:
            reply.ending(0.05)


async def test_house3_a_virtual_clock_holds_still_while_a_socket_is_pending(server: MockServer) -> None:
    clock = VirtualClock()
    fired: list[float] = []
    clock.call_later(3600.0, lambda: fired.append(clock.now()))
    http = Http(server.url, {}, provider="demo", clock=clock)
    server.answer([b"data: 1\n\n"] * 5, pause=0.005)
    async with http.post("x", {}) as reply, aclosing(reply.events()) as stream:
        for _ in range(3):
            assert await anext(stream) and not fired  # no hour passed while the server thought
        await clock.sleep(7200.0)  # between two reads nothing real is pending
        assert fired
        assert len([e async for e in stream]) == 2
    await http.aclose()


async def test_what_is_sent(server: MockServer, http: Http) -> None:
    server.answer("data: 1\n\n")
    async with http.post("/chat/completions", {"text": "é\ud800"}, {"x-extra": "1"}) as reply:
        assert reply.headers["content-type"] == "text/event-stream"
    sent = server.requests[0]
    assert (sent.method, sent.path) == ("POST", "/v1/chat/completions")
    assert sent.headers["authorization"] == KEY and sent.headers["x-extra"] == "1"
    assert sent.body == {"text": "é?"}


async def test_a_query_of_the_base_url_is_kept(server: MockServer) -> None:
    server.answer("data: 1\n\n")
    http = Http(f"{server.url}/v1/?api-version=3", {}, provider="demo")
    await events(http)
    await http.aclose()
    assert server.requests[0].path == "/v1/chat/completions?api-version=3"


@pytest.mark.parametrize(
    "base", ["", "api.example.com/v1", "ftp://h/v1", "http://", "https:///v1", "http://h:x/v1"]
)
def test_a_base_url_that_cannot_work_is_refused_with_what_to_do(base: str) -> None:
    with pytest.raises(ValueError, match=r"base URL .* of demo cannot be used: .*Give one like"):
        Http(base, {}, provider="demo")


@pytest.mark.parametrize("key", ["se\ncret", "se cret\r", "schlüssel", "se\0cret"])
def test_J5_a_key_that_no_header_may_hold_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(ValueError, match="copy the key again") as caught:
        Http("https://h/v1", {"authorization": key}, provider="demo")
    assert key not in str(caught.value) and "cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("base", "warned"),
    [
        ("http://api.example.com/v1", True),
        ("http://192.168.1.7:8080/v1", True),
        ("https://api.example.com/v1", False),
        ("http://127.0.0.1:1/v1", False),
        ("http://localhost/v1", False),
        ("http://[::1]:8080/v1", False),
    ],
)
def test_plain_http_to_another_machine_warns(base: str, warned: bool) -> None:
    http = Http(base, {}, provider="demo")
    assert bool(http.warnings) is warned
    assert [note.level for note in http.notes()] == ["warning"] * warned
    assert http.notes() == ()  # said once


async def test_the_proxy_of_the_environment_is_used_but_not_for_loopback(
    server: MockServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = MockServer()
    await proxy.start()
    proxy.answer("data: proxied\n\n")
    server.answer("data: direct\n\n")
    monkeypatch.setenv("HTTP_PROXY", proxy.url)
    far = Http("http://api.example.test/v1", {}, provider="demo")
    near = Http(server.url, {}, provider="demo")
    assert [e.data for e in await events(far)] == ["proxied"]
    assert [e.data for e in await events(near)] == ["direct"]
    await far.aclose()
    await near.aclose()
    await proxy.stop()


def test_a_ca_bundle_that_is_not_there_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/ca")
    with pytest.raises(ValueError, match="SSL_CERT_FILE says /nowhere/ca, which is not there"):
        Http("https://api.example.test/v1", {}, provider="demo")
    Http("http://127.0.0.1:1/v1", {}, provider="demo")  # never meets a certificate


async def test_a_ca_bundle_that_holds_none_is_a_failure_in_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    found = await failure(Http("https://api.example.test/v1", {}, provider="demo"))
    assert found.phase == "response" and "SSL_CERT_FILE" in found.text


async def test_bytes_that_are_no_http_are_a_failure(server: MockServer, http: Http) -> None:
    dice = random.Random(4)
    for _ in range(20):
        server.forget()
        junk = bytes(dice.randrange(256) for _ in range(200))
        server.answer(junk, framing="close", head=False)
        assert (await failure(http)).phase == "response"
