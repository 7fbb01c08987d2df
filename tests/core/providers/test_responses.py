"""The Responses wire over HTTP: whole, cut, split, broken; and read beside the official SDK."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import openai
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
from responses_events import (
    RESPONSE,
    Event,
    Reply,
    added,
    call,
    calling,
    delta,
    end,
    item_done,
    message,
    words,
)

from handrail.messages import Text, Thinking, Usage
from handrail.providers._streaming import StreamFault
from handrail.providers.base import ModelInfo, Provider, Started, TextDelta, ThinkingDelta
from handrail.providers.responses import OpenAIResponses, ResponsesReader

TERMINAL = b'"response.completed"'
SEALED = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [
        {"type": "summary_text", "text": "Sehen wir mal"},
        {"type": "summary_text", "text": " — 思考 🧠"},
    ],
    "encrypted_content": "c2VhbGVk",
}
OPENING: list[Event] = [
    {"type": "response.created", "response": {**RESPONSE, "status": "in_progress", "output": []}},
    {"type": "response.in_progress", "response": {**RESPONSE, "status": "in_progress", "output": []}},
]
REASONING = [
    added(0, {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "aGFsZg=="}),
    *delta("reasoning_summary_text", 0, "rs_1", "Sehen ", "wir mal", summary_index=0),
    *delta("reasoning_summary_text", 0, "rs_1", " — 思考 🧠", summary_index=1),
    item_done(0, SEALED),
]
EVENTS: list[Event] = [
    *OPENING,
    *REASONING,
    *message(1, "Grüße, ", "世界 👋"),
    *calling(2, '{"at": "Zür', 'ich 🏔"}'),
    *calling(3, "{}", id="call_2", item_id="fc_2"),
    end(SEALED, words("Grüße, 世界 👋"), call('{"at": "Zürich 🏔"}'), call("{}", "call_2", "fc_2")),
]
WHOLE = stream_of(*({**event, "sequence_number": n} for n, event in enumerate(EVENTS)))
EXPECTED = {
    "text": "Grüße, 世界 👋",
    "thinking": "Sehen wir mal — 思考 🧠",
    "tool_calls": [{"name": "look", "arguments": {"at": "Zürich 🏔"}}, {"name": "look", "arguments": {}}],
    "stop": "tool_use",
    "usage": {"input": 60, "output": 30},
    "error": None,
}
OWN = pytest.param(Recording("own", WHOLE, EXPECTED), id="own")
ALL = [OWN, *recordings("openai-responses")]


@pytest.mark.parametrize("recording", ALL)
async def test_a_recording_holds_what_it_holds(
    server: MockServer, gpt: OpenAIResponses, recording: Recording
) -> None:
    server.answer(recording.body)
    parts, made = await ask(gpt)
    assert told(made) == expected_of(recording)
    check_parts(parts, made)


@pytest.mark.parametrize("recording", ALL)
async def test_chunks_line_ends_and_noise_change_nothing(
    server: MockServer, gpt: OpenAIResponses, recording: Recording
) -> None:
    server.answer(split(recording.body, recording.name))
    server.answer(split(noisy(recording.body), recording.name))
    for _ in range(2):
        _, made = await ask(gpt)
        assert told(made) == expected_of(recording)


@pytest.mark.parametrize("recording", ALL)
async def test_a_cut_is_never_a_success_and_keeps_what_came(
    server: MockServer, gpt: OpenAIResponses, recording: Recording
) -> None:
    for n, at in enumerate(cuts(recording, TERMINAL)):
        server.forget()
        server.answer(recording.body[:at], cut=("eof", "reset", None)[n % 3])
        parts, made = await ask(gpt)
        assert made.stop_reason == "error"
        assert made.failure is not None and made.failure.phase == "stream"
        if n % 3 != 1:  # a reset may overtake bytes that were sent
            came = list(events_in(recording.body[:at]))
            assert made.text == _sum(came, "response.output_text.delta")
            raw = _sum(
                came, "response.reasoning_text.delta"
            )  # kept in a reply that broke, for the checkpoint
            assert made.thinking == _sum(came, "response.reasoning_summary_text.delta") + raw
        check_parts(parts, made)


def _sum(events: list[Mapping[str, Any]], kind: str) -> str:
    return "".join(e["delta"] for e in events if e["type"] == kind)


async def test_reasoning_is_sealed_on_its_first_block(gpt_reply: Reply) -> None:
    made = await gpt_reply(*EVENTS)
    first, second, *_ = made.content
    assert isinstance(first, Thinking) and isinstance(second, Thinking)
    assert (first.text, second) == ("Sehen wir mal", Thinking(" — 思考 🧠"))
    assert json.loads(first.signature or "") == SEALED


async def test_reasoning_that_nobody_can_read_is_sealed_too(gpt_reply: Reply) -> None:
    sealed = {**SEALED, "summary": []}
    made = await gpt_reply(
        added(0, {**sealed, "encrypted_content": ""}), item_done(0, sealed), *message(1, "a"), end()
    )
    thinking, text = made.content
    assert isinstance(thinking, Thinking) and json.loads(thinking.signature or "") == sealed
    assert text == Text("a")


async def test_an_id_without_content_is_nothing_to_give_back(gpt_reply: Reply) -> None:
    made = await gpt_reply(
        item_done(0, {"type": "reasoning", "id": "rs_1", "summary": []}), *message(1, "a"), end()
    )
    assert made.content == (Text("a"),)


async def test_a_raw_chain_of_thought_is_told_and_given_back_but_not_quoted(
    server: MockServer, gpt: OpenAIResponses
) -> None:
    raw = {
        "type": "reasoning",
        "id": "r",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "hm hm"}],
    }
    events = [
        added(0, {**raw, "content": []}),
        *delta("reasoning_text", 0, "r", "hm ", "hm", content_index=0),
    ]
    server.answer(stream_of(*events, *message(1, "a"), item_done(0, raw), end(raw, words("a"))))
    parts, made = await ask(gpt)
    assert [p.text for p in parts if isinstance(p, ThinkingDelta)] == ["hm ", "hm"]
    thinking, text = made.content
    assert isinstance(thinking, Thinking) and (thinking.text, text) == ("", Text("a"))
    assert json.loads(thinking.signature or "") == raw


async def test_usage_tells_cached_tokens_apart(gpt_reply: Reply) -> None:
    assert (await gpt_reply(*EVENTS)).usage == Usage(15, 30, 40, 5)


async def test_L9_closing_the_stream_ends_the_request(server: MockServer, gpt: OpenAIResponses) -> None:
    server.answer(stream_of(*OPENING, *message(0, "Hello")[:3]), cut="hang")
    stream = gpt.stream(HELLO)
    assert isinstance(await anext(stream), Started)
    assert await anext(stream) == TextDelta("Hello")
    await stream.aclose()  # type: ignore[attr-defined]
    await server.closed_by_client.wait()


async def test_a_server_that_keeps_the_stream_open_holds_nothing(
    server: MockServer, gpt: OpenAIResponses
) -> None:
    server.answer(WHOLE, cut="hang")
    _, made = await ask(gpt)
    assert made.stop_reason == "tool_use"


async def test_the_request_carries_key_and_body(server: MockServer, gpt: OpenAIResponses) -> None:
    server.answer(WHOLE)
    assert isinstance(gpt, Provider)
    await ask(gpt)
    [request] = server.requests
    assert (request.method, request.path) == ("POST", "/v1/responses")
    assert request.headers["authorization"] == "Bearer sk-test"
    assert request.body["model"] == "gpt-test" and request.body["stream"] is True


async def test_no_key_is_sent_where_there_is_none(server: MockServer) -> None:
    server.answer(WHOLE)
    client = OpenAIResponses(ModelInfo("local/x"), base_url=f"{server.url}/v1/responses")
    await ask(client)
    await client.aclose()
    assert server.requests[0].path == "/v1/responses"
    assert "authorization" not in server.requests[0].headers


ERRORS: list[tuple[Event, int]] = [
    ({"type": "error", "code": "rate_limit_exceeded", "message": "Slow down", "param": None}, 429),
    ({"type": "error", "error": {"type": "server_error", "message": "Sorry"}}, 500),
    ({"type": "response.failed", "response": {"error": {"code": "server_error", "message": "Sorry"}}}, 500),
    ({"type": "response.failed", "response": {"status": "failed", "error": None}}, 500),
    ({"type": "x", "error": {"code": 400, "message": "full", "type": "exceed_context_size_error"}}, 400),
    ({"type": "error", "message": "?"}, 200),
]


@pytest.mark.parametrize(("error", "status"), ERRORS)
async def test_K1_an_error_in_the_stream_is_the_failure(gpt_reply: Reply, error: Event, status: int) -> None:
    made = await gpt_reply(*message(0, "so far"), error)
    assert (made.stop_reason, made.stop_detail, made.text) == ("error", None, "so far")
    failure = made.failure
    assert failure is not None
    assert (failure.phase, failure.status, failure.provider) == ("stream", status, "openai")
    inner = error.get("response", error).get("error") or {}
    assert inner.get("message", "") in failure.text and json.loads(failure.text)


async def test_K1_a_status_is_the_failure(server: MockServer, gpt: OpenAIResponses) -> None:
    server.answer('{"error": {"message": "No such key"}}', status=401)
    parts, made = await ask(gpt)
    assert (parts, made.stop_reason) == ([], "error")
    assert made.failure is not None and (made.failure.status, made.failure.phase) == (401, "response")


async def test_a_body_without_a_stream_is_read_too(server: MockServer, gpt: OpenAIResponses) -> None:
    body = {**end(SEALED, words("Hello"), call("{}"))["response"], "error": None}
    server.answer(json.dumps(body), headers={"content-type": "application/json"})
    parts, made = await ask(gpt)
    check_parts(parts, made)
    assert (made.text, len(made.calls), made.usage) == ("Hello", 1, Usage(15, 30, 40, 5))
    for broken in (
        {"error": {"message": "No"}},
        {**body, "status": "failed"},
        {**body, "status": "queued"},
        {},
    ):
        server.forget()
        server.answer(json.dumps(broken), headers={"content-type": "application/json"})
        assert (await ask(gpt))[1].stop_reason == "error"


async def test_L11_broken_text_is_replaced_where_it_enters(server: MockServer, gpt: OpenAIResponses) -> None:
    pieces = ['"a\\ud83d"', '"\\ude00b\\u0000"', '"\\ud800"']
    body = "".join(f'data: {{"type":"response.output_text.delta","delta":{p}}}\n\n' for p in pieces).encode()
    server.answer(body + stream_of(end()))
    parts, made = await ask(gpt)
    assert made.text == "a😀b\ufffd\ufffd"
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
    events = EVENTS[len(OPENING) :]
    for n, event in enumerate(events):
        for changed in _changed(event, odd):
            reader = ResponsesReader("test/one", 5)
            for other in (*events[:n], changed, *events[n + 1 :]):
                try:
                    list(reader.feed(other))
                except StreamFault:
                    break
            assert reader.message(None).role == "assistant"


def _changed(value: Any, odd: Any) -> list[Any]:
    """`value` in all the ways in which one of its values is `odd`."""
    if isinstance(value, dict):
        return [{**value, k: w} for k, v in value.items() for w in (odd, *_changed(v, odd))]
    if isinstance(value, list):
        return [
            [*value[:n], w, *value[n + 1 :]] for n, v in enumerate(value) for w in (odd, *_changed(v, odd))
        ]
    return []


async def test_the_official_sdk_reads_the_same(server: MockServer, gpt: OpenAIResponses) -> None:
    server.answer(WHOLE)
    sdk = openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="sk-test", max_retries=0)
    async with sdk, sdk.responses.stream(model="m", input="Hello") as stream:
        theirs = await stream.get_final_response()
    _, ours = await ask(gpt)
    assert theirs.output_text == ours.text
    assert [json.loads(i.arguments) for i in theirs.output if i.type == "function_call"] == [
        c.arguments for c in ours.calls
    ]
    assert theirs.usage is not None and ours.usage is not None
    assert theirs.usage.output_tokens == ours.usage.output
