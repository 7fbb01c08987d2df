"""Requests of the Responses wire: what it would refuse is never sent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from histories import HISTORIES, PNG, TOOL, ask, call, result, said, user
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import TypeAdapter, ValidationError
from sdk_types import check_sdk
from wire_responses import check_responses

from handrail.messages import Message, Thinking
from handrail.providers._responses_request import ResponsesQuirks, responses_body
from handrail.providers.base import Effort, ModelInfo, Request

MODEL = ModelInfo("test/one", images=True)
SDK: TypeAdapter[Any] = TypeAdapter(ResponseCreateParamsStreaming)
SEALED = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "hm"}],
    "encrypted_content": "c2VhbGVk",
}


def body_of(request: Request, model: ModelInfo = MODEL, **quirks: Any) -> dict[str, Any]:
    """The body, after both validators took it."""
    body = responses_body(model, request, ResponsesQuirks(**quirks))
    check_responses(body)
    check_sdk(SDK, body)
    return body


@pytest.mark.parametrize("effort", [None, "off", "low", "high"])
@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
def test_every_history_is_one_that_the_protocol_accepts(
    history: Sequence[Message], effort: Effort | None
) -> None:
    body_of(ask(history, system="Be kind.", effort=effort))
    body_of(ask(history, tools=(), max_output=5), ModelInfo("test/gpt-4.1"))


def test_nothing_is_stored_and_reasoning_comes_back_sealed() -> None:
    body = body_of(ask([user("a")], system="Be kind."))
    assert body["store"] is False
    assert body["include"] == ["reasoning.encrypted_content"]
    assert body["instructions"] == "Be kind."
    assert body["tools"] == [
        {
            "type": "function",
            "name": "look",
            "description": "Look at something.",
            "parameters": TOOL.parameters,
            "strict": False,
        }
    ]


@pytest.mark.parametrize(
    "name", ["gpt-4o", "gpt-4.1-mini", "chatgpt-4o-latest", "ft:gpt-4o:me::1", "openai/gpt-4o"]
)
def test_models_that_do_not_reason_are_asked_for_none_of_it(name: str) -> None:
    body = body_of(ask([user("a")], effort="high"), ModelInfo(f"test/{name}"))
    assert "include" not in body and "reasoning" not in body
    assert "include" in body_of(ask([user("a")]), ModelInfo(f"test/{name}"), reasoning=True)


def test_items_stand_in_the_order_of_what_was_said() -> None:
    history = [
        user("Look"),
        said("I look.", call("a"), call("b")),
        result("a", "1"),
        result("b", "2"),
        user("?"),
    ]
    items = body_of(ask(history))["input"]
    assert [item.get("role") or item["type"] for item in items] == [
        "user",
        "assistant",
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
        "user",
    ]
    assert items[4] == {"type": "function_call_output", "call_id": "a", "output": "1"}


def test_ids_are_made_to_fit_and_agree_between_call_and_result() -> None:
    items = body_of(ask(HISTORIES["ids that no wire likes"]))["input"]
    calls = [item["call_id"] for item in items if item["type"] == "function_call"]
    assert calls == [item["call_id"] for item in items if item["type"] == "function_call_output"]
    assert max(map(len, calls)) <= 64


def test_an_id_used_again_in_a_later_reply_is_told_apart() -> None:
    items = body_of(ask(HISTORIES["ids used again"]))["input"]
    assert [item["call_id"] for item in items[1:]] == ["call_1", "call_1", "call_1_2", "call_1_2"]


def test_L4_arguments_that_did_not_parse_are_replayed_as_an_empty_object() -> None:
    assert body_of(ask(HISTORIES["arguments that did not parse"]))["input"][1]["arguments"] == "{}"


def test_reasoning_goes_back_as_it_came_to_the_model_that_made_it_only() -> None:
    history = [user("Look"), said(Thinking("hm", json.dumps(SEALED)), call()), result("call_1", "seen")]
    assert body_of(ask(history))["input"][1] == SEALED
    other = body_of(ask(history), ModelInfo("test/two"))["input"]
    assert [item["type"] for item in other] == ["message", "function_call", "function_call_output"]


@pytest.mark.parametrize("signature", ["c2ln", "null", "[]", "{}", None])
def test_signatures_of_other_wires_are_left_out(signature: str | None) -> None:
    history = [user("Look"), said(Thinking("hm", signature), call()), result("call_1", "seen")]
    assert [item["type"] for item in body_of(ask(history))["input"]][1] == "function_call"


def test_reasoning_that_led_to_nothing_is_left_out() -> None:
    history = [user("Look"), said("Well.", Thinking("hm", json.dumps(SEALED))), user("and?")]
    assert [item["type"] for item in body_of(ask(history))["input"]] == ["message"] * 3


@pytest.mark.parametrize(
    ("name", "effort", "sent"),
    [
        ("gpt-5", "high", {"effort": "high", "summary": "auto"}),
        ("gpt-5-mini", "off", {"effort": "minimal"}),
        ("gpt-5.2", "off", {"effort": "none"}),
        ("o4-mini", "off", {"effort": "low"}),
    ],
)
def test_effort(name: str, effort: Effort, sent: dict[str, str]) -> None:
    assert body_of(ask([user("a")], effort=effort), ModelInfo(f"test/{name}"))["reasoning"] == sent
    assert "reasoning" not in body_of(ask([user("a")]), ModelInfo(f"test/{name}"))


def test_summaries_can_be_left_out() -> None:
    assert body_of(ask([user("a")], effort="low"), summaries=False)["reasoning"] == {"effort": "low"}


@pytest.mark.parametrize(
    ("asked", "cap", "sent"), [(None, 9, None), (500, None, 500), (500, 100, 100), (5, None, 16)]
)
def test_the_output_cap(asked: int | None, cap: int | None, sent: int | None) -> None:
    body = body_of(ask([user("a")], max_output=asked), ModelInfo("test/one", max_output=cap))
    assert body.get("max_output_tokens") == sent


@pytest.mark.parametrize("choice", ["auto", "required", "none"])
def test_tool_choice(choice: Any) -> None:
    assert body_of(ask([user("a")], tool_choice=choice))["tool_choice"] == choice
    assert "tool_choice" not in body_of(ask([user("a")], tool_choice=choice, tools=()))


def test_pictures_go_only_to_models_that_read_them() -> None:
    history = HISTORIES["a result with a picture"]
    output = body_of(ask(history))["input"][2]["output"]
    assert output[1]["image_url"] == f"data:image/png;base64,{PNG.data}"
    blind = body_of(ask(history), ModelInfo("test/two"))["input"][2]["output"]
    assert [part["type"] for part in blind] == ["input_text", "input_text"]


def test_the_validator_refuses_a_call_without_its_result() -> None:
    body = responses_body(MODEL, ask([user("Look"), said(call()), user("and?")]), ResponsesQuirks())
    with pytest.raises(AssertionError, match="before the results"):
        check_responses(body)


def test_the_types_of_the_sdk_refuse_what_they_do_not_know() -> None:
    body = body_of(ask(HISTORIES["a call"]))
    body["input"][2]["type"] = "function_answer"
    with pytest.raises(ValidationError):
        check_sdk(SDK, body)
