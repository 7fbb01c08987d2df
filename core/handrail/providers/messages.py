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
from handrail.messages import AssistantMessage, Failure, StopReason, Usage, clean
from handrail.providers.assemble import OpenBlock, PartialReply
from handrail.providers.base import ModelInfo, Part, Request
from handrail.providers.http import Wire
from handrail.providers.messages_request import AnthropicQuirks, messages_body
from handrail.providers.streaming import count, fault, items, mapping, read_reply, tells_error, words

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

STOPS: Mapping[str, StopReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",  # recovery goes on when it reads the detail
    "tool_use": "tool_use",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}

_DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "input_json_delta": ("call", "partial_json"),
}
_CONTEXT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


class MessagesReader:
    """Folds the events of one reply. Only `message_stop` makes it whole: no stop reason does before that."""

    bad_end: str | None = None

    def __init__(self, model: str) -> None:
        self.done = False
        self.reply = PartialReply(model)
        self._given: dict[int | None, tuple[OpenBlock, str]] = {}  # arguments that came whole, not streamed
        self._usage: dict[str, int] = {}
        self._stop: str | None = None
        self._detail: str | None = None

    @property
    def ended(self) -> bool:
        return self.done

    def end_mark(self) -> None:
        """`[DONE]` means nothing here."""

    def feed(self, event: Mapping[str, Any]) -> Iterable[Part]:
        """What one event adds. Raises StreamFault for an error told in the stream."""
        match event.get("type"):
            case "content_block_delta":
                return self._delta(event)
            case "content_block_start":
                return self._start(event)
            case "content_block_stop":
                return self._arguments(count(event.get("index")))
            case "message_start":
                self._use(mapping(mapping(event.get("message")).get("usage")))
            case "message_delta":
                self._end(mapping(event.get("delta")))
                self._use(mapping(event.get("usage")))
            case "message_stop":
                self.done = True
                return [part for index in tuple(self._given) for part in self._arguments(index)]
            case _ if tells_error(event):
                raise fault(event, STATUSES)
        return ()

    def whole(self, body: Mapping[str, Any]) -> Iterable[Part]:
        """The same for a server that answers with one message and no stream."""
        if tells_error(body):
            raise fault(body, STATUSES)
        if body.get("type") != "message":
            return ()
        parts: list[Part] = []
        for index, block in enumerate(items(body.get("content"))):
            parts += self._start({"index": index, "content_block": block})
            parts += self._arguments(index)
        self._end(body)
        self._use(mapping(body.get("usage")))
        self.done = True
        return parts

    def message(self, failure: Failure | None) -> AssistantMessage:
        """The reply as far as it came, an error when there is a failure."""
        reason: StopReason = "error" if failure else STOPS.get(self._stop or "", "stop")
        if reason == "tool_use" and not self.reply.calls:
            reason = "stop"  # the provider's own tools: no call is left for us
        detail = self._detail or self._stop
        return self.reply.message(reason, usage=self._total(), stop_detail=detail, failure=failure)

    def _start(self, event: Mapping[str, Any]) -> list[Part]:
        index, given = count(event.get("index")), mapping(event.get("content_block"))
        match given.get("type"):
            case "text":
                return self.reply.open(index, "text").add(words(given.get("text")))
            case "thinking":
                block = self.reply.open(index, "thinking")
                block.sign(words(given.get("signature")))
                return block.add(words(given.get("thinking")))
            case "redacted_thinking":
                self.reply.open(index, "thinking", redacted=words(given.get("data")) or None)
            case "tool_use":
                block, parts = self.reply.call(index, words(given.get("id")), words(given.get("name")))
                if given.get("input"):
                    self._given[index] = (block, json.dumps(given["input"], ensure_ascii=False))
                return parts
            case _:
                self.reply.open(index, "other")
        return []

    def _delta(self, event: Mapping[str, Any]) -> Iterable[Part]:
        index, delta = count(event.get("index")), mapping(event.get("delta"))
        block, what = self.reply.get(index), words(delta.get("type"))
        if what == "signature_delta":
            if block is not None and block.kind == "thinking":
                block.sign(words(delta.get("signature")))
            return ()
        kind, key = _DELTAS.get(what, ("other", ""))
        if block is None and kind == "text":
            block = self.reply.open(index, "text")
        elif block is None and kind == "thinking":
            block = self.reply.open(index, "thinking")
        if block is None or block.kind != kind:
            return ()
        return block.add(words(delta.get(key)))

    def _arguments(self, index: int | None) -> list[Part]:
        block, whole = self._given.pop(index, (None, ""))
        return block.add(whole) if block is not None and not block.text else []

    def _end(self, delta: Mapping[str, Any]) -> None:
        if stop := words(delta.get("stop_reason")):
            self._stop = clean(stop)
        if why := words(mapping(delta.get("stop_details")).get("explanation")):
            self._detail = f"{self._stop}: {clean(why)}"

    def _use(self, usage: Mapping[str, Any]) -> None:
        """Take counts over; the last one told is the total. One that read nothing counts output only."""
        told = {k: n for k in (*_CONTEXT, "output_tokens") if (n := count(usage.get(k))) is not None}
        if not any(told.get(k) for k in _CONTEXT):
            told = {k: n for k, n in told.items() if k not in self._usage or k == "output_tokens"}
        self._usage |= told

    def _total(self) -> Usage | None:
        if not self._usage:
            return None
        read, cached, written = (self._usage.get(k, 0) for k in _CONTEXT)
        return Usage(read, self._usage.get("output_tokens", 0), cached, written)


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
