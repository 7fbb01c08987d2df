"""A request as the chat-completions wire wants it, with what the makers of that wire ask for differently.

The order is the wire's: system, then turns; the results of a reply's calls stand directly behind it, each
call answered once. Thinking goes back only to the model that made it, and only where its maker demands it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from handrail.messages import (
    AssistantMessage,
    Content,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from handrail.policy import Effort
from handrail.providers._calls import CallIds, given_with, wire_name
from handrail.providers._evidence import merge
from handrail.providers.base import ModelInfo, Request, ToolSpec

MAX_ID = 40  # characters; OpenAI refuses longer ids of calls on this wire
_SHORT_ID = re.compile(r"[A-Za-z0-9]{9}")


@dataclass(frozen=True, slots=True)
class ChatQuirks:
    """How one maker's chat wire differs from OpenAI's.

    `max_tokens`: the field of the output cap. `stream_usage`: whether usage must be asked for. `effort`: how
    reasoning effort is said (`effort`: reasoning_effort; `openrouter`: a reasoning object; `thinking`: a
    switch). `replay`: the field in which the text of thinking goes back beside calls. `short_ids`: call ids are nine
    letters or digits. `bridge`: a user message must not stand directly behind a tool result.
    """

    max_tokens: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    stream_usage: bool = True
    effort: Literal["effort", "openrouter", "thinking"] = "effort"
    replay: Literal["reasoning_content"] | None = None
    short_ids: bool = False
    bridge: bool = False


def chat_body(model: ModelInfo, request: Request, quirks: ChatQuirks) -> dict[str, Any]:
    """The JSON body of a streamed request."""
    messages = _messages(model, request, quirks)
    body: dict[str, Any] = {
        "model": model.name.partition("/")[2] or model.name,
        "messages": list(_bridged(messages) if quirks.bridge else messages),
        "stream": True,
    }
    if quirks.stream_usage:
        body["stream_options"] = {"include_usage": True}
    if request.tools:
        body["tools"] = [_tool(spec) for spec in request.tools]
        if request.tool_choice != "auto":
            body["tool_choice"] = request.tool_choice
    if request.max_output is not None:
        body[quirks.max_tokens] = min(request.max_output, model.max_output or request.max_output)
    if request.effort is not None:
        body.update(_effort(request.effort, quirks))
    return body


def _tool(spec: ToolSpec) -> dict[str, Any]:
    function = {"name": spec.name, "description": spec.description, "parameters": dict(spec.parameters)}
    return {"type": "function", "function": function}


def _effort(effort: Effort, quirks: ChatQuirks) -> dict[str, Any]:
    if quirks.effort == "thinking":
        return {"thinking": {"type": "disabled" if effort == "off" else "enabled"}}
    if quirks.effort == "openrouter":
        return {"reasoning": {"enabled": False} if effort == "off" else {"effort": effort}}
    return {"reasoning_effort": "none" if effort == "off" else effort}


def _messages(model: ModelInfo, request: Request, quirks: ChatQuirks) -> Iterator[dict[str, Any]]:
    if request.system:
        yield {"role": "system", "content": request.system}
    ids = _ShortIds() if quirks.short_ids else CallIds(MAX_ID)
    pictures: list[Image] = []
    for message in request.messages:
        if pictures and not isinstance(message, ToolMessage):
            yield _pictures(pictures)
            pictures = []
        if isinstance(message, ToolMessage) and model.images:
            pictures += [c for c in message.content if isinstance(c, Image)]
        yield from _message(message, model, quirks, ids)
    if pictures:
        yield _pictures(pictures)


def _bridged(messages: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Words of the assistant between a tool result and a user message, for makers that refuse the pair."""
    behind = ""
    for message in messages:
        if behind == "tool" and message["role"] == "user":
            yield {"role": "assistant", "content": "I have the results of the tools."}
        behind = message["role"]
        yield message


def _pictures(pictures: Sequence[Image]) -> dict[str, Any]:
    """Images of tool results: this wire takes them only from a user."""
    words = {"type": "text", "text": "The images of the tool results above, in order:"}
    return {"role": "user", "content": [words, *(_picture(image) for image in pictures)]}


def _picture(image: Image) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:{image.media_type};base64,{image.data}"}}


def _message(
    message: Message, model: ModelInfo, quirks: ChatQuirks, ids: CallIds
) -> Iterator[dict[str, Any]]:
    if isinstance(message, UserMessage):
        yield {"role": "user", "content": _user_content(message.content, model)}
    elif isinstance(message, ToolMessage):
        words = _words(message.content, model) or ("error" if message.is_error else "(no output)")
        yield {"role": "tool", "tool_call_id": ids.of(message.call_id), "content": words}
    else:
        yield from _assistant(message, model, quirks, ids)


def _user_content(content: Sequence[Content], model: ModelInfo) -> str | list[dict[str, Any]]:
    if not model.images or not any(isinstance(c, Image) for c in content):
        return _words(content, model) or "(no text)"
    blocks = (c for c in content if isinstance(c, Image) or c.text)
    return [_picture(c) if isinstance(c, Image) else {"type": "text", "text": c.text} for c in blocks]


def _words(content: Sequence[Content], model: ModelInfo) -> str:
    """The text of `content`, empty when it is blank; a note stands for each image that cannot be here."""
    pieces = []
    for block in content:
        if isinstance(block, Text):
            pieces.append(block.text)
        elif not model.images:
            pieces.append(
                f"[an image ({block.media_type}) was left out: this model is not known to read images]"
            )
        else:
            pieces.append("[an image, shown below]")
    words = "\n".join(p for p in pieces if p)
    return words if words.strip() else ""


def _assistant(
    message: AssistantMessage, model: ModelInfo, quirks: ChatQuirks, ids: CallIds
) -> Iterator[dict[str, Any]]:
    calls = message.calls
    text = message.text if message.text.strip() else None
    if text is None and not calls:
        return  # nothing that this wire can carry; two user messages in a row are allowed
    said: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        own = message.model == model.name
        ids.reply(calls, own=own)
        said["tool_calls"] = [_call(call, ids, own=own) for call in calls]
    said.update(_replayed(message, model, quirks))
    yield said


def _call(call: ToolCall, ids: CallIds, *, own: bool) -> dict[str, Any]:
    """A call as it was made; arguments that did not parse go back as `{}` (rule L4).

    What its maker attached goes back to that model only (rule W4).
    """
    function = {"name": wire_name(call.name), "arguments": "{}" if call.error else call.raw}
    made: dict[str, Any] = {"id": ids.of(call.id), "type": "function", "function": function}
    return merge(made, given_with(call.signature)) if own else made


def _replayed(message: AssistantMessage, model: ModelInfo, quirks: ChatQuirks) -> dict[str, Any]:
    own = message.model == model.name
    attached: dict[str, Any] = {}
    for block in message.content if own else ():
        if isinstance(block, Thinking):
            attached = merge(attached, given_with(block.signature))
    if quirks.replay == "reasoning_content" and message.calls:
        # These makers refuse calls without the field while thinking is on, so it is there even when empty.
        attached["reasoning_content"] = message.thinking if own else ""
    return attached


class _ShortIds(CallIds):
    """Ids of nine letters or digits: another id becomes its digest, always the same."""

    def of(self, call_id: str) -> str:
        if _SHORT_ID.fullmatch(call_id):
            return call_id
        return hashlib.sha256(call_id.encode("utf-8", "replace")).hexdigest()[:9]
