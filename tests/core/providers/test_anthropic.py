"""The Messages wire over HTTP: whole, cut, split, broken; and read beside the official SDK."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import anthropic
import pytest
from mock_server import MockServer
from replay import (
    HELLO,
    Recording,
    ask,
    check_parts,
    cuts,
    events_in,
    expected_of,
    noisy,
    recordings,
    split,
    stream_of,
    told,
)

from handrail.messages import AssistantMessage, Thinking, Usage
from handrail.providers._streaming import StreamFault
from handrail.providers.base import ModelInfo, Provider, Started, TextDelta
from handrail.providers.messages import Anthropic, MessagesReader

TERMINAL = b'"message_delta"'  # with it the stop reason and usage have come (rule W2)


@pytest.fixture
async def claude(server: MockServer) -> AsyncIterator[Anthropic]:
    """A client of `server`."""
    client = Anthropic(ModelInfo("anthropic/claude-test"), base_url=server.url, api_key="sk-test")
    yield client
    await client.aclose()


Reply = Callable[..., Awaitable[AssistantMessage]]


@pytest.fixture
async def reply(server: MockServer, claude: Anthropic) -> Reply:
    """The message that a stream of events makes."""

    async def play(*events: Mapping[str, Any]) -> AssistantMessage:
        server.forget()
        server.answer(stream_of(*events))
        return (await ask(claude))[1]

    return play


def start(**usage: int) -> dict[str, Any]:
    usage = {"input_tokens": 12, "output_tokens": 1, **usage}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-test", "content": []}
    return {"type": "message_start", "message": {**message, "stop_reason": None, "usage": usage}}


def block(index: int, given: Mapping[str, Any], *deltas: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": dict(given)},
        *({"type": "content_block_delta", "index": index, "delta": dict(delta)} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def text(index: int, *pieces: str) -> list[dict[str, Any]]:
    return block(index, {"type": "text", "text": ""}, *({"type": "text_delta", "text": p} for p in pieces))


def thought(index: int, *pieces: str, signature: str = "c2ln") -> list[dict[str, Any]]:
    deltas: list[dict[str, Any]] = [{"type": "thinking_delta", "thinking": p} for p in pieces]
    deltas.append({"type": "signature_delta", "signature": signature})
    return block(index, {"type": "thinking", "thinking": "", "signature": ""}, *deltas)


def use(index: int, *pieces: str, id: str = "toolu_1", kind: str = "tool_use") -> list[dict[str, Any]]:
    given = {"type": kind, "id": id, "name": "look", "input": {}}
    return block(index, given, *({"type": "input_json_delta", "partial_json": p} for p in pieces))


def end(stop: str | None, output: int = 30, **more: Any) -> list[dict[str, Any]]:
    delta = {"stop_reason": stop, "stop_sequence": None, **more}
    return [
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": output}},
        {"type": "message_stop"},
    ]


WHOLE = stream_of(
    start(cache_read_input_tokens=40, cache_creation_input_tokens=5),
    {"type": "ping"},
    *thought(0, "Sehen wir ", "mal — 思考 🧠"),
    *block(1, {"type": "redacted_thinking", "data": "c2VjcmV0"}),
    *text(2, "Grüße, ", "世界 👋"),
    *use(3, "", '{"at": "Zür', 'ich 🏔"}'),
    *use(4, id="toolu_2"),
    *end("tool_use"),
)
EXPECTED = {
    "text": "Grüße, 世界 👋",
    "thinking": "Sehen wir mal — 思考 🧠",
    "tool_calls": [{"name": "look", "arguments": {"at": "Zürich 🏔"}}, {"name": "look", "arguments": {}}],
    "stop": "tool_use",
    "usage": {"input": 57, "output": 30},
    "error": None,
}
OWN = pytest.param(Recording("own", WHOLE, EXPECTED), id="own")
ALL = [OWN, *recordings("anthropic")]


@pytest.mark.parametrize("recording", ALL)
async def test_a_recording_holds_what_it_holds(
    server: MockServer, claude: Anthropic, recording: Recording
) -> None:
    server.answer(recording.body)
    parts, message = await ask(claude)
    assert told(message) == expected_of(recording)
    check_parts(parts, message)


@pytest.mark.parametrize("recording", ALL)
async def test_chunks_line_ends_and_noise_change_nothing(
    server: MockServer, claude: Anthropic, recording: Recording
) -> None:
    server.answer(split(recording.body, recording.name))
    server.answer(split(noisy(recording.body), recording.name))
    for _ in range(2):
        _, message = await ask(claude)
        assert told(message) == expected_of(recording)


@pytest.mark.parametrize("recording", ALL)
async def test_a_cut_is_never_a_success_and_keeps_what_came(
    server: MockServer, claude: Anthropic, recording: Recording
) -> None:
    for n, at in enumerate(cuts(recording, TERMINAL)):
        server.forget()
        server.answer(recording.body[:at], cut=("eof", "reset", None)[n % 3])
        parts, message = await ask(claude)
        assert message.stop_reason == "error"
        assert message.failure is not None and message.failure.phase == "stream"
        assert message.failure.provider == "anthropic"
        if n % 3 != 1:  # a reset may overtake bytes that were sent
            came = list(events_in(recording.body[:at]))
            assert message.text == _sum(came, "text_delta", "text")
            assert message.thinking == _sum(came, "thinking_delta", "thinking")
        assert "".join(p.text for p in parts if isinstance(p, TextDelta)) == message.text


def _sum(events: list[Mapping[str, Any]], kind: str, key: str) -> str:
    deltas = [e["delta"] for e in events if e["type"] == "content_block_delta"]
    return "".join(delta[key] for delta in deltas if delta["type"] == kind)


async def test_a_cut_keeps_usage_and_names_the_calls_that_were_asked_for(
    server: MockServer, claude: Anthropic
) -> None:
    server.answer(WHOLE[: WHOLE.index("ich 🏔".encode())], cut="eof")
    _, message = await ask(claude)
    assert message.usage == Usage(12, 1, 40, 5)
    assert [call.error is None for call in message.calls] == [False]
    assert message.content[0] == Thinking("Sehen wir mal — 思考 🧠", "c2ln")


async def test_L9_closing_the_stream_ends_the_request(server: MockServer, claude: Anthropic) -> None:
    server.answer(stream_of(start(), *text(0, "Hello")[:2]), cut="hang")
    stream = claude.stream(HELLO)
    assert isinstance(await anext(stream), Started)
    assert await anext(stream) == TextDelta("Hello")
    await stream.aclose()  # type: ignore[attr-defined]
    await server.closed_by_client.wait()


async def test_a_server_that_keeps_the_stream_open_holds_nothing(
    server: MockServer, claude: Anthropic
) -> None:
    server.answer(WHOLE, cut="hang")
    _, message = await ask(claude)
    assert message.stop_reason == "tool_use"


async def test_the_request_carries_key_version_and_body(server: MockServer, claude: Anthropic) -> None:
    server.answer(WHOLE)
    assert isinstance(claude, Provider)
    await ask(claude)
    [request] = server.requests
    assert (request.method, request.path) == ("POST", "/v1/messages")
    assert request.headers["x-api-key"] == "sk-test"
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert request.body["model"] == "claude-test" and request.body["stream"] is True


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/messages"])
async def test_the_base_url_may_end_in_what_people_paste(server: MockServer, path: str) -> None:
    server.answer(WHOLE)
    client = Anthropic(ModelInfo("anthropic/x"), base_url=server.url + path)
    await ask(client)
    await client.aclose()
    assert server.requests[0].path == "/v1/messages"
    assert "x-api-key" not in server.requests[0].headers


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("pause_turn", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "refusal"),
        ("MAX_TOKENS", "length"),
        (None, "stop"),
    ],
)
async def test_stop_reasons(reply: Reply, word: str | None, reason: str) -> None:
    message = await reply(start(), *text(0, "Hello"), *end(word))
    assert (message.stop_reason, message.stop_detail, message.failure) == (reason, word, None)


async def test_W1_a_word_that_nobody_knows_finishes_nothing(reply: Reply) -> None:
    message = await reply(start(), *text(0, "Hello"), *end("something_new"))
    assert (message.stop_reason, message.text) == ("error", "Hello")
    assert message.failure is not None and "something_new" in message.failure.text


async def test_a_refusal_says_why(reply: Reply) -> None:
    why = {"type": "refusal", "category": "bio", "explanation": "Not this."}
    message = await reply(start(), *text(0, "I"), *end("refusal", stop_details=why))
    assert (message.stop_reason, message.stop_detail, message.text) == ("refusal", "refusal: Not this.", "I")


async def test_tools_of_the_provider_are_not_our_calls(reply: Reply) -> None:
    answer = block(1, {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []})
    message = await reply(
        start(),
        *use(0, '{"q": 1}', kind="server_tool_use"),
        *answer,
        *text(2, "Found."),
        *end("tool_use"),
    )
    assert (message.calls, message.text, message.stop_reason) == ((), "Found.", "stop")


async def test_L4_arguments_that_do_not_parse_are_told(reply: Reply) -> None:
    message = await reply(start(), *use(0, '{"at": "ha'), *end("tool_use"))
    [call] = message.calls
    assert (call.arguments, call.raw) == ({}, '{"at": "ha')
    assert call.error is not None and "JSON" in call.error


async def test_arguments_may_come_whole_at_the_start(reply: Reply) -> None:
    given = {"type": "tool_use", "id": "t", "name": "look", "input": {"at": "a"}}
    message = await reply(start(), *block(0, given), *end("tool_use"))
    assert message.calls[0].arguments == {"at": "a"}


@pytest.mark.parametrize(("streamed", "good"), [('{"at": "a"}', True), ('{"at": "b"}', False)])
async def test_W5_arguments_given_at_the_start_and_streamed_count_once(
    reply: Reply, streamed: str, good: bool
) -> None:
    given = {"type": "tool_use", "id": "t", "name": "look", "input": {"at": "a"}}
    delta = {"type": "input_json_delta", "partial_json": streamed}
    message = await reply(start(), *block(0, given, delta), *end("tool_use"))
    assert (message.calls[0].arguments, message.calls[0].error is None) == ({"at": "a"} if good else {}, good)


async def test_a_final_count_overrides_and_one_that_read_nothing_does_not(
    server: MockServer, reply: Reply
) -> None:
    final = {"input_tokens": 20, "cache_read_input_tokens": 0, "output_tokens": 9}
    delta = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": final}
    message = await reply(start(cache_read_input_tokens=40), *text(0, "a"), delta, {"type": "message_stop"})
    assert message.usage == Usage(20, 9)
    delta["usage"] = {"input_tokens": 0, "output_tokens": 9}
    message = await reply(start(cache_read_input_tokens=40), *text(0, "a"), delta, {"type": "message_stop"})
    assert message.usage == Usage(12, 9, 40)


ERRORS = [
    ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, 529),
    ({"type": "error", "error": {"type": "rate_limit_error", "message": "Slow down"}}, 429),
    ({"type": "error", "error": {"type": "api_error", "message": "Connection closed."}}, 500),
    ({"error": {"code": 400, "message": "the context is full", "type": "exceed_context_size_error"}}, 400),
    ({"type": "error", "error": {"type": "new_error", "message": "?"}}, 200),
    ({"type": "error", "error": "just words"}, 200),
]


@pytest.mark.parametrize(("error", "status"), ERRORS)
async def test_K1_an_error_in_the_stream_is_the_failure(
    server: MockServer, claude: Anthropic, error: dict[str, Any], status: int
) -> None:
    body = stream_of(start(), *text(0, "so far")) + f"event: error\ndata: {json.dumps(error)}\n\n".encode()
    server.answer(body, headers={"retry-after": "7"})
    _, message = await ask(claude)
    assert (message.stop_reason, message.text) == ("error", "so far")
    failure = message.failure
    assert failure is not None
    assert (failure.phase, failure.status, failure.provider) == ("stream", status, "anthropic")
    assert json.loads(failure.text)["error"] == error["error"]
    assert failure.headers["retry-after"] == "7"


async def test_K1_a_status_is_the_failure(server: MockServer, claude: Anthropic) -> None:
    words = '{"type":"error","error":{"type":"rate_limit_error","message":"Number of requests"}}'
    server.answer(words, status=429, headers={"retry-after": "20"})
    parts, message = await ask(claude)
    assert (parts, message.stop_reason, message.content) == ([], "error", ())
    assert message.failure is not None
    assert (message.failure.status, message.failure.phase, message.failure.text) == (429, "response", words)


async def test_a_body_without_a_stream_is_read_too(server: MockServer, claude: Anthropic) -> None:
    content = [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "text", "text": "Hello"},
        {"type": "tool_use", "id": "t", "name": "look", "input": {"at": "a"}},
    ]
    usage = {"input_tokens": 3, "output_tokens": 4}
    body = {"type": "message", "content": content, "stop_reason": "tool_use", "usage": usage}
    server.answer(json.dumps(body), headers={"content-type": "application/json"})
    parts, message = await ask(claude)
    check_parts(parts, message)
    assert (message.thinking, message.text, message.usage) == ("hm", "Hello", Usage(3, 4))
    assert message.calls[0].arguments == {"at": "a"}
    server.forget()
    server.answer(json.dumps(ERRORS[0][0]), headers={"content-type": "application/json"})
    _, message = await ask(claude)
    assert message.failure is not None and message.failure.status == 529


@pytest.mark.parametrize("data", ["{", "[1", "[" * 9999])
async def test_what_is_no_event_is_the_failure(server: MockServer, claude: Anthropic, data: str) -> None:
    server.answer(stream_of(start(), *text(0, "so far")) + f"data: {data}\n\n".encode())
    _, message = await ask(claude)
    assert (message.stop_reason, message.text) == ("error", "so far")
    assert message.failure is not None and "JSON" in message.failure.text


async def test_L11_broken_text_is_replaced_where_it_enters(server: MockServer, claude: Anthropic) -> None:
    pieces = ['"a\\ud83d"', '"\\ude00b\\u0000"', '"\\ud800"']
    deltas = [
        f'{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":{p}}}}}'
        for p in pieces
    ]
    body = "".join(f"data: {data}\n\n" for data in deltas).encode()
    server.answer(stream_of(start(), *text(0)[:1]) + body + stream_of(*end("end_turn")))
    parts, message = await ask(claude)
    assert message.text == "a😀b\ufffd\ufffd"
    for part in parts:
        assert isinstance(part, TextDelta)
        part.text.encode()  # no lone surrogate is told


ODD: list[Any] = [
    None,
    3,
    -1,
    True,
    "x",
    [],
    [None],
    {},
    {"type": None},
    {"type": ["x"]},
    1e400,
    float("nan"),
]


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_a_reader_takes_whatever_comes(odd: Any) -> None:
    events = [start(), *thought(0, "a"), *text(1, "b"), *use(2, '{"a": 1}'), *end("tool_use")]
    for event in events:
        for path in _paths(event):
            reader = MessagesReader("test/one")
            for other in events:
                try:
                    list(reader.feed(_with(other, path, odd) if other is event else other))
                except StreamFault:
                    break
            assert reader.message(None).role == "assistant"


def _paths(value: Any, so_far: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if not isinstance(value, dict):
        return [so_far]
    return [so_far, *(p for key in value for p in _paths(value[key], (*so_far, key)))][bool(not so_far) :]


def _with(event: Mapping[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    head, *rest = path
    return {**event, head: _with(event[head], tuple(rest), value) if rest else value}


async def test_the_official_sdk_reads_the_same(server: MockServer, claude: Anthropic) -> None:
    server.answer(WHOLE)
    async with anthropic.AsyncAnthropic(base_url=server.url, api_key="sk-test", max_retries=0) as sdk:
        request = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}]}
        async with sdk.messages.stream(**request) as stream:
            theirs = await stream.get_final_message()
    _, ours = await ask(claude)
    assert [b.text for b in theirs.content if b.type == "text"] == [EXPECTED["text"]]
    assert [b.input for b in theirs.content if b.type == "tool_use"] == [c.arguments for c in ours.calls]
    assert theirs.usage.output_tokens == (ours.usage and ours.usage.output)


async def test_headers_of_ones_own_go_beside_ours(server: MockServer) -> None:
    server.answer(WHOLE)
    headers = {"anthropic-beta": "context-1m", "anthropic-version": "2099-01-01"}
    claude = Anthropic(ModelInfo("anthropic/x"), base_url=server.url, api_key="k", headers=headers)
    await ask(claude)
    await claude.aclose()
    sent = server.requests[0].headers
    assert (sent["anthropic-beta"], sent["anthropic-version"], sent["x-api-key"]) == (
        "context-1m",
        "2099-01-01",
        "k",
    )


async def test_L11_what_is_sealed_holds_no_broken_text(server: MockServer, claude: Anthropic) -> None:
    signed = '{"type":"signature_delta","signature":"c2\\ud800"}'
    delta = f'data: {{"type":"content_block_delta","index":0,"delta":{signed}}}\n\n'.encode()
    server.answer(
        stream_of(start(), *thought(0, "a", signature="")[:1]) + delta + stream_of(*end("end_turn"))
    )
    _, message = await ask(claude)
    assert message.content == (Thinking("", "c2\ufffd"),)
