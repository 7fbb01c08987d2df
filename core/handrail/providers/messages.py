"""Reads a streamed reply of the Messages protocol.

Blocks are told by index. Tools that the provider runs by itself (`server_tool_use` and their results), its
own summaries and whatever kind of block comes next are not ours: they are passed over.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable, Mapping
from typing import Any

import httpx

from handrail.clock import Clock
from handrail.messages import AssistantMessage, Failure, Usage, clean
from handrail.providers._calls import same_arguments
from handrail.providers._evidence import (
    attached,
    count,
    fault,
    items,
    mapping,
    read_usage,
    tells_error,
    text_name,
    words,
)
from handrail.providers._messages_request import AnthropicQuirks, messages_body
from handrail.providers._streaming import ReplyReader, read_reply
from handrail.providers.assemble import OpenBlock
from handrail.providers.base import ModelInfo, Part, Request
from handrail.providers.http import Wire

STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}

_DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "input_json_delta": ("call", "partial_json"),
}
_EVENT_KEYS = frozenset(("type", "message", "delta", "usage", "index", "content_block", "context_management"))
_CONTEXT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


class MessagesReader(ReplyReader):
    """Folds the events of one reply. `message_stop` ends it, or its stop reason once all blocks are closed."""

    statuses = STATUSES

    def __init__(self, model: str) -> None:
        super().__init__(model)
        self._given: dict[int | None, tuple[OpenBlock, str]] = {}  # arguments that came whole, not streamed
        self._open: set[int | None] = set()
        self._counts: dict[str, int] = {}
        self._detail: str | None = None
        self._foreign = False

    @property
    def closed(self) -> bool:
        return not self._open

    @property
    def has_foreign_calls(self) -> bool:
        """Whether the provider called tools that it runs by itself."""
        return self._foreign

    def end_mark(self) -> None:
        """`[DONE]` is the mark of another wire: it ends what the stop reason ended."""
        self.marked = self.marked or bool(self.word and self.closed)

    def feed(self, event: Mapping[str, Any]) -> Iterable[Part]:
        """What one event adds. Raises StreamFault for an error told in the stream."""
        if not event.keys() <= _EVENT_KEYS and tells_error(event, known=True):
            raise fault(event, self.statuses)
        match event.get("type"):
            case "content_block_delta":
                return self._delta(event)
            case "content_block_start":
                return self._start(event)
            case "content_block_stop":
                return self._stop(count(event.get("index")))
            case "message_start":
                self._begin(mapping(event.get("message")))
            case "message_delta":
                self._end(mapping(event.get("delta")))
                self._use(mapping(event.get("usage")))
                self.counted = self.counted or bool(self.word and event.get("usage"))
            case "message_stop":
                self.marked = True
                return [part for index in tuple(self._given) for part in self._stop(index)]
            case _:
                return self.unknown(event)
        return ()

    def whole(self, body: Mapping[str, Any]) -> Iterable[Part] | None:
        """The same for a server that answers with one message and no stream."""
        if body.get("type") != "message" or tells_error(body, known=True):
            return None
        parts: list[Part] = []
        for index, block in enumerate(items(body.get("content"))):
            parts += self._start({"index": index, "content_block": block})
            parts += self._stop(index)
        self._end(body)
        self._use(mapping(body.get("usage")))
        self.marked = True
        return parts

    def message(self, failure: Failure | None) -> AssistantMessage:
        """The reply as far as it came, an error when there is a failure."""
        reason = self.stop_reason()
        if failure is not None and reason != "length":
            reason = "error"
        detail = self._detail or self.word or None
        return self.reply.message(reason, usage=self._total(), stop_detail=detail, failure=failure)

    def _begin(self, message: Mapping[str, Any]) -> None:
        self._use(mapping(message.get("usage")))
        self._end(message)

    def _start(self, event: Mapping[str, Any]) -> list[Part]:
        self.revoke()
        index, given = count(event.get("index")), mapping(event.get("content_block"))
        self._open.add(index)
        match given.get("type"):
            case "text":
                return self.reply.open(index, "text").add(words(given.get("text")))
            case "thinking":
                block = self.reply.open(index, "thinking")
                block.sign(words(given.get("signature")))
                return block.add(words(given.get("thinking")))
            case "redacted_thinking":
                self.reply.open(index, "thinking", redacted=words(given.get("data")) or None)
            case "tool_use" | "function_call" | "tool_call":
                block, parts = self.reply.call(index, text_name(given.get("id")), words(given.get("name")))
                block.attach(attached(given))
                if whole := given.get("input"):
                    text = whole if isinstance(whole, str) else json.dumps(whole, ensure_ascii=False)
                    self._given[index] = (block, text)
                return parts
            case kind:
                self._foreign = self._foreign or "tool_use" in words(kind)
                self.reply.open(index, "other")
        return []

    def _delta(self, event: Mapping[str, Any]) -> Iterable[Part]:
        index, delta = count(event.get("index")), mapping(event.get("delta"))
        block, what = self.reply.get(index), words(delta.get("type"))
        if what == "signature_delta":
            if block is not None and block.kind == "call":
                block.attach(attached(delta))
            elif block is not None:
                block.sign(words(delta.get("signature")))
            return ()
        if self.word or self.marked:
            self.revoke()
        kind, key = _DELTAS.get(what, ("other", ""))
        if (block is None or block.kind != kind) and kind in ("text", "thinking"):
            block = self.reply.open(index, "text" if kind == "text" else "thinking")
            self._open.add(index)
        if block is None or block.kind != kind:
            if tells_error(delta, known=True):
                raise fault(delta, self.statuses)
            return ()
        return block.add(words(delta.get(key)))

    def _stop(self, index: int | None) -> list[Part]:
        """End a block; its arguments are filled in where they came whole at its start."""
        self._open.discard(index)
        block, whole = self._given.pop(index, (None, ""))
        if block is None or (block.pieces and same_arguments(block.pieces, [whole])):
            return []
        return block.add(whole)

    def _end(self, delta: Mapping[str, Any]) -> None:
        self.say(delta.get("stop_reason") or delta.get("finish_reason"))
        if why := words(mapping(delta.get("stop_details")).get("explanation")):
            self._detail = f"{self.word}: {clean(why)}"

    def _use(self, usage: Mapping[str, Any]) -> None:
        """Take counts over; the last one told is the total. One that read nothing counts output only."""
        told = {k: n for k in (*_CONTEXT, "output_tokens") if (n := count(usage.get(k))) is not None}
        if not told and (other := read_usage(usage)) is not None:  # the names of another wire
            told = dict(zip(_CONTEXT, (other.input, other.cache_read, other.cache_write), strict=True))
            told["output_tokens"] = other.output
        if not any(told.get(k) for k in _CONTEXT):
            told = {k: n for k, n in told.items() if k not in self._counts or k == "output_tokens"}
        self._counts |= told

    def _total(self) -> Usage | None:
        if not self._counts:
            return None
        read, cached, written = (self._counts.get(k, 0) for k in _CONTEXT)
        return Usage(read, self._counts.get("output_tokens", 0), cached, written)


PATH = "v1/messages"
VERSION = "2023-06-01"


class Anthropic(Wire):
    """A model behind `POST {base_url}/v1/messages`. The base URL does not include `/v1`.

    `api_key` None sends no key; `headers` are sent beside our own. Raises ValueError for a base URL or a header
    that cannot be used.
    """

    def __init__(
        self,
        model: ModelInfo,
        *,
        base_url: str,
        api_key: str | None = None,
        quirks: AnthropicQuirks | None = None,
        clock: Clock | None = None,
        headers: Mapping[str, str] | None = None,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        self._quirks = quirks or AnthropicQuirks()
        own = {"anthropic-version": VERSION, **({"x-api-key": api_key} if api_key else {})}
        super().__init__(
            model,
            base_url=base_url.rstrip("/").removesuffix(f"/{PATH}").removesuffix("/v1"),
            own=own,
            clock=clock,
            headers=headers,
            client=client,
        )

    def stream(self, request: Request) -> AsyncGenerator[Part, None]:
        """Ask once. Parts as they arrive, `Finished` last; a fault is in it, with what came before."""
        body = messages_body(self._model, request, self._quirks)
        return read_reply(self._http, PATH, body, MessagesReader(self._model.name))
