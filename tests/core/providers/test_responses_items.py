"""Ends and items of the Responses wire, in the ways of its servers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from mock_server import MockServer
from replay import HELLO, ask, stream_of
from responses_events import Event, Reply, added, call, calling, delta, end, item_done, message, words

from handrail.messages import Text
from handrail.providers.responses import OpenAIResponses


@pytest.mark.parametrize(
    ("why", "reason"),
    [("max_output_tokens", "length"), ("content_filter", "refusal"), ("something_new", "length")],
)
async def test_an_incomplete_response_says_why(gpt_reply: Reply, why: str, reason: str) -> None:
    last = end(words("so far"), status="incomplete", incomplete_details={"reason": why})
    made = await gpt_reply(*message(0, "so far"), last)
    assert (made.stop_reason, made.stop_detail, made.text) == (reason, why, "so far")
    assert made.failure is None and made.usage is not None


async def test_a_response_called_completed_that_is_not_goes_by_its_status(gpt_reply: Reply) -> None:
    last = end(status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    assert (await gpt_reply(*message(0, "a"), {**last, "type": "response.completed"})).stop_reason == "length"


async def test_a_refusal_is_told_as_text(gpt_reply: Reply) -> None:
    refusal = {"type": "message", "id": "m", "content": [{"type": "refusal", "refusal": "I will not."}]}
    made = await gpt_reply(
        added(0, {"type": "message", "id": "m", "content": []}),
        *delta("refusal", 0, "m", "I will ", "not.", content_index=0),
        item_done(0, refusal),
        end(refusal),
    )
    assert (made.stop_reason, made.text) == ("refusal", "I will not.")


@pytest.mark.parametrize(
    ("cap", "events", "reason"),
    [
        (30, message(0, "cut o"), "length"),
        (31, message(0, "whole"), "stop"),
        (None, message(0, "whole"), "stop"),
        (30, calling(0, '{"at": "cu'), "length"),
        (30, calling(0, "{}"), "tool_use"),
    ],
)
async def test_a_reply_that_hit_the_cap_is_cut_whatever_the_server_calls_it(
    server: MockServer, gpt: OpenAIResponses, cap: int | None, events: list[Event], reason: str
) -> None:
    server.answer(stream_of(*events, end()))
    _, made = await ask(gpt, replace(HELLO, max_output=cap))
    assert made.stop_reason == reason


async def test_L4_arguments_that_do_not_parse_are_told(gpt_reply: Reply) -> None:
    [made] = (await gpt_reply(*calling(0, '{"at": "ha'), end())).calls
    assert (made.arguments, made.raw) == ({}, '{"at": "ha')
    assert made.error is not None and "JSON" in made.error


async def test_arguments_that_only_the_end_carries_are_filled_in(gpt_reply: Reply) -> None:
    opened = added(0, call(""))
    done = {"type": "response.function_call_arguments.done", "output_index": 0, "arguments": '{"at": "a"}'}
    for events in (
        [opened, done, end()],
        [opened, item_done(0, call('{"at": "a"}')), end()],
        [item_done(0, call('{"at": "a"}')), end()],
        [opened, end(call('{"at": "a"}'))],
        [end(call('{"at": "a"}'))],
        [opened, *delta("function_call_arguments", 0, "fc_1", '{"at"'), end(call('{"at": "a"}'))],
    ):
        made = await gpt_reply(*events)
        assert [(c.id, c.name, c.arguments) for c in made.calls] == [("call_1", "look", {"at": "a"})]
        assert made.stop_reason == "tool_use"


async def test_items_that_only_the_end_lists_are_filled_in(gpt_reply: Reply) -> None:
    made = await gpt_reply(*message(0, "a"), end(words("a"), words("b", id="msg_2"), call("{}")))
    assert (made.text, len(made.calls)) == ("ab", 1)


async def test_the_end_may_name_items_anew(gpt_reply: Reply) -> None:
    made = await gpt_reply(
        *message(0, "a", id="tmp_1"), *calling(1, "{}"), end(words("a", id="x"), call("{}", "y", "z"))
    )
    assert (made.text, [c.id for c in made.calls]) == ("a", ["call_1"])


async def test_a_server_may_name_an_item_anew_in_each_event(gpt_reply: Reply) -> None:
    events = [
        added(0, words(id="a")),
        *delta("output_text", 0, "b", "Hel"),
        *delta("output_text", 0, "c", "lo"),
        added(1, call("", item_id="d")),
        *delta("function_call_arguments", 1, "e", "{}"),
        item_done(1, call("{}", item_id="f")),
    ]
    made = await gpt_reply(*events, end(words("Hello", id="g"), call("{}", item_id="h")))
    assert (made.text, len(made.calls)) == ("Hello", 1)


async def test_a_server_may_name_items_by_nothing_but_their_order(gpt_reply: Reply) -> None:
    bare = {"type": "function_call", "call_id": "fc_7", "name": "look", "arguments": ""}
    events: list[Event] = [
        {"type": "response.output_item.added", "item": {"type": "message", "id": "msg_1"}},
        {"type": "response.output_text.delta", "delta": "Hello", "item_id": "msg_1"},
        {"type": "response.output_item.added", "item": bare},
        {"type": "response.function_call_arguments.delta", "delta": '{"at": ', "item_id": "fc_7"},
        {"type": "response.function_call_arguments.delta", "delta": '"a"}'},
        {"type": "response.output_item.done", "item": {**bare, "arguments": '{"at": "a"}'}},
    ]
    made = await gpt_reply(*events, end(words("Hello"), {**bare, "arguments": '{"at": "a"}'}))
    assert (made.text, [c.arguments for c in made.calls]) == ("Hello", [{"at": "a"}])


async def test_text_may_come_without_its_item(gpt_reply: Reply) -> None:
    made = await gpt_reply(*delta("output_text", 0, "m", "Hel", "lo"), end(words("Hello", id="m")))
    assert made.content == (Text("Hello"),)


async def test_what_the_end_says_counts_where_it_differs(server: MockServer, gpt: OpenAIResponses) -> None:
    server.answer(stream_of(*message(0, "a masked word"), end(words("a *** word"))))
    _, made = await ask(gpt)
    assert made.content == (Text("a *** word"),)


async def test_calls_with_one_id_stay_two_calls(gpt_reply: Reply) -> None:
    first, second = calling(0, '{"at": 1}'), calling(1, '{"at": 2}', item_id="fc_2")
    made = await gpt_reply(*first, *second, end(call('{"at": 1}'), call('{"at": 2}', item_id="fc_2")))
    assert [c.arguments for c in made.calls] == [{"at": 1}, {"at": 2}]


async def test_tools_of_the_provider_are_not_our_calls(gpt_reply: Reply) -> None:
    hosted = [{"type": kind, "id": kind} for kind in ("web_search_call", "mcp_call", "code_interpreter_call")]
    events = [e for n, item in enumerate(hosted) for e in (added(n, item), item_done(n, item))]
    code = {
        "type": "response.mcp_call_arguments.delta",
        "output_index": 1,
        "item_id": "mcp_call",
        "delta": "{}",
    }
    made = await gpt_reply(*events, code, *message(3, "Found."), end(*hosted, words("Found.")))
    assert (made.calls, made.text, made.stop_reason) == ((), "Found.", "stop")
