"""Reads a streamed reply of the Responses protocol.

A reply is a list of output items: messages, reasoning, function calls, and tools that the provider runs by
itself, which are not ours. Servers differ in how they name an item (id, index, neither; some change the id on
the way) and in what they leave out. So an item is found by whatever its events have in common, and what only
the end of an item or of the reply carries is filled in there.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from handrail.clock import Clock
from handrail.messages import AssistantMessage, Failure, StopReason
from handrail.providers._evidence import (
    attached,
    count,
    fault,
    items,
    mapping,
    name_set,
    read_usage,
    tells_error,
    words,
)
from handrail.providers._responses_request import ResponsesQuirks, output_cap, responses_body
from handrail.providers._stops import stop_of, word_in
from handrail.providers._streaming import ReplyReader, read_reply
from handrail.providers.assemble import Kind, OpenBlock
from handrail.providers.base import ModelInfo, Part, Request
from handrail.providers.http import Wire, bearer

STATUSES = {
    "invalid_prompt": 400,
    "invalid_request_error": 400,
    "context_length_exceeded": 400,
    "authentication_error": 401,
    "rate_limit_exceeded": 429,
    "server_error": 500,
}

# type of event: (type of its item, part of the item, field with the part's number, field with its whole text)
_PIECES = {
    "response.output_text": ("message", "text", "content_index", "text"),
    "response.refusal": ("message", "refusal", "content_index", "refusal"),
    "response.reasoning_summary_text": ("reasoning", "summary", "summary_index", "text"),
    "response.reasoning_text": ("reasoning", "content", "content_index", "text"),
    "response.function_call_arguments": ("function_call", "arguments", "", "arguments"),
}
_STATUS = ("completed", "incomplete", "failed", "cancelled")
_ENDS = {f"response.{status}": status for status in _STATUS} | {"response.done": "completed"}
_EVENT_KEYS = name_set(
    """
    type sequence_number output_index item_id content_index summary_index delta text refusal arguments item response
    part logprobs obfuscation annotation annotation_index
    """
)
_KINDS: Mapping[str, Kind] = {"message": "text", "reasoning": "thinking"}


@dataclass(slots=True, eq=False)
class _Item:
    """An output item. Its first part takes the block that it began with, so that the order is kept."""

    type: str
    number: int
    names: set[str]
    first: OpenBlock
    parts: dict[tuple[str, int], OpenBlock] = field(default_factory=dict)


class ResponsesReader(ReplyReader):
    """Folds the events of one reply.

    `cap` is the output asked for, in tokens: some servers call a reply that hit it completed. A raw chain of
    thought is told while it streams. In a reply that ended well it does not count as readable thinking and
    goes back to its model only; in one that did not it stays as text, for the checkpoint (rule R8).
    """

    statuses = STATUSES

    def __init__(self, model: str, cap: int | None = None) -> None:
        super().__init__(model)
        self._cap = cap
        self._items: list[_Item] = []
        self._by_name: dict[str, _Item] = {}
        self._by_index: dict[int, _Item] = {}
        self._open_items: set[int] = set()
        self._raw: list[OpenBlock] = []
        self._refused = False
        self._why = ""  # why the response is incomplete

    @property
    def closed(self) -> bool:
        return not self._open_items

    def end_mark(self) -> None:
        """`[DONE]` is the mark of another wire: it ends a reply all of whose items were completed."""
        self.marked = self.marked or bool(self._items and self.closed)

    def feed(self, event: Mapping[str, Any]) -> Iterable[Part]:
        """What one event adds. Raises StreamFault for an error told in the stream."""
        kind = words(event.get("type"))
        stem, _, last = kind.rpartition(".")
        if not event.keys() <= _EVENT_KEYS and tells_error(event, known=True):
            return self.unknown(event)
        if stem in _PIECES and last in ("delta", "done"):
            return self._piece(event, stem, last)
        if kind == "response.output_item.added":
            return self._added(event)
        if kind == "response.output_item.done":
            return self._item_done(event)
        if kind in _ENDS:
            return self._end(mapping(event.get("response")), _ENDS[kind])
        if kind.startswith("response.") and not tells_error(event, known=True):
            return ()
        return self.unknown(event)

    def whole(self, body: Mapping[str, Any]) -> Iterable[Part] | None:
        """The same for a server that answers with one response and no stream."""
        return self._end(body, "completed") if body.get("status") in _STATUS else None

    def message(self, failure: Failure | None) -> AssistantMessage:
        """The reply as far as it came, an error when there is a failure."""
        reason = self.stop_reason()
        if failure is not None and reason != "length":
            reason = "error"
        detail = None if reason == "error" else self._detail(reason)
        for block in self._raw:
            block.hidden = reason in ("stop", "tool_use")
        return self.reply.message(reason, usage=self.usage, stop_detail=detail, failure=failure)

    def stop_reason(self) -> StopReason:
        reason = super().stop_reason()
        if self.word and reason != "stop" and reason != "tool_use":
            return reason
        if self._refused:
            return "refusal"
        calls = self.reply.calls
        capped = self._cap is not None and self.usage is not None and self.usage.output >= self._cap
        if capped and (not calls or any(call.error for call in calls)):
            return "length"
        return "tool_use" if calls else "stop"

    def _detail(self, reason: StopReason) -> str | None:
        if self.word:
            return self._why or self.word
        return {"refusal": "refusal", "length": "max_output_tokens"}.get(
            reason, "completed" if self.marked else None
        )

    def _added(self, event: Mapping[str, Any]) -> list[Part]:
        self.revoke()
        item, parts = self._open(mapping(event.get("item")), count(event.get("output_index")))
        self._open_items.add(item.number)
        return parts

    def _piece(self, event: Mapping[str, Any], stem: str, last: str) -> list[Part]:
        item_type, part, number, whole = _PIECES[stem]
        item = self._find(event, item_type)
        if item is None and item_type == "function_call":
            return []  # without a name it cannot be called; the end of the item brings it whole
        if item is None:
            given = {"type": item_type, "id": event.get("item_id")}
            item, _ = self._open(given, count(event.get("output_index")))
        if last == "delta" and self.marked:
            self.revoke()
        if last == "delta":
            self._open_items.add(item.number)
        block = self._part(item, part, count(event.get(number)) or 0)
        if last == "delta":
            return block.add(words(event.get("delta")))
        return block.settle(words(event.get(whole)))

    def _find(self, event: Mapping[str, Any], item_type: str) -> _Item | None:
        """The item of a piece: by its name, else by its index, else the last one of its type."""
        index = count(event.get("output_index"))
        known = [self._by_name.get(words(event.get("item_id")))]
        known += reversed(self._items) if index is None else [self._by_index.get(index)]
        return next((item for item in known if item is not None and item.type == item_type), None)

    def _open(self, given: Mapping[str, Any], index: int | None) -> tuple[_Item, list[Part]]:
        item_type, number = words(given.get("type")), len(self._items)
        parts: list[Part] = []
        if item_type == "function_call":
            id = words(given.get("call_id")) or words(given.get("id"))
            first, parts = self.reply.call((number,), id, words(given.get("name")))
        else:
            first = self.reply.open((number,), _KINDS.get(item_type, "other"))
        item = _Item(item_type, number, _names(given), first)
        self._items.append(item)
        self._by_name |= dict.fromkeys(item.names, item)
        if index is not None:
            self._by_index[index] = item
        return item, parts

    def _part(self, item: _Item, part: str, number: int) -> OpenBlock:
        if part == "refusal":
            self._refused = True
        key = (part, number)
        if key not in item.parts:
            more = (item.number, *key)
            item.parts[key] = self.reply.open(more, item.first.kind) if item.parts else item.first
            if part == "content":
                self._raw.append(item.parts[key])
        return item.parts[key]

    def _item_done(self, event: Mapping[str, Any]) -> list[Part]:
        given, index = mapping(event.get("item")), count(event.get("output_index"))
        known = [self._by_name.get(name) for name in _names(given)]
        known += [] if index is None else [self._by_index.get(index)]
        for item in known:
            if item is not None and item.type == given.get("type"):
                return self._settle(item, given)
        item, parts = self._open(given, index)
        return parts + self._settle(item, given)

    def _settle(self, item: _Item, given: Mapping[str, Any]) -> list[Part]:
        """Fill in what the whole item holds and its pieces did not."""
        parts: list[Part] = []
        self._open_items.discard(item.number)
        if words(given.get("status")).lower() in ("incomplete", "failed", "in_progress"):
            self._open_items.add(item.number)
        if item.type == "function_call":
            item.first.attach(attached(given))
            item.first.id = item.first.id or words(given.get("call_id"))
            item.first.name = item.first.name or words(given.get("name"))
            return self._part(item, "arguments", 0).settle(_arguments(given))
        if item.type not in _KINDS:
            return parts
        for number, piece in enumerate(items(given.get("content"))):
            if text := words(piece.get("text")):
                part = "text" if item.type == "message" else "content"
                parts += self._part(item, part, number).settle(text)
            if refusal := words(piece.get("refusal")):
                parts += self._part(item, "refusal", number).settle(refusal)
        for number, piece in enumerate(items(given.get("summary"))):
            if text := words(piece.get("text")):
                parts += self._part(item, "summary", number).settle(text)
        if item.type == "reasoning":
            item.first.signature = _seal(given) or item.first.signature
        return parts

    def _end(self, response: Mapping[str, Any], status: str) -> list[Part]:
        """The end of the reply. The status inside counts more than the name of the event."""
        told = words(response.get("status")).lower()
        status = told if told in _STATUS else status
        self.usage = read_usage(mapping(response.get("usage"))) or self.usage
        parts = self._fill(items(response.get("output")))
        if status in ("failed", "cancelled") or tells_error(response, known=True):
            error = response.get("error") or {"type": "server_error", "message": f"the response was {status}"}
            raise fault({"error": error}, self.statuses)
        if status == "incomplete":
            self.say(status)
            self._why = word_in(mapping(response.get("incomplete_details")).get("reason"))
            if stop_of(self._why) == "refusal":
                self.say(self._why)
        self.marked = True
        return parts

    def _fill(self, output: list[Mapping[str, Any]]) -> list[Part]:
        """Match the final list with what was seen, by name, else by type and order; add what was not seen."""
        left = list(self._items)
        pairs: list[tuple[Mapping[str, Any], _Item | None]] = []
        for given in output:
            names = _names(given)
            seen = next((i for i in left if i.names & names and i.type == given.get("type")), None)
            if seen is not None:
                left.remove(seen)
            pairs.append((given, seen))
        parts: list[Part] = []
        for given, seen in pairs:
            if seen is None:
                seen = next((i for i in left if i.type == given.get("type")), None)
                if seen is not None:
                    left.remove(seen)
                else:
                    seen, opened = self._open(given, None)
                    parts += opened
            parts += self._settle(seen, given)
        return parts


def _names(given: Mapping[str, Any]) -> set[str]:
    return {name for key in ("id", "call_id") if (name := words(given.get(key)))}


def _seal(given: Mapping[str, Any]) -> str | None:
    """A reasoning item as its maker wants it back, in one opaque string; None if it holds nothing."""
    kept = {key: given[key] for key in ("id", "summary", "content", "encrypted_content") if given.get(key)}
    if "encrypted_content" not in kept and "content" not in kept:
        return None
    return json.dumps({"type": "reasoning", "id": "", "summary": [], **kept}, ensure_ascii=False)


def _arguments(given: Mapping[str, Any]) -> str:
    """The arguments of a whole call, also where they come as an object."""
    arguments = given.get("arguments")
    return json.dumps(arguments, ensure_ascii=False) if isinstance(arguments, dict) else words(arguments)


PATH = "responses"


class OpenAIResponses(Wire):
    """A model behind `POST {base_url}/responses`. The base URL includes `/v1`.

    `api_key` None sends no key; `headers` are sent beside our own. Raises ValueError for a base URL or a header
    that cannot be used.
    """

    def __init__(
        self,
        model: ModelInfo,
        *,
        base_url: str,
        api_key: str | None = None,
        quirks: ResponsesQuirks | None = None,
        clock: Clock | None = None,
        headers: Mapping[str, str] | None = None,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        self._quirks = quirks or ResponsesQuirks()
        super().__init__(
            model,
            base_url=base_url.rstrip("/").removesuffix(f"/{PATH}"),
            own=bearer(api_key),
            clock=clock,
            headers=headers,
            client=client,
        )

    def stream(self, request: Request) -> AsyncGenerator[Part, None]:
        """Ask once. Parts as they arrive, `Finished` last; a fault is in it, with what came before."""
        body = responses_body(self._model, request, self._quirks)
        reader = ResponsesReader(self._model.name, output_cap(self._model, request))
        return read_reply(self._http, PATH, body, reader)
