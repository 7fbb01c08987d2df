"""Histories that a wire must carry, and the request types of the official SDKs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from handrail.messages import (
    AssistantMessage,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from handrail.providers.base import Request, ToolSpec

PNG = Image("iVBORw0KGgo=", "image/png")
TOOL = ToolSpec("look", "Look at something.", {"type": "object", "properties": {"at": {"type": "string"}}})


def user(*content: str | Image) -> UserMessage:
    return UserMessage(tuple(Text(c) if isinstance(c, str) else c for c in content))


def said(*content: Any, model: str = "test/one") -> AssistantMessage:
    return AssistantMessage(tuple(Text(c) if isinstance(c, str) else c for c in content), model=model)


def call(id: str = "call_1", at: str = "a", name: str = "look") -> ToolCall:
    return ToolCall(id, name, {"at": at}, f'{{"at": "{at}"}}')


def result(id: str = "call_1", *content: str | Image, is_error: bool = False) -> ToolMessage:
    return ToolMessage(id, "look", tuple(Text(c) if isinstance(c, str) else c for c in content), is_error)


def ask(messages: Sequence[Message], **more: Any) -> Request:
    return Request(messages, **{"tools": (TOOL,), **more})


HISTORIES: dict[str, Sequence[Message]] = {
    "one prompt": [user("Hello")],
    "text, then a prompt": [user("Hello"), said("Hi."), user("Go on.")],
    "two prompts in a row": [user("Hello"), user("and more")],
    "blank prompt": [user("   ")],
    "a call": [user("Look"), said("I look.", call()), result("call_1", "seen")],
    "calls side by side": [
        user("Look"),
        said(call("a"), call("b", "b")),
        result("a", "1"),
        result("b", "2"),
        user("and now?"),
    ],
    "a result with a picture": [user("Look"), said(call()), result("call_1", "seen", PNG)],
    "a failed call with a picture": [user("Look"), said(call()), result("call_1", PNG, is_error=True)],
    "an empty result": [user("Look"), said(call()), result("call_1")],
    "an empty failure": [user("Look"), said(call()), result("call_1", " ", is_error=True)],
    "a prompt with a picture": [user("See", PNG)],
    "ids that no wire likes": [
        user("Look"),
        said(call("functions.look:0"), call("functions.look:1"), call("é" * 90), call("")),
        result("functions.look:0", "1"),
        result("functions.look:1", "2"),
        result("é" * 90, "3"),
        result("", "4"),
    ],
    "ids used again": [
        user("Look"),
        said(call("call_1")),
        result("call_1", "1"),
        said(call("call_1", "b")),
        result("call_1", "2"),
    ],
    "arguments that did not parse": [
        user("Look"),
        said(ToolCall("call_1", "look", {}, '{"at": "ha', error="the arguments are not JSON")),
        result("call_1", "not executed", is_error=True),
    ],
    "a tool that does not exist": [user("Look"), said(call(name="no such tool!")), result("call_1", "none")],
    "blank words beside a call": [user("Look"), said("  \n", call()), result("call_1", "seen")],
    "a reply of thinking alone": [user("Look"), said(Thinking("hm")), user("and?")],
    "a reply of nothing": [user("Look"), said(), user("and?")],
    "a prompt behind results": [user("Look"), said(call()), result("call_1", "seen"), user("Stop looking.")],
    "another model's thinking": [
        user("Look"),
        said(Thinking("hm", "c2ln"), call(), model="other/two"),
        result("call_1", "seen"),
    ],
}
