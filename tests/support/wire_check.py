"""A validator of our own output: what a maker of the chat wire would refuse fails here, with its place."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

ROLES = {"system", "user", "assistant", "tool"}
ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def check_chat(body: dict[str, Any]) -> None:
    """Raise AssertionError, with the place, for a chat request that a provider would refuse."""
    json.dumps(body, allow_nan=False, ensure_ascii=False).encode()  # JSON, and no lone surrogate in it
    assert isinstance(body.get("model"), str) and body["model"], "model: missing"
    messages = body.get("messages")
    assert isinstance(messages, list) and messages, "messages: none"
    open_calls: list[str] = []
    for i, message in enumerate(messages):
        at = f"messages[{i}]"
        role = message.get("role")
        assert role in ROLES, f"{at}.role: {role!r}"
        assert role != "system" or i == 0, f"{at}: a system message that is not the first"
        if role == "tool":
            id = message.get("tool_call_id")
            assert id in open_calls, f"{at}.tool_call_id: {id!r} is not open; open are {open_calls}"
            open_calls.remove(id)
        else:
            assert not open_calls, (
                f"{at}: the calls {open_calls} were not answered directly behind their reply"
            )
        _check_content(message, at)
        if "tool_calls" in message:
            open_calls = _check_calls(message, at)
    assert not open_calls, f"messages: the calls {open_calls} of the last reply were not answered"
    assert messages[-1]["role"] != "assistant", "messages: the last one is the assistant's"
    _check_tools(body)
    for field in ("max_tokens", "max_completion_tokens"):
        assert field not in body or body[field] > 0, f"{field}: {body[field]!r}"
    assert not {"max_tokens", "max_completion_tokens"} <= body.keys(), "two fields for the output cap"


def _check_content(message: dict[str, Any], at: str) -> None:
    content = message.get("content")
    if content is None:
        assert message["role"] == "assistant", f"{at}.content: missing"
        assert message.get("tool_calls"), f"{at}.content: missing, and there are no calls"
    elif isinstance(content, str):
        assert content.strip() or message.get("tool_calls"), f"{at}.content: blank"
    else:
        assert message["role"] == "user", f"{at}.content: a list in a message of role {message['role']}"
        assert content, f"{at}.content: an empty list"
        for j, part in enumerate(content):
            _check_part(part, f"{at}.content[{j}]")


def _check_part(part: dict[str, Any], at: str) -> None:
    if part["type"] == "text":
        assert part["text"], f"{at}.text: empty"
    else:
        assert part["type"] == "image_url", f"{at}.type: {part['type']!r}"
        head, _, data = part["image_url"]["url"].partition(",")
        assert re.fullmatch(r"data:image/[a-z.+-]+;base64", head), f"{at}: {head!r} is no image"
        base64.b64decode(data, validate=True)


def _check_calls(message: dict[str, Any], at: str) -> list[str]:
    assert message["role"] == "assistant", f"{at}.tool_calls: in a message of role {message['role']}"
    calls = message["tool_calls"]
    assert calls, f"{at}.tool_calls: an empty list"
    ids = []
    for j, call in enumerate(calls):
        place = f"{at}.tool_calls[{j}]"
        assert call.get("type") == "function", f"{place}.type: {call.get('type')!r}"
        assert ID.fullmatch(call.get("id") or ""), f"{place}.id: {call.get('id')!r}"
        assert NAME.fullmatch(call["function"]["name"]), (
            f"{place}.function.name: {call['function']['name']!r}"
        )
        arguments = json.loads(call["function"]["arguments"])
        assert isinstance(arguments, dict), f"{place}.function.arguments: no object"
        ids.append(call["id"])
    assert len(set(ids)) == len(ids), f"{at}.tool_calls: an id twice in {ids}"
    return ids


def _check_tools(body: dict[str, Any]) -> None:
    if "tools" not in body:
        assert "tool_choice" not in body, "tool_choice: without tools"
        return
    assert body["tools"], "tools: an empty list"
    names = [tool["function"]["name"] for tool in body["tools"]]
    assert len(set(names)) == len(names), f"tools: a name twice in {names}"
    for i, tool in enumerate(body["tools"]):
        function = tool["function"]
        assert NAME.fullmatch(function["name"]), f"tools[{i}].function.name: {function['name']!r}"
        assert function["parameters"].get("type") == "object", f"tools[{i}].function.parameters: no object"
