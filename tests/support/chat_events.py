"""Events of the chat wire, and the reply that they make, read without a connection."""

from __future__ import annotations

import json
from typing import Any

from handrail.messages import AssistantMessage
from handrail.providers._sse import ServerEvent
from handrail.providers._streaming import read_event
from handrail.providers.base import Part
from handrail.providers.chat import ChatReader


def chunk(delta: Any = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}], **more}


def fragment(
    index: int | None = None, id: str | None = None, name: str | None = None, args: Any = None
) -> dict[str, Any]:
    """A piece of a call, holding only what is given."""
    function = {k: v for k, v in (("name", name), ("arguments", args)) if v is not None}
    call = {k: v for k, v in (("index", index), ("id", id)) if v is not None}
    return {"tool_calls": [{**call, "function": function}]}


def read(*events: Any, done: bool = True) -> tuple[list[Part], AssistantMessage]:
    """The reply that `events` make, read without a connection."""
    reader = ChatReader("demo/model")
    lines = [e if isinstance(e, str) else json.dumps(e) for e in events] + (["[DONE]"] if done else [])
    parts = [part for line in lines for part in read_event(reader, ServerEvent("", line))]
    return parts + reader.reply.begin(), reader.message(None)
