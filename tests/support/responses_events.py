"""Events of the Responses protocol, as a server sends them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from handrail.messages import AssistantMessage

USAGE = {
    "input_tokens": 60,
    "input_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 5},
    "output_tokens": 30,
    "output_tokens_details": {"reasoning_tokens": 10},
    "total_tokens": 90,
}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "m",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
}
Event = dict[str, Any]


def added(index: int, item: Mapping[str, Any]) -> Event:
    return {"type": "response.output_item.added", "output_index": index, "item": dict(item)}


def item_done(index: int, item: Mapping[str, Any]) -> Event:
    return {"type": "response.output_item.done", "output_index": index, "item": dict(item)}


def delta(kind: str, index: int, id: str, *pieces: str, **more: int) -> list[Event]:
    head = {"type": f"response.{kind}.delta", "output_index": index, "item_id": id, **more}
    return [{**head, "delta": piece} for piece in pieces]


def words(*pieces: str, id: str = "msg_1") -> Event:
    content = [{"type": "output_text", "text": "".join(pieces), "annotations": []}]
    return {"type": "message", "id": id, "role": "assistant", "status": "completed", "content": content}


def call(arguments: str, id: str = "call_1", item_id: str = "fc_1") -> Event:
    return {"type": "function_call", "id": item_id, "call_id": id, "name": "look", "arguments": arguments}


def end(*output: Mapping[str, Any], status: str = "completed", **more: Any) -> Event:
    response = {**RESPONSE, "status": status, "output": list(output), "usage": USAGE, **more}
    return {"type": f"response.{status}", "response": response}


def message(index: int, *pieces: str, id: str = "msg_1") -> list[Event]:
    part = {"type": "output_text", "text": "", "annotations": []}
    place = {"item_id": id, "output_index": index, "content_index": 0}
    return [
        added(index, {**words(id=id), "content": [], "status": "in_progress"}),
        {"type": "response.content_part.added", **place, "part": part},
        *delta("output_text", index, id, *pieces, content_index=0),
        {"type": "response.output_text.done", **place, "text": "".join(pieces)},
        {"type": "response.content_part.done", **place, "part": {**part, "text": "".join(pieces)}},
        item_done(index, words(*pieces, id=id)),
    ]


def calling(index: int, *pieces: str, id: str = "call_1", item_id: str = "fc_1") -> list[Event]:
    whole = "".join(pieces)
    done = {"type": "response.function_call_arguments.done", "output_index": index, "item_id": item_id}
    return [
        added(index, call("", id, item_id)),
        *delta("function_call_arguments", index, item_id, *pieces),
        {**done, "arguments": whole},
        item_done(index, call(whole, id, item_id)),
    ]


Reply = Callable[..., Awaitable[AssistantMessage]]
"""The message that a stream of events makes."""
