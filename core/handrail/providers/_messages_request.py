"""A request as the Messages protocol accepts it.

Turns alternate between user and assistant; the results of calls stand first in the turn that follows them.
Blocks without text are refused by the protocol, and so are left out. Thinking goes back, with its signature,
only to the model that made it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from handrail.messages import (
    AssistantMessage,
    Content,
    Image,
    Text,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from handrail.policy import Effort
from handrail.providers._calls import CallIds, given_with, wire_name
from handrail.providers.base import ModelInfo, Request, ToolSpec

Block: TypeAlias = dict[str, Any]

MAX_OUTPUT = 8192  # tokens asked for when neither the request nor the catalogue says; every model accepts it
BUDGETS: dict[Effort, int] = {"low": 4096, "medium": 12_288, "high": 24_576}
MIN_BUDGET = 1024  # the protocol refuses a smaller one
IMAGES = {"image/png", "image/jpeg", "image/gif", "image/webp"}
_BUDGET_MODELS = re.compile(r"claude-(\d|instant|v\d)|claude-\w+-4(-[015])?([-@]\d{8}|-latest|$)")


@dataclass(frozen=True, slots=True)
class AnthropicQuirks:
    """How a server differs.

    `thinking`: a token budget, or an effort that the model spends as it likes; None goes by the model's name.
    `cache`: mark what is worth keeping in the prompt cache.
    """

    thinking: Literal["budget", "adaptive"] | None = None
    cache: bool = True


def messages_body(model: ModelInfo, request: Request, quirks: AnthropicQuirks) -> dict[str, Any]:
    """The body of `POST /v1/messages`, streaming."""
    messages = _turns(model, request)
    body: dict[str, Any] = {
        "model": model.name.partition("/")[2] or model.name,
        "max_tokens": _max_tokens(model, request),
        "messages": messages,
        "stream": True,
    }
    if request.system.strip():
        body["system"] = [{"type": "text", "text": request.system}]
    body |= _tools(request)
    body |= _thinking(body, request, quirks)
    if quirks.cache:
        _mark(body)
    return body


def _max_tokens(model: ModelInfo, request: Request) -> int:
    asked = request.max_output or model.max_output or MAX_OUTPUT
    return min(asked, model.max_output or asked)


def _tools(request: Request) -> dict[str, Any]:
    """The tools and the choice.

    A history with calls needs tools even where none is offered: then they are named, and none may be called.
    """
    if request.tools:
        choice = {"auto": "auto", "required": "any", "none": "none"}[request.tool_choice]
        return {"tools": [_tool(spec) for spec in request.tools], "tool_choice": {"type": choice}}
    replies = (m for m in request.messages if isinstance(m, AssistantMessage))
    names = dict.fromkeys(wire_name(call.name) for reply in replies for call in reply.calls)
    if not names:
        return {}
    tools = [{"name": name, "input_schema": {"type": "object"}} for name in names]
    return {"tools": tools, "tool_choice": {"type": "none"}}


def _tool(spec: ToolSpec) -> Block:
    tool: Block = {"name": spec.name, "input_schema": {"type": "object", **spec.parameters}}
    if spec.description.strip():
        tool["description"] = spec.description
    return tool


def _thinking(body: dict[str, Any], request: Request, quirks: AnthropicQuirks) -> dict[str, Any]:
    """What asks for thinking.

    A forced call excludes it; a budget is refused in the middle of a tool loop that began without thinking.
    """
    effort = request.effort
    if effort is None or body.get("tool_choice", {}).get("type") == "any":
        return {}
    if effort == "off":
        return {"thinking": {"type": "disabled"}}
    if (quirks.thinking or _way(body["model"])) == "adaptive":
        thinking = {"type": "adaptive", "display": "summarized"}
        return {"thinking": thinking, "output_config": {"effort": effort}}
    budget = min(BUDGETS[effort], body["max_tokens"] // 2)
    if budget < MIN_BUDGET or _loop_without_thinking(body["messages"]):
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def _way(model: str) -> Literal["budget", "adaptive"]:
    """Budgets for Claude up to 4.5 and for what is no Claude; later models refuse them."""
    name = model.rpartition("/")[2].replace(".", "-")
    return "budget" if not name.startswith("claude") or _BUDGET_MODELS.match(name) else "adaptive"


def _loop_without_thinking(messages: Sequence[Block]) -> bool:
    if len(messages) < 2 or messages[-1]["content"][0]["type"] != "tool_result":
        return False
    return messages[-2]["content"][0]["type"] not in ("thinking", "redacted_thinking")


def _mark(body: dict[str, Any]) -> None:
    """Mark the ends of what the next request will begin with: at most four, the protocol takes no more."""
    users = [turn["content"] for turn in body["messages"] if turn["role"] == "user"]
    for blocks in (body.get("tools", ()), body.get("system", ()), *users[-2:]):
        if blocks:
            blocks[-1]["cache_control"] = {"type": "ephemeral"}


def _turns(model: ModelInfo, request: Request) -> list[Block]:
    turns: list[Block] = []
    ids = CallIds()
    for message in request.messages:
        if isinstance(message, AssistantMessage):
            ids.reply(message.calls, own=message.model == model.name)
            _join(turns, "assistant", _said(message, model, ids))
        elif isinstance(message, UserMessage):
            blocks = _content(message.content, model)
            _join(turns, "user", blocks or [{"type": "text", "text": "(no text)"}])
        else:
            _join(turns, "user", [_result(message, model, ids)])
    if turns and turns[-1]["role"] == "assistant":
        _trim(turns)
    return turns


def _join(turns: list[Block], role: str, blocks: list[Block]) -> None:
    if not blocks:
        return
    if not turns or turns[-1]["role"] != role:
        turns.append({"role": role, "content": blocks})
        return
    joined = turns[-1]["content"] + blocks
    turns[-1]["content"] = sorted(joined, key=lambda b: role == "user" and b["type"] != "tool_result")


def _trim(turns: list[Block]) -> None:
    """The protocol refuses a last assistant turn that ends in blanks."""
    last = turns[-1]["content"][-1]
    if last["type"] == "text":
        last["text"] = last["text"].rstrip()


def _said(message: AssistantMessage, model: ModelInfo, ids: CallIds) -> list[Block]:
    blocks: list[Block] = []
    for block in message.content:
        if isinstance(block, ToolCall):
            blocks.append(_call(block, ids, own=message.model == model.name))
        elif isinstance(block, Thinking):
            blocks += _thought(block) if message.model == model.name else ()
        elif block.text.strip():
            blocks.append({"type": "text", "text": block.text})
    while blocks and blocks[-1]["type"] in ("thinking", "redacted_thinking"):
        blocks.pop()  # a turn must not end in thinking
    return blocks


def _call(call: ToolCall, ids: CallIds, *, own: bool) -> Block:
    """A call as it was made; what its maker attached goes back to that model only (rule W4)."""
    arguments = {} if call.error else call.arguments
    made = {"type": "tool_use", "id": ids.of(call.id), "name": wire_name(call.name), "input": arguments}
    return made | given_with(call.signature) if own else made


def _thought(thinking: Thinking) -> Iterable[Block]:
    if thinking.redacted:
        yield {"type": "redacted_thinking", "data": thinking.redacted}
    elif thinking.signature and not thinking.signature.startswith(("{", "[")):  # those are of other wires
        yield {"type": "thinking", "thinking": thinking.text, "signature": thinking.signature}


def _result(message: ToolMessage, model: ModelInfo, ids: CallIds) -> Block:
    result: Block = {"type": "tool_result", "tool_use_id": ids.of(message.call_id)}
    content = _content(message.content, model, images=not message.is_error)
    if message.is_error:
        result["is_error"] = True
        content = content or [{"type": "text", "text": "error"}]
    if content:
        result["content"] = content
    return result


def _content(content: Sequence[Content], model: ModelInfo, *, images: bool = True) -> list[Block]:
    blocks: list[Block] = []
    for block in content:
        if isinstance(block, Text):
            if block.text.strip():
                blocks.append({"type": "text", "text": block.text})
        elif images and model.images and block.media_type in IMAGES:
            blocks.append({"type": "image", "source": _source(block)})
        else:
            blocks.append({"type": "text", "text": f"[an image ({block.media_type}) that could not be sent]"})
    return blocks


def _source(image: Image) -> Block:
    return {"type": "base64", "media_type": image.media_type, "data": image.data}
