"""Replies as a chat server streams them."""

from __future__ import annotations

import json
from typing import Any


def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    """One event of the stream."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    data = json.dumps({"id": "x", "object": "chat.completion.chunk", "choices": [choice]})
    return f"data: {data}\n\n".encode()


def says(text: str) -> list[bytes]:
    """A reply of words."""
    return [chunk({"role": "assistant", "content": text}), chunk({}, "stop"), b"data: [DONE]\n\n"]


def calls(*named: tuple[str, dict[str, Any]]) -> list[bytes]:
    """A reply that calls tools by their names."""
    made = [
        {"index": i, "id": f"c{i}", "type": "function", "function": {"name": n, "arguments": json.dumps(a)}}
        for i, (n, a) in enumerate(named)
    ]
    return [chunk({"role": "assistant", "tool_calls": made}), chunk({}, "tool_calls"), b"data: [DONE]\n\n"]
