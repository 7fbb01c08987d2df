"""Types, models and failures for tests of `step()`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import typing_extensions
from pydantic import BaseModel
from runs import scripted

from handrail import StepFailed, step
from handrail.clock import VirtualClock
from handrail.messages import AssistantMessage, Text, Usage
from handrail.providers._calls import parse_call
from handrail.providers.base import Request
from handrail.providers.function import FunctionProvider

ANSWER = {"type": "object", "required": ["answer"], "properties": {"answer": {"type": "integer"}}}


class Verdict(BaseModel):
    flaky: bool
    cause: str


class Crash(BaseModel):
    signal: int


@dataclass
class Point:
    x: int
    y: int = 0


class Row(typing_extensions.TypedDict):
    name: str
    size: typing_extensions.NotRequired[int]


TREE = {
    "$ref": "#/$defs/Node",
    "$defs": {
        "Node": {
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
            },
        }
    },
}


class Model(FunctionProvider):
    """Answers with these replies in order, and keeps what it was asked."""

    def __init__(self, *replies: AssistantMessage) -> None:
        self.asked: list[Request] = []
        left = iter(replies)

        def answer(request: Request) -> AssistantMessage:
            self.asked.append(request)
            return next(left)

        super().__init__(answer)


def submits(raw: str) -> AssistantMessage:
    return AssistantMessage((parse_call("c1", "submit", raw),), "tool_use", Usage(10, 5))


def prose(text: str) -> AssistantMessage:
    return AssistantMessage((Text(text),), "stop", Usage(10, 5))


async def failing(*replies: Any, tools: Any = (), **more: Any) -> StepFailed:
    """The failure of a step whose model is scripted."""
    clock = VirtualClock()
    with pytest.raises(StepFailed) as caught:
        await step("Go.", ANSWER, model=scripted(replies, clock), tools=tools, clock=clock, **more)
    return caught.value
