"""Reads a reply of Gemini's wire: candidates with parts of text, thought and function calls."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

import httpx

from handrail.messages import AssistantMessage, Failure, StopReason, Usage, clean
from handrail.providers._evidence import count, items, mapping, words
from handrail.providers._http_reply import HttpFailure
from handrail.providers.assemble import PartialReply
from handrail.providers.base import (
    Finished,
    ModelInfo,
    Part,
    Request,
)
from handrail.providers.http import Wire

_CUT = frozenset({"MAX_TOKENS"})
_WHOLE = frozenset({"STOP"})
_BROKEN = frozenset({"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "OTHER", "FINISH_REASON_UNSPECIFIED"})
"""The model's own mistake, or no reason at all; every other reason that is not known withholds the reply."""


class GeminiReader:
    """Folds the chunks of one reply."""

    def __init__(self, model: str) -> None:
        self._reply = PartialReply(model)
        self._calls = 0
        self._usage: Usage | None = None
        self._finish: str | None = None
        self.error: str | None = None
        self.status: int | None = None

    def feed(self, chunk: object) -> list[Part]:
        """What one chunk adds. A list of chunks is a reply that was not streamed as events."""
        if isinstance(chunk, list):
            return [part for one in chunk for part in self.feed(one)]
        said, parts = mapping(chunk), list[Part]()
        if error := said.get("error"):
            self.error = clean(json.dumps({"error": error}, ensure_ascii=False))
            self.status = count(mapping(error).get("code"))
        if used := mapping(said.get("usageMetadata")):
            self._usage = _usage(used)
        blocked = words(mapping(said.get("promptFeedback")).get("blockReason"))
        self._finish = self._finish or blocked or None
        for candidate in items(said.get("candidates"))[:1]:
            for part in items(mapping(candidate.get("content")).get("parts")):
                parts += self._part(part)
            self._finish = words(candidate.get("finishReason")) or self._finish
        return parts

    def _part(self, part: Mapping[str, Any]) -> list[Part]:
        call, text = mapping(part.get("functionCall")), words(part.get("text"))
        if call:
            self._calls += 1
            id, name = words(call.get("id")) or f"call_{self._calls}", words(call.get("name"))
            block, parts = self._reply.call(self._calls, id, name)
            return [*parts, *block.add(json.dumps(mapping(call.get("args")), ensure_ascii=False))]
        if part.get("thought") is True:
            return self._reply.thinking(text)
        return self._reply.text(text)

    def message(self, failure: Failure | None) -> AssistantMessage:
        """The reply as far as it came. `failure` counts unless the reply said that it is whole."""
        reason: StopReason
        if failure is not None and (self.error is not None or self._finish is None):
            reason = "error"
        elif self._finish in _WHOLE:
            reason, failure = ("tool_use" if self._calls else "stop"), None
        elif self._finish in _CUT:
            reason, failure = "length", None
        elif self._finish in _BROKEN:
            reason, failure = "error", Failure(f"finishReason: {self._finish}", "gemini", "stream")
        else:
            reason, failure = "refusal", None
        return self._reply.message(reason, usage=self._usage, stop_detail=self._finish, failure=failure)


class Gemini(Wire):
    """A reply of Gemini's wire, over a client that holds it already."""

    def __init__(self, model: ModelInfo, *, base_url: str, client: httpx.AsyncClient) -> None:
        super().__init__(model, base_url=base_url, own={}, clock=None, headers=None, client=client)

    async def stream(self, request: Request) -> AsyncIterator[Part]:
        """Parts as they arrive, `Finished` last; a fault is in it, with what came before."""
        reader = GeminiReader(self._model.name)
        failure: Failure | None = None
        try:
            async with self._http.post("", {}) as reply, aclosing(reply.events()) as events:
                async for event in events:
                    for part in reader.feed(_json(event.data)):
                        yield part
                ended = reader.error or "the stream ended before the reply was finished"
                failure = reply.failure(ended, status=reader.status)
        except HttpFailure as stopped:
            failure = stopped.failure
        yield Finished(reader.message(failure))


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return {"error": {"message": text[:2000]}} if text.strip() else {}


def _usage(told: Mapping[str, Any]) -> Usage | None:
    """Thoughts are output; what a cache gave is no input of its own."""
    prompt, cached = count(told.get("promptTokenCount")) or 0, count(told.get("cachedContentTokenCount")) or 0
    output = (count(told.get("candidatesTokenCount")) or 0) + (count(told.get("thoughtsTokenCount")) or 0)
    return Usage(max(0, prompt - cached), output, cached) if prompt or output else None
