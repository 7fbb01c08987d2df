"""A request as the Responses protocol accepts it, without state on the server.

The history is a list of items. A call goes back without its item's id, so that the server has nothing of its
own to miss. Reasoning goes back sealed as it came, and only to the model that made it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from handrail.messages import AssistantMessage, Content, Text, Thinking, ToolCall, ToolMessage, UserMessage
from handrail.policy import Effort
from handrail.providers._calls import CallIds, given_with, wire_name
from handrail.providers.base import ModelInfo, Request, ToolSpec

Item: TypeAlias = dict[str, Any]

MIN_OUTPUT = 16  # tokens; the protocol refuses a smaller cap
_PLAIN_MODELS = re.compile(r"gpt-[34]|chatgpt|gpt-5(\.\d)?-chat")  # these refuse all that is about reasoning


@dataclass(frozen=True, slots=True)
class ResponsesQuirks:
    """How a server differs.

    `reasoning`: whether the model takes what is about reasoning; None goes by its name. `summaries`: ask for
    readable summaries of reasoning where an effort is asked for.
    """

    reasoning: bool | None = None
    summaries: bool = True


def responses_body(model: ModelInfo, request: Request, quirks: ResponsesQuirks) -> dict[str, Any]:
    """The body of `POST /responses`, streaming, nothing stored."""
    name = model.name.partition("/")[2] or model.name
    body: dict[str, Any] = {
        "model": name,
        "input": list(_items(model, request)),
        "stream": True,
        "store": False,
    }
    if request.system.strip():
        body["instructions"] = request.system
    if request.tools:
        body["tools"] = [_tool(spec) for spec in request.tools]
        body["tool_choice"] = request.tool_choice
    if (cap := output_cap(model, request)) is not None:
        body["max_output_tokens"] = cap
    plain = name.rpartition("/")[2].removeprefix("ft:")
    reasons = quirks.reasoning
    if reasons is None:
        reasons = _PLAIN_MODELS.match(plain) is None
    if reasons:
        body["include"] = ["reasoning.encrypted_content"]
        if request.effort is not None:
            body["reasoning"] = _reasoning(request.effort, plain, quirks)
    return body


def output_cap(model: ModelInfo, request: Request) -> int | None:
    """The cap on output that is asked for, in tokens; None leaves it to the provider."""
    if request.max_output is None:
        return None
    return max(MIN_OUTPUT, min(request.max_output, model.max_output or request.max_output))


def _tool(spec: ToolSpec) -> Item:
    return {
        "type": "function",
        "name": spec.name,
        "description": spec.description,
        "parameters": dict(spec.parameters),
        "strict": False,
    }


def _reasoning(effort: Effort, model: str, quirks: ResponsesQuirks) -> Item:
    if effort == "off":
        return {"effort": _least(model)}
    return {"effort": effort, "summary": "auto"} if quirks.summaries else {"effort": effort}


def _least(model: str) -> str:
    """The least effort that the model accepts: the first ones that reasoned cannot be told not to."""
    if re.match(r"o\d", model):
        return "low"
    return "minimal" if re.match(r"gpt-5(-|$)", model) else "none"


def _items(model: ModelInfo, request: Request) -> Iterator[Item]:
    ids = CallIds()
    for message in request.messages:
        if isinstance(message, UserMessage):
            yield {"type": "message", "role": "user", "content": _content(message.content, model)}
        elif isinstance(message, ToolMessage):
            yield {
                "type": "function_call_output",
                "call_id": ids.of(message.call_id),
                "output": _output(message, model),
            }
        else:
            ids.reply(message.calls, own=message.model == model.name)
            yield from _said(message, model, ids)


def _said(message: AssistantMessage, model: ModelInfo, ids: CallIds) -> Iterator[Item]:
    waiting: list[Item] = []  # reasoning is refused without the item that it led to
    for block in message.content:
        if isinstance(block, Thinking):
            waiting += _thought(block) if message.model == model.name else ()
            continue
        if isinstance(block, Text) and not block.text.strip():
            continue
        yield from waiting
        waiting = []
        if isinstance(block, Text):
            yield {"type": "message", "role": "assistant", "content": block.text}
        else:
            yield _call(block, ids, own=message.model == model.name)


def _call(call: ToolCall, ids: CallIds, *, own: bool) -> Item:
    """A call as it was made; what its maker attached goes back to that model only (rule W4)."""
    attached = given_with(call.signature) if own else {}
    return {
        **attached,
        "type": "function_call",
        "call_id": ids.of(call.id),
        "name": wire_name(call.name),
        "arguments": "{}" if call.error else call.raw,
    }


def _thought(thinking: Thinking) -> Iterator[Item]:
    try:
        item = json.loads(thinking.signature or "null")
    except ValueError:
        return  # a signature of another wire
    if isinstance(item, dict) and item.get("type") == "reasoning":
        yield item


def _output(message: ToolMessage, model: ModelInfo) -> str | list[Item]:
    if all(isinstance(block, Text) for block in message.content):
        return message.text
    return _content(message.content, model)


def _content(content: Sequence[Content], model: ModelInfo) -> list[Item]:
    items: list[Item] = []
    for block in content:
        if isinstance(block, Text):
            if block.text:
                items.append({"type": "input_text", "text": block.text})
        elif model.images:
            url = f"data:{block.media_type};base64,{block.data}"
            items.append({"type": "input_image", "image_url": url, "detail": "auto"})
        else:
            note = f"[an image ({block.media_type}) that could not be sent]"
            items.append({"type": "input_text", "text": note})
    return items or [{"type": "input_text", "text": "(no text)"}]
