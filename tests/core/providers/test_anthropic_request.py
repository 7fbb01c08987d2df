"""Requests of the Messages wire: what it would refuse is never sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from histories import HISTORIES, PNG, ask, call, result, said, user
from pydantic import TypeAdapter, ValidationError
from sdk_types import check_sdk
from wire_anthropic import check_anthropic

from handrail.messages import Message, Thinking, ToolCall
from handrail.providers._messages_request import AnthropicQuirks, messages_body
from handrail.providers.base import Effort, ModelInfo, Request, ToolSpec

MODEL = ModelInfo("test/one", images=True)
SDK: TypeAdapter[Any] = TypeAdapter(MessageCreateParamsStreaming)


def body_of(request: Request, model: ModelInfo = MODEL, **quirks: Any) -> dict[str, Any]:
    """The body, after both validators took it."""
    body = messages_body(model, request, AnthropicQuirks(**quirks))
    check_anthropic(body)
    check_sdk(SDK, body)
    return body


@pytest.mark.parametrize("effort", [None, "off", "low", "high"])
@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
def test_every_history_is_one_that_the_protocol_accepts(
    history: Sequence[Message], effort: Effort | None
) -> None:
    body_of(ask(history, system="Be kind.", effort=effort))
    body_of(ask(history, tools=(), effort=effort), ModelInfo("test/two"), thinking="adaptive")


def test_results_stand_first_in_one_turn_behind_their_calls() -> None:
    history = [user("Look"), said(call("a"), call("b")), result("a", "1"), result("b", "2"), user("and?")]
    turns = body_of(ask(history), cache=False)["messages"]
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user"]
    assert [block.get("tool_use_id") for block in turns[2]["content"]] == ["a", "b", None]
    assert turns[2]["content"][2] == {"type": "text", "text": "and?"}


def test_steering_before_a_reply_that_cannot_be_sent_joins_what_follows() -> None:
    turns = body_of(ask([user("one"), said(Thinking("hm")), user("two")]), cache=False)["messages"]
    assert turns == [{"role": "user", "content": [_text("one"), _text("two")]}]


def test_ids_are_made_to_fit_and_agree_between_call_and_result() -> None:
    turns = body_of(ask(HISTORIES["ids that no wire likes"]))["messages"]
    calls = [block["id"] for block in turns[1]["content"]]
    assert calls == [block["tool_use_id"] for block in turns[2]["content"]]
    assert calls[:2] == ["functions_look_0", "functions_look_1"]
    assert len(set(calls)) == 4


def test_an_id_used_again_in_a_later_reply_is_told_apart() -> None:
    turns = body_of(ask(HISTORIES["ids used again"]))["messages"]
    assert [turns[n]["content"][0]["id"] for n in (1, 3)] == ["call_1", "call_1_2"]
    assert [turns[n]["content"][0]["tool_use_id"] for n in (2, 4)] == ["call_1", "call_1_2"]


def test_L4_arguments_that_did_not_parse_are_replayed_as_an_empty_object() -> None:
    turns = body_of(ask(HISTORIES["arguments that did not parse"]))["messages"]
    assert turns[1]["content"][0]["input"] == {}
    assert turns[2]["content"][0]["is_error"] is True


def test_thinking_goes_back_whole_to_the_model_that_made_it_only() -> None:
    thoughts = (Thinking("hm", "c2ln"), Thinking(redacted="c2VjcmV0"), Thinking("", "b25seQ=="))
    history = [user("Look"), said(*thoughts, call()), result("call_1", "seen")]
    own = body_of(ask(history))["messages"][1]["content"]
    assert own[:3] == [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "c2VjcmV0"},
        {"type": "thinking", "thinking": "", "signature": "b25seQ=="},
    ]
    other = body_of(ask(history), ModelInfo("test/two"))["messages"][1]["content"]
    assert [block["type"] for block in other] == ["tool_use"]


def test_thinking_without_a_signature_or_with_one_of_another_wire_is_left_out() -> None:
    thoughts = (Thinking("cut off"), Thinking("sealed", '{"type": "reasoning"}'), Thinking("listed", "[]"))
    history = [user("Look"), said(*thoughts, call()), result("call_1", "seen")]
    assert [b["type"] for b in body_of(ask(history))["messages"][1]["content"]] == ["tool_use"]


def test_a_turn_does_not_end_in_thinking() -> None:
    history = [user("Look"), said("Well.", Thinking("hm", "c2ln")), user("and?")]
    assert [b["type"] for b in body_of(ask(history))["messages"][1]["content"]] == ["text"]


def test_a_last_assistant_turn_does_not_end_in_blanks() -> None:
    body = body_of(ask([user("Count"), said("1 2 3 \n")]))
    assert body["messages"][-1]["content"] == [_text("1 2 3")]


def test_system_tools_and_the_last_two_user_turns_are_marked_for_the_cache() -> None:
    history = [user("a"), said("b"), user("c"), said(call()), result("call_1", "d", PNG)]
    body = body_of(ask(history, system="Be kind."))
    mark = {"type": "ephemeral"}
    assert body["system"][-1]["cache_control"] == body["tools"][-1]["cache_control"] == mark
    turns = [[block.get("cache_control") for block in turn["content"]] for turn in body["messages"]]
    assert turns == [[None], [None], [mark], [None], [mark]]
    assert "cache_control" not in str(body_of(ask(history, system="Be kind."), cache=False))


def test_the_spec_of_a_tool_is_left_as_it_was() -> None:
    parameters = {"properties": {}}
    body = body_of(ask([user("a")], tools=(ToolSpec("plain", " ", parameters),)))
    assert body["tools"][0]["input_schema"] == {"type": "object", "properties": {}}
    assert parameters == {"properties": {}}


@pytest.mark.parametrize(("choice", "wire"), [("auto", "auto"), ("required", "any"), ("none", "none")])
def test_tool_choice(choice: Any, wire: str) -> None:
    assert body_of(ask([user("a")], tool_choice=choice))["tool_choice"] == {"type": wire}


def test_no_tools_no_choice() -> None:
    body = body_of(ask([user("a")], tools=(), tool_choice="required"))
    assert "tools" not in body and "tool_choice" not in body


def test_a_history_with_calls_names_their_tools_where_none_is_offered() -> None:
    body = body_of(ask(HISTORIES["a call"], tools=()))
    assert [tool["name"] for tool in body["tools"]] == ["look"]
    assert body["tool_choice"] == {"type": "none"}


@pytest.mark.parametrize(
    ("asked", "cap", "sent"),
    [
        (None, None, 8192),
        (None, 64_000, 64_000),
        (500, 64_000, 500),
        (99_000, 64_000, 64_000),
        (99, None, 99),
    ],
)
def test_max_tokens_is_always_sent_and_within_the_cap(asked: int | None, cap: int | None, sent: int) -> None:
    assert (
        body_of(ask([user("a")], max_output=asked), ModelInfo("test/one", max_output=cap))["max_tokens"]
        == sent
    )


@pytest.mark.parametrize(
    "name",
    [
        "claude-3-7-sonnet-latest",
        "claude-opus-4-1-20250805",
        "claude-sonnet-4-5",
        "claude-haiku-4.5",
        "llama",
    ],
)
def test_effort_is_a_budget_for_older_models(name: str) -> None:
    body = body_of(ask([user("a")], effort="medium"), ModelInfo(f"test/{name}", max_output=32_000))
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 12_288}
    assert "output_config" not in body


@pytest.mark.parametrize(
    "name", ["claude-opus-4-6", "claude-sonnet-4.6", "claude-sonnet-5", "claude-fable-5"]
)
def test_effort_is_an_effort_for_later_models(name: str) -> None:
    body = body_of(ask([user("a")], effort="high"), ModelInfo(f"test/{name}"))
    assert body["thinking"]["type"] == "adaptive"
    assert body["output_config"] == {"effort": "high"}


def test_a_budget_leaves_room_for_the_answer() -> None:
    body = body_of(ask([user("a")], effort="high", max_output=4000))
    assert body["thinking"]["budget_tokens"] == 2000
    assert "thinking" not in body_of(ask([user("a")], effort="high", max_output=1500))


def test_a_forced_call_excludes_thinking() -> None:
    body = body_of(ask([user("a")], effort="high", tool_choice="required"))
    assert "thinking" not in body


def test_a_tool_loop_that_began_without_thinking_goes_on_without_a_budget() -> None:
    plain = [user("Look"), said(call()), result("call_1", "seen")]
    assert "thinking" not in body_of(ask(plain, effort="high"))
    thought = [user("Look"), said(Thinking("hm", "c2ln"), call()), result("call_1", "seen")]
    assert body_of(ask(thought, effort="high"))["thinking"]["type"] == "enabled"


def test_pictures_go_only_to_models_that_read_them() -> None:
    history = HISTORIES["a result with a picture"]
    seen = body_of(ask(history))["messages"][2]["content"][0]["content"]
    assert seen[1]["source"] == {"type": "base64", "media_type": "image/png", "data": PNG.data}
    blind = body_of(ask(history), ModelInfo("test/two"))["messages"][2]["content"][0]["content"]
    assert [block["type"] for block in blind] == ["text", "text"]


def test_the_validator_refuses_a_call_without_its_result() -> None:
    body = messages_body(MODEL, ask([user("Look"), said(call()), user("and?")]), AnthropicQuirks())
    with pytest.raises(AssertionError, match="results"):
        check_anthropic(body)


def test_arguments_go_back_as_they_were_parsed() -> None:
    made = ToolCall("c", "look", {"at": "ä", "n": [1, None]}, '{"at":"ä","n":[1,null]}')
    turns = body_of(ask([user("Look"), said(made), result("c", "ok")]))["messages"]
    assert turns[1]["content"][0]["input"] == {"at": "ä", "n": [1, None]}


def _text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def test_the_types_of_the_sdk_refuse_what_they_do_not_know() -> None:
    body = body_of(ask(HISTORIES["a call"]))
    body["messages"][2]["content"][0]["type"] = "tool_answer"
    with pytest.raises(ValidationError):
        check_sdk(SDK, body)
