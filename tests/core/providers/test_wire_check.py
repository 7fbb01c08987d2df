"""The validator of chat requests refuses what providers refuse: one that passes everything proves nothing."""

from __future__ import annotations

from typing import Any

import pytest
from wire_check import check_chat

USER = {"role": "user", "content": "hi"}
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
ASKS = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "seen"}


def test_a_good_request_passes() -> None:
    check_chat({"model": "m", "messages": [{"role": "system", "content": "s"}, USER, ASKS, RESULT, USER]})


@pytest.mark.parametrize(
    ("messages", "place"),
    [
        ([], "messages: none"),
        ([USER, {"role": "system", "content": "s"}], r"messages\[1\]: a system"),
        ([USER, ASKS, USER], "not answered directly"),
        ([USER, ASKS], "were not answered"),
        ([USER, RESULT], "is not open"),
        ([USER, ASKS, RESULT, RESULT], "is not open"),
        ([USER, ASKS | {"tool_calls": [CALL, CALL]}, RESULT, RESULT], "an id twice"),
        ([USER, ASKS | {"tool_calls": [], "content": "x"}], "an empty list"),
        ([USER, ASKS | {"tool_calls": [CALL | {"id": ""}]}], r"tool_calls\[0\]\.id"),
        ([USER, ASKS | {"tool_calls": [CALL | {"id": "a:b"}]}], r"tool_calls\[0\]\.id"),
        ([USER, {"role": "assistant", "content": None}], "there are no calls"),
        ([USER, {"role": "assistant", "content": "done"}], "the last one is the assistant's"),
        ([{"role": "user", "content": "  "}], "blank"),
        ([{"role": "user", "content": []}], "an empty list"),
        (
            [USER, ASKS, RESULT | {"content": [{"type": "text", "text": "x"}]}],
            "a list in a message of role tool",
        ),
    ],
)
def test_a_bad_request_is_refused_with_its_place(messages: list[Any], place: str) -> None:
    with pytest.raises(AssertionError, match=place):
        check_chat({"model": "m", "messages": messages})


def test_arguments_that_are_no_json_are_refused() -> None:
    call = CALL | {"function": {"name": "look", "arguments": '{"half'}}
    with pytest.raises(ValueError):
        check_chat({"model": "m", "messages": [USER, ASKS | {"tool_calls": [call]}, RESULT]})
