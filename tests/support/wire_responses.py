"""What the Responses protocol accepts without state on the server, held against a body that we would send."""

from __future__ import annotations

import json
import re
from typing import Any

ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
KEYS = {
    "model",
    "input",
    "stream",
    "store",
    "instructions",
    "tools",
    "tool_choice",
    "max_output_tokens",
    "include",
    "reasoning",
}


def check_responses(body: dict[str, Any]) -> None:
    """Raises AssertionError naming the place of what the protocol would refuse."""
    assert set(body) <= KEYS, f"unknown keys: {set(body) - KEYS}"
    assert isinstance(body["model"], str) and body["model"], "model: empty"
    assert body["stream"] is True, "stream: not true"
    assert body["store"] is False, "store: the history is ours"
    assert body.get("instructions", "x").strip(), "instructions: blank"
    assert body.get("max_output_tokens", 16) >= 16, "max_output_tokens: below 16"
    tools = body.get("tools", [])
    for n, tool in enumerate(tools):
        assert tool["type"] == "function", f"tools.{n}.type: {tool['type']}"
        assert NAME.fullmatch(tool["name"]), f"tools.{n}.name: {tool['name']!r}"
        assert tool["parameters"].get("type") == "object", f"tools.{n}.parameters: its type is no object"
        assert tool["strict"] is False, f"tools.{n}.strict: our schemas are not made for it"
    if "tool_choice" in body:
        assert tools, "tool_choice: without tools"
        assert body["tool_choice"] in ("auto", "required", "none"), "tool_choice: unknown"
    _input(body["input"])


def _input(items: list[dict[str, Any]]) -> None:
    assert items, "input: empty"
    seen: set[str] = set()
    waiting: set[str] = set()
    for n, item in enumerate(items):
        place = f"input.{n}"
        match item["type"]:
            case "function_call":
                _call(item, place)
                assert item["call_id"] not in seen, f"{place}: {item['call_id']!r} twice"
                seen.add(item["call_id"])
                waiting.add(item["call_id"])
            case "function_call_output":
                assert item["call_id"] in waiting, f"{place}: a result without its call"
                waiting.remove(item["call_id"])
                if not isinstance(item["output"], str):
                    _parts(item["output"], f"{place}.output")
            case "message":
                if item["role"] == "user":
                    assert not waiting, f"{place}: before the results of {sorted(waiting)}"
                    _parts(item["content"], f"{place}.content")
                else:
                    assert item["role"] == "assistant", f"{place}: role {item['role']}"
                    assert item["content"].strip(), f"{place}: blank"
            case "reasoning":
                _reasoning(item, items[n + 1 : n + 2], place)
            case other:
                raise AssertionError(f"{place}: {other}")
    assert not waiting, f"input: calls without results: {sorted(waiting)}"


def _call(item: dict[str, Any], place: str) -> None:
    assert ID.fullmatch(item["call_id"]), f"{place}.call_id: {item['call_id']!r}"
    assert NAME.fullmatch(item["name"]), f"{place}.name: {item['name']!r}"
    assert isinstance(json.loads(item["arguments"]), dict), f"{place}.arguments: no object"
    assert "id" not in item, f"{place}.id: binds the call to reasoning that may be gone"


def _reasoning(item: dict[str, Any], following: list[dict[str, Any]], place: str) -> None:
    assert item.get("encrypted_content") or item.get("content"), (
        f"{place}: nothing but an id, which is not stored"
    )
    assert isinstance(item["summary"], list), f"{place}.summary"
    assert following, f"{place}: without the item that follows it"
    after = following[0]
    own = after["type"] in ("reasoning", "function_call") or after.get("role") == "assistant"
    assert own, f"{place}: without the item that follows it"


def _parts(parts: list[dict[str, Any]], place: str) -> None:
    assert parts, f"{place}: empty"
    for n, part in enumerate(parts):
        if part["type"] == "input_text":
            assert part["text"], f"{place}.{n}: empty"
        else:
            assert part["type"] == "input_image", f"{place}.{n}: {part['type']}"
            assert part["image_url"].startswith("data:image/"), f"{place}.{n}: image_url"
