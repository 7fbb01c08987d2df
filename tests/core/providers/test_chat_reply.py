"""How replies of the chat wire are read: each maker's ways, each kind of end, each kind of fault."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from chat_events import chunk, fragment, read
from hypothesis import given
from hypothesis import strategies as st
from replay import check_parts

from handrail.messages import Thinking, Usage
from handrail.providers._sse import ServerEvent
from handrail.providers._streaming import StreamFault, read_event
from handrail.providers.base import (
    CallDelta,
    CallStarted,
    Part,
    TextDelta,
)
from handrail.providers.chat import ChatReader


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
