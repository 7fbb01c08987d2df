"""A provider made of a function: for tests, benchmarks, and programs that bring a model of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from inspect import isawaitable
from typing import Any, TypeAlias

from handrail.messages import AssistantMessage, Text, Thinking, ToolCall
from handrail.providers.base import (
    CallDelta,
    CallStarted,
    Finished,
    ModelInfo,
    Part,
    Request,
    TextDelta,
    ThinkingDelta,
)

Answering: TypeAlias = Callable[[Request], Any]
"""From a request to an AssistantMessage, an awaitable of one, or an async iterator of parts ending with `Finished`."""


class FunctionProvider:
    """Asks `answer(request)`. A whole message is passed on as one delta a block."""

    def __init__(self, answer: Answering, model: ModelInfo | None = None) -> None:
        self._answer = answer
        self._model = model or ModelInfo("function/model")

    @property
    def model(self) -> ModelInfo:
        return self._model

    async def stream(self, request: Request) -> AsyncIterator[Part]:
        """Ask once (see `Provider`)."""
        answer = self._answer(request)
        if isawaitable(answer):
            answer = await answer
        if isinstance(answer, AssistantMessage):
            for part in parts_of(answer):
                yield part
            yield Finished(answer)
            return
        async for part in answer:
            yield part


def parts_of(message: AssistantMessage) -> list[Part]:
    """The deltas that a whole message would have streamed as, one or two a block."""
    parts: list[Part] = []
    index = 0
    for block in message.content:
        if isinstance(block, Text):
            parts.append(TextDelta(block.text))
        elif isinstance(block, Thinking):
            if block.text:
                parts.append(ThinkingDelta(block.text))
        elif isinstance(block, ToolCall):
            parts.append(CallStarted(index, block.id, block.name))
            parts.append(CallDelta(index, block.raw))
            index += 1
    return parts
