"""What the Messages protocol accepts, held against a body that we would send."""

from __future__ import annotations

import base64
import re
from typing import Any

ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
IMAGES = {"image/png", "image/jpeg", "image/gif", "image/webp"}
KEYS = {
    "model",
    "max_tokens",
    "messages",
    "stream",
    "system",
    "tools",
    "tool_choice",
    "thinking",
    "output_config",
}


def check_anthropic(body: dict[str, Any]) -> None:
    """Raises AssertionError naming the place of what the protocol would refuse."""
    assert set(body) <= KEYS, f"unknown keys: {set(body) - KEYS}"
    assert isinstance(body["model"], str) and body["model"], "model: empty"
    assert isinstance(body["max_tokens"], int) and body["max_tokens"] > 0, "max_tokens: not above 0"
    assert body["stream"] is True, "stream: not true"
    for n, block in enumerate(body.get("system", [])):
        _text(block, f"system.{n}")
    _tools(body)
    _thinking(body)
    _messages(body["messages"])
    marks = _marks(body)
    assert marks <= 4, f"cache_control: {marks} markers, at most 4 are allowed"


def _tools(body: dict[str, Any]) -> None:
    tools = body.get("tools", [])
    for n, tool in enumerate(tools):
        assert NAME.fullmatch(tool["name"]), f"tools.{n}.name: {tool['name']!r}"
        assert tool["input_schema"].get("type") == "object", f"tools.{n}.input_schema: its type is no object"
        assert tool.get("description", "x").strip(), f"tools.{n}.description: empty"
    names = [tool["name"] for tool in tools]
    assert len(names) == len(set(names)), "tools: a name twice"
    if "tool_choice" in body:
        assert tools, "tool_choice: without tools"
        assert body["tool_choice"]["type"] in ("auto", "any", "none"), "tool_choice: unknown type"


def _thinking(body: dict[str, Any]) -> None:
    thinking = body.get("thinking", {"type": "disabled"})
    assert thinking["type"] in ("enabled", "adaptive", "disabled"), "thinking: unknown type"
    if thinking["type"] == "enabled":
        assert 1024 <= thinking["budget_tokens"] < body["max_tokens"], "thinking.budget_tokens: out of range"
    else:
        assert "budget_tokens" not in thinking, "thinking.budget_tokens: without `enabled`"
    if thinking["type"] != "disabled":
        assert body.get("tool_choice", {}).get("type") != "any", "thinking: not with a forced call"


def _messages(messages: list[dict[str, Any]]) -> None:
    assert messages, "messages: none"
    assert messages[0]["role"] == "user", "messages.0: not from the user"
    seen: set[str] = set()
    open_calls: list[str] = []
    for n, message in enumerate(messages):
        place = f"messages.{n}"
        assert set(message) == {"role", "content"}, f"{place}: keys {set(message)}"
        assert message["role"] == ("assistant" if n % 2 else "user"), f"{place}: roles do not alternate"
        assert message["content"], f"{place}: empty"
        if message["role"] == "user":
            _user(message["content"], open_calls, place)
            open_calls = []
        else:
            open_calls = _assistant(message["content"], seen, place)
            last = message["content"][-1]
            if n == len(messages) - 1 and last["type"] == "text":
                assert last["text"] == last["text"].rstrip(), f"{place}: ends in blanks"
    assert not open_calls, f"messages: calls without results: {open_calls}"


def _user(content: list[dict[str, Any]], calls: list[str], place: str) -> None:
    results = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
    assert sorted(results) == sorted(calls), f"{place}: results {results} for calls {calls}"
    first = [block["type"] for block in content[: len(results)]]
    assert set(first) <= {"tool_result"}, f"{place}: results do not stand first"
    for n, block in enumerate(content):
        if block["type"] == "tool_result":
            _result(block, f"{place}.{n}")
        else:
            _readable(block, f"{place}.{n}")


def _result(block: dict[str, Any], place: str) -> None:
    content = block.get("content", [])
    for n, inner in enumerate(content):
        _readable(inner, f"{place}.content.{n}")
    if block.get("is_error"):
        assert content, f"{place}: an error without words"
        assert {inner["type"] for inner in content} == {"text"}, f"{place}: an error holds text only"


def _assistant(content: list[dict[str, Any]], seen: set[str], place: str) -> list[str]:
    calls = []
    for n, block in enumerate(content):
        match block["type"]:
            case "text":
                _text(block, f"{place}.{n}")
            case "thinking":
                assert block["signature"], f"{place}.{n}: thinking without a signature"
                assert "cache_control" not in block, f"{place}.{n}: thinking cannot be marked"
            case "redacted_thinking":
                assert block["data"], f"{place}.{n}: no data"
            case "tool_use":
                assert ID.fullmatch(block["id"]), f"{place}.{n}.id: {block['id']!r}"
                assert block["id"] not in seen, f"{place}.{n}.id: {block['id']!r} twice"
                assert NAME.fullmatch(block["name"]), f"{place}.{n}.name: {block['name']!r}"
                assert isinstance(block["input"], dict), f"{place}.{n}.input: no object"
                seen.add(block["id"])
                calls.append(block["id"])
            case other:
                raise AssertionError(f"{place}.{n}: {other} from the assistant")
    assert "thinking" not in content[-1]["type"], f"{place}: ends in thinking"
    return calls


def _readable(block: dict[str, Any], place: str) -> None:
    if block["type"] == "text":
        _text(block, place)
        return
    assert block["type"] == "image", f"{place}: {block['type']} from the user"
    assert block["source"]["type"] == "base64", f"{place}: source"
    assert block["source"]["media_type"] in IMAGES, f"{place}: {block['source']['media_type']}"
    base64.b64decode(block["source"]["data"], validate=True)


def _text(block: dict[str, Any], place: str) -> None:
    assert block["type"] == "text", f"{place}: {block['type']}"
    assert block["text"].strip(), f"{place}: blank text"


def _marks(value: Any) -> int:
    if isinstance(value, dict):
        return ("cache_control" in value) + sum(_marks(v) for v in value.values())
    return sum(_marks(v) for v in value) if isinstance(value, list) else 0
