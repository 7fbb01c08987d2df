"""How replies of the chat wire are read: each maker's ways, each kind of end, each kind of fault."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mock_server import MockServer, sse
from replay import HELLO, ask, check_parts

from handrail.messages import AssistantMessage, Thinking, Usage
from handrail.providers._sse import ServerEvent
from handrail.providers._streaming import StreamFault, read_event
from handrail.providers.base import (
    CallDelta,
    CallStarted,
    Finished,
    ModelInfo,
    Part,
    Provider,
    Started,
    TextDelta,
)
from handrail.providers.chat import ChatReader, OpenAIChat


@pytest.fixture
async def model(server: MockServer) -> AsyncIterator[OpenAIChat]:
    provider = OpenAIChat(ModelInfo("demo/model"), base_url=f"{server.url}/v1", api_key="secret")
    yield provider
    await provider.aclose()


def chunk(delta: Any = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}], **more}


def fragment(
    index: int | None = None, id: str | None = None, name: str | None = None, args: Any = None
) -> dict[str, Any]:
    """A piece of a call, holding only what is given."""
    function = {k: v for k, v in (("name", name), ("arguments", args)) if v is not None}
    call = {k: v for k, v in (("index", index), ("id", id)) if v is not None}
    return {"tool_calls": [{**call, "function": function}]}


def read(*events: Any, done: bool = True) -> tuple[list[Part], AssistantMessage]:
    """The reply that `events` make, read without a connection."""
    reader = ChatReader("demo/model")
    lines = [e if isinstance(e, str) else json.dumps(e) for e in events] + (["[DONE]"] if done else [])
    parts = [part for line in lines for part in read_event(reader, ServerEvent("", line))]
    return parts + reader.reply.begin(), reader.message(None)


def calls(*fragments: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """The calls that fragments make, as (id, name, arguments)."""
    parts, message = read(*(chunk(f) for f in fragments), chunk(finish="tool_calls"))
    check_parts(parts, message)
    assert not any(c.error for c in message.calls)
    return [(c.id, c.name, c.arguments) for c in message.calls]


class TestCalls:
    def test_fragments_meet_by_index_also_when_they_alternate(self) -> None:
        assert calls(
            fragment(0, "a", "look", ""),
            fragment(1, "b", "find", '{"q":'),
            fragment(0, args='{"at"'),
            fragment(1, args="1}"),
            fragment(0, args=":2}"),
        ) == [("a", "look", {"at": 2}), ("b", "find", {"q": 1})]

    def test_whole_calls_in_one_chunk(self) -> None:
        first, second = fragment(0, "a", "look", "{}"), fragment(1, "b", "look", '{"x":1}')
        both = {"tool_calls": first["tool_calls"] + second["tool_calls"]}
        assert calls(both) == [("a", "look", {}), ("b", "look", {"x": 1})]

    def test_without_an_index_ids_tell_calls_apart(self) -> None:
        assert calls(
            fragment(None, "a", "look", '{"x"'), fragment(args=":1}"), fragment(None, "b", "look", '{"x":2}')
        ) == [("a", "look", {"x": 1}), ("b", "look", {"x": 2})]

    def test_without_index_and_id_a_name_begins_a_call(self) -> None:
        assert calls(
            fragment(name="look", args='{"x":1}'), fragment(name="look", args='{"x"'), fragment(args=":2}")
        ) == [("", "look", {"x": 1}), ("", "look", {"x": 2})]

    def test_an_index_used_again_with_another_id_is_another_call(self) -> None:
        assert calls(fragment(0, "a", "look", '{"x":1}'), fragment(0, "b", "find", "{}")) == [
            ("a", "look", {"x": 1}),
            ("b", "find", {}),
        ]

    def test_an_index_used_again_without_ids_is_another_call_once_the_first_is_whole(self) -> None:
        assert calls(fragment(0, "", "look", '{"x":1}'), fragment(0, "", "look", '{"x":2}')) == [
            ("", "look", {"x": 1}),
            ("", "look", {"x": 2}),
        ]

    def test_an_id_and_a_name_said_again_in_each_fragment_are_one_call(self) -> None:
        assert calls(
            fragment(0, "a", "look", '{"x"'), fragment(0, "a", "look", ":1"), fragment(0, "a", "look", "}")
        ) == [("a", "look", {"x": 1})]

    def test_a_new_id_in_each_fragment_without_a_name_is_one_call(self) -> None:
        assert calls(fragment(0, "a", "look", '{"x"'), fragment(0, "b", args=":1}")) == [
            ("a", "look", {"x": 1})
        ]

    def test_a_name_in_pieces_and_a_name_that_comes_late(self) -> None:
        assert calls(fragment(0, "a", "get_"), fragment(0, name="weather"), fragment(0, args="{}")) == [
            ("a", "get_weather", {})
        ]
        assert calls(fragment(0, "a", args='{"x":'), fragment(0, name="look"), fragment(0, args="1}")) == [
            ("a", "look", {"x": 1})
        ]

    def test_no_arguments_mean_an_empty_object(self) -> None:
        assert calls(fragment(0, "a", "look"), fragment(1, "b", "look", "")) == [
            ("a", "look", {}),
            ("b", "look", {}),
        ]

    def test_arguments_as_an_object(self) -> None:
        assert calls(fragment(0, "a", "look", {"x": "é"})) == [("a", "look", {"x": "é"})]

    def test_the_old_function_call(self) -> None:
        first = {"function_call": {"name": "look", "arguments": '{"x":'}}
        _, message = read(
            chunk(first), chunk({"function_call": {"arguments": "1}"}}), chunk(finish="function_call")
        )
        assert [(c.name, c.arguments) for c in message.calls] == [("look", {"x": 1})]
        assert message.stop_reason == "tool_use"

    def test_L4_arguments_that_do_not_parse_keep_their_text(self) -> None:
        _, message = read(chunk(fragment(0, "a", "look", '{"at": "ha')), chunk(finish="tool_calls"))
        (call,) = message.calls
        assert (call.arguments, call.raw) == ({}, '{"at": "ha') and call.error

    def test_calls_are_told_as_they_come(self) -> None:
        parts, _ = read(chunk(fragment(0, "a", "look", '{"x":')), chunk(fragment(0, args="1}")))
        assert parts == [CallStarted(0, "a", "look"), CallDelta(0, '{"x":'), CallDelta(0, "1}")]

    def test_text_behind_a_call_stands_behind_it(self) -> None:
        parts, message = read(chunk(fragment(0, "a", "look")), chunk({"content": "so"}), chunk(finish="stop"))
        assert [b.type for b in message.content] == ["tool_call", "text"]
        assert parts == [CallStarted(0, "a", "look"), TextDelta("so")]


class TestThinking:
    @pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
    def test_under_each_name(self, field: str) -> None:
        parts, message = read(chunk({field: "hm, "}), chunk({field: "so"}), chunk({"content": "4"}, "stop"))
        assert message.content == (Thinking("hm, so"), message.content[1])
        assert message.text == "4"
        check_parts(parts, message)

    def test_details_are_the_thinking_when_there_is_no_other(self) -> None:
        detail = {"type": "reasoning.text", "text": "hm", "index": 0}
        _, message = read(chunk({"reasoning_details": [detail]}), chunk({"content": "4"}, "stop"))
        assert message.thinking == "hm"

    def test_details_are_not_told_twice_and_go_back_joined(self) -> None:
        first = {"type": "reasoning.text", "text": "h", "index": 0, "format": "f"}
        rest = {"type": "reasoning.text", "text": "m", "index": 0, "signature": "c2ln"}
        secret = {"type": "reasoning.encrypted", "data": "eA==", "index": 1}
        _, message = read(
            chunk({"reasoning": "h", "reasoning_details": [first]}),
            chunk({"reasoning": "m", "reasoning_details": [rest, secret]}),
            chunk({"content": "4"}, "stop"),
        )
        assert message.thinking == "hm"
        kept = [b.signature for b in message.content if isinstance(b, Thinking) and b.signature]
        assert [json.loads(k)["reasoning_details"] for k in kept] == [
            [{**first, "text": "hm", "signature": "c2ln"}, secret]
        ]


class TestEnds:
    @pytest.mark.parametrize(
        ("finish", "reason"),
        [
            ("stop", "stop"),
            ("eos", "stop"),
            ("length", "length"),
            ("max_tokens", "length"),
            ("model_length", "length"),
            ("content_filter", "refusal"),
            ("sensitive", "refusal"),
            ("MAX_OUTPUT_TOKENS", "length"),
            ("content-filter", "refusal"),
            ("RECITATION", "refusal"),
        ],
    )
    def test_W1_finish_reasons(self, finish: str, reason: str) -> None:
        _, message = read(chunk({"content": "x"}), chunk(finish=finish))
        assert (message.stop_reason, message.stop_detail, message.failure) == (reason, finish, None)

    @pytest.mark.parametrize(
        ("finish", "reason"),
        [
            ("stop", "tool_use"),
            ("length", "length"),
            ("content_filter", "refusal"),
        ],
    )
    def test_finish_reasons_beside_calls(self, finish: str, reason: str) -> None:
        _, message = read(chunk(fragment(0, "a", "look", "{}")), chunk(finish=finish))
        assert (message.stop_reason, message.stop_detail) == (reason, finish)

    def test_a_refusal_in_words(self) -> None:
        _, message = read(chunk({"refusal": "I can"}), chunk({"refusal": "not."}), chunk(finish="stop"))
        assert (message.stop_reason, message.text) == ("refusal", "I cannot.")

    def test_the_end_mark_alone_is_an_end(self) -> None:
        _, message = read(chunk({"content": "x"}))
        assert (message.stop_reason, message.stop_detail) == ("stop", None)

    @pytest.mark.parametrize(
        "finish",
        ["network_error", "error", "insufficient_system_resource", "tool_calls", "a word nobody knows", "7"],
    )
    async def test_W1_a_finish_reason_that_is_a_failure(
        self, server: MockServer, model: Provider, finish: str
    ) -> None:
        server.answer(sse(chunk({"content": "half"}), chunk(finish=finish)))
        _, message = await ask(model)
        assert (message.stop_reason, message.text) == ("error", "half")
        assert message.failure is not None
        assert message.failure.phase == "stream"
        assert message.failure.text.startswith(f"the stream ended with finish_reason {finish}")

    async def test_a_reply_is_whole_though_the_server_never_ends(
        self, server: MockServer, model: Provider
    ) -> None:
        server.answer(sse(chunk({"content": "x"}, "stop")), cut="hang")
        _, message = await ask(model)
        assert message.stop_reason == "stop"

    async def test_a_reply_is_whole_though_no_end_mark_ever_comes(
        self, server: MockServer, model: Provider, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("handrail.providers._streaming.SILENCE_S", 0.05)
        server.answer(sse(chunk({"content": "x"}, "stop"), done=False), cut="hang")
        _, message = await ask(model)
        assert (message.stop_reason, message.failure) == ("stop", None)

    @pytest.mark.parametrize("counted", [True, False])
    async def test_W2_a_break_behind_the_finish_word_is_one_unless_usage_had_come(
        self, server: MockServer, model: Provider, counted: bool
    ) -> None:
        usage = [{"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}] if counted else []
        server.answer(sse(chunk({"content": "x"}, "stop"), *usage, done=False), cut="eof")
        _, message = await ask(model)
        assert (message.stop_reason, message.text) == ("stop" if counted else "error", "x")

    async def test_K1_a_stream_that_just_ends_is_a_failure(self, server: MockServer, model: Provider) -> None:
        server.answer(sse(chunk({"content": "half"}), done=False))
        _, message = await ask(model)
        assert (message.stop_reason, message.text) == ("error", "half")
        assert message.failure is not None
        assert message.failure.text == "the stream ended before the reply was finished"
        assert (message.failure.phase, message.failure.status) == ("stream", 200)


class TestUsage:
    @pytest.mark.parametrize(
        ("told", "usage"),
        [
            ({"prompt_tokens": 10, "completion_tokens": 2}, Usage(10, 2)),
            (
                {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}},
                Usage(6, 2, 4),
            ),
            ({"prompt_tokens": 10, "completion_tokens": 2, "prompt_cache_hit_tokens": 4}, Usage(6, 2, 4)),
            ({"prompt_tokens": 10, "completion_tokens": 2, "cached_tokens": 4}, Usage(6, 2, 4)),
            (
                {
                    "prompt_tokens": 10,
                    "completion_tokens": 2,
                    "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3},
                },
                Usage(3, 2, 4, 3),
            ),
            (
                {
                    "prompt_tokens": 10,
                    "completion_tokens": 2,
                    "total_tokens": 20,
                    "completion_tokens_details": {"reasoning_tokens": 8},
                },
                Usage(10, 10),
            ),
            ({"prompt_tokens": 0, "completion_tokens": 0}, None),
            ({"prompt_tokens": "ten", "completion_tokens": None, "prompt_tokens_details": 3}, None),
            ({"prompt_tokens": 1e400, "completion_tokens": -1}, None),
        ],
    )
    def test_tokens(self, told: dict[str, Any], usage: Usage | None) -> None:
        for holder in ({"choices": [], "usage": told}, {"x_groq": {"usage": told}}):
            _, message = read(chunk({"content": "x"}, "stop"), holder)
            assert message.usage == usage

    def test_usage_inside_the_choice(self) -> None:
        usage = {"prompt_tokens": 3, "completion_tokens": 1}
        last = {"choices": [{"delta": {}, "finish_reason": "stop", "usage": usage}]}
        assert read(last)[1].usage == Usage(3, 1)

    def test_an_empty_count_at_the_end_takes_nothing_back(self) -> None:
        _, message = read(
            chunk({"content": "x"}, usage={"prompt_tokens": 3, "completion_tokens": 1}),
            chunk(finish="stop", usage={}),
        )
        assert message.usage == Usage(3, 1)


class TestFaults:
    async def fault(self, server: MockServer, model: Provider, *events: Any) -> AssistantMessage:
        server.answer(sse(chunk({"content": "half"}), *events))
        _, message = await ask(model)
        assert message.text == "half" and message.failure is not None
        return message

    @pytest.mark.parametrize(
        ("error", "status"),
        [
            ({"message": "overloaded", "code": 503}, 503),
            ({"message": "slow down", "code": "429"}, 429),
            ({"message": "bad", "status_code": 400, "code": "tool_use_failed"}, 400),
            ({"message": "bad", "type": "server_error", "code": None}, 200),
            ("words", 200),
        ],
    )
    async def test_K1_an_error_inside_a_good_reply(
        self, server: MockServer, model: Provider, error: Any, status: int
    ) -> None:
        message = await self.fault(server, model, {"error": error})
        assert message.stop_reason == "error" and message.failure is not None
        assert json.loads(message.failure.text) == {"error": error}
        assert (message.failure.phase, message.failure.status) == ("stream", status)
        assert message.failure.provider == "demo"

    async def test_K1_an_error_inside_a_choice(self, server: MockServer, model: Provider) -> None:
        choice = {"delta": {}, "finish_reason": "error", "error": {"code": 502, "message": "upstream"}}
        message = await self.fault(server, model, {"choices": [choice]})
        assert message.failure is not None and message.failure.status == 502

    async def test_K1_an_error_of_another_shape(self, server: MockServer, model: Provider) -> None:
        told = {"object": "error", "message": "no such model", "code": 404}
        message = await self.fault(server, model, told)
        assert message.failure is not None
        assert (json.loads(message.failure.text), message.failure.status) == (told, 404)

    async def test_R3_an_error_that_explains_a_cut_leaves_it_a_cut(
        self, server: MockServer, model: Provider
    ) -> None:
        message = await self.fault(
            server, model, chunk(finish="length"), {"error": {"message": "Token limit"}}
        )
        assert message.stop_reason == "length"

    async def test_K1_an_error_behind_a_stop_is_an_error(self, server: MockServer, model: Provider) -> None:
        message = await self.fault(server, model, chunk(finish="stop"), {"error": {"message": "gone"}})
        assert message.stop_reason == "error"

    async def test_K1_an_event_that_is_no_json(self, server: MockServer, model: Provider) -> None:
        message = await self.fault(server, model, '{"choices": [')
        assert message.stop_reason == "error" and message.failure is not None
        assert "not JSON" in message.failure.text

    async def test_K1_a_huge_error_is_cut(self, server: MockServer, model: Provider) -> None:
        message = await self.fault(server, model, {"error": {"message": "x" * 1_000_000}})
        assert message.failure is not None and len(message.failure.text) == 65_536

    async def test_K1_statuses(self, server: MockServer, model: Provider) -> None:
        server.answer('{"error":{"message":"slow"}}', 429, {"retry-after": "3"})
        _, message = await ask(model)
        assert message.stop_reason == "error" and message.content == () and message.failure is not None
        assert (message.failure.status, message.failure.headers["retry-after"]) == (429, "3")

    async def test_K1_a_json_error_under_200(self, server: MockServer, model: Provider) -> None:
        for body in ('{"error":{"code":401,"message":"no"}}', '[{"error":{"code":401,"message":"no"}}]'):
            server.forget()
            server.answer(body, headers={"content-type": "application/json"})
            _, message = await ask(model)
            assert message.stop_reason == "error" and message.failure is not None
            assert message.failure.status == 401

    async def test_a_json_body_that_is_nothing_we_know(self, server: MockServer, model: Provider) -> None:
        server.answer('{"detail":"Not Found"}', headers={"content-type": "application/json"})
        _, message = await ask(model)
        assert message.failure is not None
        assert json.loads(message.failure.text) == {"detail": "Not Found"}

    async def test_a_reply_that_was_not_streamed_is_taken(self, server: MockServer, model: Provider) -> None:
        said = {"role": "assistant", "content": "hi", **fragment(None, "a", "look", '{"x":1}')}
        whole = {
            "choices": [{"message": said, "finish_reason": "tool_calls"}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 2},
        }
        server.answer(json.dumps(whole, indent=1), headers={"content-type": "application/json"})
        parts, message = await ask(model)
        check_parts(parts, message)
        assert (message.text, message.stop_reason, message.usage) == ("hi", "tool_use", Usage(3, 2))
        assert [(c.id, c.arguments) for c in message.calls] == [("a", {"x": 1})]


class TestText:
    def test_L11_nul_and_lone_surrogates_are_replaced(self) -> None:
        parts, message = read(
            '{"choices":[{"delta":{"content":"a\\u0000b\\ud83d"}}]}', chunk({"content": "!"}, "stop")
        )
        assert message.text == "a\ufffdb\ufffd!"
        check_parts(parts, message)

    def test_L11_a_pair_of_surrogates_in_two_deltas_is_one_character(self) -> None:
        halves = [
            '{"choices":[{"delta":{"content":"\\ud83d"}}]}',
            '{"choices":[{"delta":{"content":"\\ude80"}}]}',
        ]
        assert read(*halves, chunk(finish="stop"))[1].text == "🚀"

    def test_L11_arguments_with_lone_surrogates(self) -> None:
        _, message = read(chunk(fragment(0, "a", "look", '{"x":"\\ud83d"}')), chunk(finish="tool_calls"))
        assert message.calls[0].arguments == {"x": "\ufffd"}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = [
    "choices", "delta", "message", "content", "reasoning", "reasoning_content", "reasoning_details", "tool_calls",
    "function", "function_call", "name", "arguments", "id", "index", "usage", "x_groq", "error", "refusal", "text",
    "finish_reason", "prompt_tokens", "prompt_tokens_details", "type", "thinking", "code", "status", "data",
]  # fmt: skip
odd = st.recursive(
    json_values,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=25,
)
delta_like = st.fixed_dictionaries({"choices": st.lists(st.fixed_dictionaries({"delta": odd}), max_size=2)})


@given(st.lists(odd | delta_like, max_size=6), st.sampled_from(["", "error", "body"]))
def test_K1_nothing_that_a_server_sends_raises(events: list[Any], name: str) -> None:
    reader = ChatReader("demo/model")
    parts: list[Part] = []
    for event in events:
        with suppress(StreamFault):
            parts += read_event(reader, ServerEvent(name, json.dumps(event)))
    parts += reader.reply.begin()
    message = reader.message(None)
    assert all(isinstance(p, Part) for p in parts)
    json.dumps([b.text if hasattr(b, "text") else b.raw for b in message.content]).encode()


class TestStopping:
    async def test_L9_closing_the_stream_ends_the_request_at_once(
        self, server: MockServer, model: OpenAIChat
    ) -> None:
        server.answer(sse(chunk({"content": "half"}), done=False), cut="hang")
        stream = model.stream(HELLO)
        assert isinstance(await anext(stream), Started)
        assert await anext(stream) == TextDelta("half")
        await stream.aclose()  # type: ignore[attr-defined]
        await asyncio.wait_for(server.closed_by_client.wait(), 5)

    async def test_L9_cancelling_ends_the_request_at_once(self, server: MockServer, model: Provider) -> None:
        server.answer(sse(chunk({"content": "half"}), done=False), cut="hang")
        task = asyncio.create_task(ask(model))
        await server.arrival()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.closed_by_client.wait(), 5)

    async def test_the_connection_is_used_again(self, server: MockServer, model: Provider) -> None:
        server.answer(sse(chunk({"content": "x"}, "stop")))
        for _ in range(4):
            await ask(model)
        assert server.connections == 1


async def test_J5_the_key_goes_into_the_header_and_nowhere_else(
    server: MockServer, model: OpenAIChat
) -> None:
    server.answer('{"error":{"message":"no"}}', 401)
    _, message = await ask(model)
    assert server.requests[0].headers["authorization"] == "Bearer secret"
    assert server.requests[0].path == "/v1/chat/completions"
    assert "secret" not in repr(message) and "secret" not in repr(server.requests[0].body)


async def test_without_a_key_none_is_sent(server: MockServer) -> None:
    server.answer(sse(chunk({"content": "x"}, "stop")))
    provider = OpenAIChat(ModelInfo("x/y"), base_url=f"{server.url}/v1/chat/completions/")
    *_, last = [part async for part in provider.stream(HELLO)]
    await provider.aclose()
    assert isinstance(last, Finished) and last.message.text == "x"
    assert "authorization" not in server.requests[0].headers
    assert server.requests[0].path == "/v1/chat/completions"
