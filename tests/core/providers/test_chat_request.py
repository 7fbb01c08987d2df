"""What is sent on the chat wire, held against a validator of ours and against the official SDK's types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from histories import HISTORIES, PNG, TOOL, ask, call, result, said, user
from pydantic import TypeAdapter
from sdk_types import check_sdk
from wire_check import check_chat

from handrail.messages import Message, Thinking, ToolCall
from handrail.providers._chat_request import ChatQuirks, chat_body
from handrail.providers.base import ModelInfo, Price

MODEL = ModelInfo("test/one", images=True)
BLIND = ModelInfo("test/one")
QUIRKS = {
    "openai": ChatQuirks(max_tokens="max_completion_tokens"),
    "openrouter": ChatQuirks(effort="openrouter"),
    "mistral": ChatQuirks(stream_usage=False, short_ids=True, bridge=True),
    "deepseek": ChatQuirks(effort="thinking", replay="reasoning_content"),
}


def body(messages: Sequence[Message], quirks: ChatQuirks | None = None, **more: Any) -> dict[str, Any]:
    return chat_body(MODEL, ask(messages, **more), quirks or ChatQuirks())


@pytest.fixture(scope="module")
def sdk() -> TypeAdapter[Any]:
    params = pytest.importorskip(
        "openai.types.chat.completion_create_params", reason="openai is not installed"
    )
    return TypeAdapter(params.CompletionCreateParamsStreaming)


@pytest.mark.parametrize("maker", QUIRKS)
@pytest.mark.parametrize("history", HISTORIES)
def test_a_request_is_what_a_provider_accepts(history: str, maker: str, sdk: TypeAdapter[Any]) -> None:
    for model in (MODEL, BLIND):
        request = ask(HISTORIES[history], system="Be brief.", max_output=100, effort="low")
        sent = chat_body(model, request, QUIRKS[maker])
        check_chat(sent)
        check_sdk(sdk, sent)


@pytest.mark.parametrize("history", HISTORIES)
def test_the_same_history_gives_the_same_request(history: str) -> None:
    assert body(HISTORIES[history]) == body(HISTORIES[history])


def test_the_whole_of_a_plain_request() -> None:
    sent = body([user("Hello")], system="Be brief.", max_output=100, tool_choice="required")
    assert sent == {
        "model": "one",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "look",
                    "description": "Look at something.",
                    "parameters": dict(TOOL.parameters),
                },
            }
        ],
        "tool_choice": "required",
        "max_tokens": 100,
    }


def test_without_tools_nothing_is_said_about_them() -> None:
    sent = body([user("Hello")], tools=(), tool_choice="required")
    assert "tools" not in sent and "tool_choice" not in sent


def test_a_name_with_slashes_keeps_all_but_the_provider() -> None:
    model = ModelInfo("openrouter/anthropic/claude-sonnet-4.6")
    assert chat_body(model, ask([user("x")]), ChatQuirks())["model"] == "anthropic/claude-sonnet-4.6"


def test_the_output_cap_stays_within_the_models_own() -> None:
    model = ModelInfo("test/one", max_output=50, price=Price(1, 1))
    quirks = ChatQuirks(max_tokens="max_completion_tokens")
    assert chat_body(model, ask([user("x")], max_output=100), quirks)["max_completion_tokens"] == 50
    assert "max_completion_tokens" not in chat_body(model, ask([user("x")]), quirks)


@pytest.mark.parametrize(
    ("maker", "effort", "fields"),
    [
        ("openai", "high", {"reasoning_effort": "high"}),
        ("openai", "off", {"reasoning_effort": "none"}),
        ("openrouter", "low", {"reasoning": {"effort": "low"}}),
        ("openrouter", "off", {"reasoning": {"enabled": False}}),
        ("deepseek", "medium", {"thinking": {"type": "enabled"}}),
        ("deepseek", "off", {"thinking": {"type": "disabled"}}),
    ],
)
def test_effort_is_said_in_the_makers_way(maker: str, effort: str, fields: dict[str, Any]) -> None:
    plain = body([user("x")], QUIRKS[maker])
    assert body([user("x")], QUIRKS[maker], effort=effort) == plain | fields


def test_usage_is_not_asked_for_where_the_field_is_refused() -> None:
    assert "stream_options" not in body([user("x")], QUIRKS["mistral"])


def test_L4_arguments_that_did_not_parse_go_back_empty() -> None:
    broken = ToolCall("call_1", "look", {}, '{"at": "ha', error="the arguments are not JSON")
    sent = body([user("x"), said(broken, call("call_2")), result("call_1", "no"), result("call_2", "yes")])
    calls = sent["messages"][1]["tool_calls"]
    assert [c["function"]["arguments"] for c in calls] == ["{}", '{"at": "a"}']


def test_ids_fit_the_wire_and_calls_meet_their_results() -> None:
    history = HISTORIES["ids that no wire likes"]
    for maker, longest in (("openai", 40), ("mistral", 9)):
        messages = body(history, QUIRKS[maker])["messages"]
        ids = [c["id"] for c in messages[1]["tool_calls"]]
        assert [m["tool_call_id"] for m in messages[2:6]] == ids and len(set(ids)) == 4
        assert all(len(id) <= longest for id in ids)
    assert all(len(id) == 9 and id.isalnum() for id in ids)


def test_pictures_of_results_come_behind_all_results() -> None:
    history = [
        user("x"),
        said(call("a"), call("b")),
        result("a", "one", PNG),
        result("b", "two"),
        user("go on"),
    ]
    messages = body(history)["messages"]
    assert [m["role"] for m in messages] == ["user", "assistant", "tool", "tool", "user", "user"]
    assert messages[2]["content"] == "one\n[an image, shown below]"
    assert messages[4]["content"][1]["image_url"]["url"] == f"data:image/png;base64,{PNG.data}"


def test_a_model_that_reads_no_pictures_gets_a_note() -> None:
    sent = chat_body(BLIND, ask([user("See", PNG)]), ChatQuirks())["messages"]
    assert sent[0]["content"].startswith("See\n[an image (image/png) was left out")


def test_mistral_gets_an_assistant_between_a_result_and_a_user() -> None:
    history = HISTORIES["a prompt behind results"]
    roles = [m["role"] for m in body(history, QUIRKS["mistral"])["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]


def test_W4_thinking_goes_back_beside_calls_and_only_to_its_model() -> None:
    def replayed(model: str, quirks: ChatQuirks, signature: str | None = None) -> dict[str, Any]:
        history = [user("x"), said(Thinking("hm", signature), call(), model=model), result("call_1", "seen")]
        message: dict[str, Any] = body(history, quirks)["messages"][1]
        return {k: v for k, v in message.items() if k.startswith("reasoning")}

    details = '[{"type": "reasoning.encrypted", "data": "c2ln"}]'
    assert replayed("test/one", QUIRKS["deepseek"]) == {"reasoning_content": "hm"}
    assert replayed("other/two", QUIRKS["deepseek"]) == {"reasoning_content": ""}
    kept = {"reasoning_details": [{"type": "reasoning.encrypted", "data": "c2ln"}]}
    assert replayed("test/one", QUIRKS["openrouter"], details) == kept
    assert replayed("other/two", QUIRKS["openrouter"], details) == {}
    assert replayed("test/one", QUIRKS["openrouter"], "a signature of another wire") == {}
    assert (
        replayed("test/one", QUIRKS["openai"], details) == kept
    )  # whoever attached it wants it back (rule W4)
