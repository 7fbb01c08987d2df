"""A chat-completions stream, read into a reply.

Makers of this wire agree on little beyond text, so each of their ways is read: reasoning under three names,
content as a list, calls whose index, id or name is missing, late or used again, usage in four places, errors
in the middle of a 200. Nothing here raises, whatever comes.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from typing import Any

import httpx
from pydantic_core import from_json

from handrail.clock import Clock
from handrail.messages import AssistantMessage, Failure, StopReason, Usage, clean
from handrail.providers.assemble import OpenBlock, PartialReply
from handrail.providers.base import ModelInfo, Part, Request
from handrail.providers.chat_request import ChatQuirks, chat_body
from handrail.providers.http import Wire, bearer
from handrail.providers.streaming import StreamFault, count, fault, mapping, read_reply, words

STOPS: dict[str, StopReason] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "tool_use": "tool_use",
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "content_filter": "refusal",
    "refusal": "refusal",
    "safety": "refusal",
    "sensitive": "refusal",
    "error": "error",
    "network_error": "error",
    "insufficient_system_resource": "error",
    "model_context_window_exceeded": "error",
}


class ChatReader:
    """Folds the events of one reply. A stop reason makes it whole: some servers leave out the end mark."""

    def __init__(self, model: str) -> None:
        self.reply = PartialReply(model)
        self.done = False
        self._calls: list[OpenBlock] = []
        self._by_index: dict[int, OpenBlock] = {}
        self._details: list[dict[str, Any]] = []
        self._usage: Usage | None = None
        self._refused = False
        self._stop: str | None = None

    @property
    def ended(self) -> bool:
        return self.done or self._stop is not None

    @property
    def bad_end(self) -> str | None:
        """The stop reason where it names a fault of the server."""
        return f"finish_reason: {self._stop}" if STOPS.get(self._stop or "") == "error" else None

    def end_mark(self) -> None:
        """The stream said `[DONE]`."""
        self.done = True

    def feed(self, event: Mapping[str, Any]) -> Iterable[Part]:
        """What one event adds. Raises StreamFault for an error told in the stream, behind what came with it."""
        parts: list[Part] = []
        self._count(event)
        choice = _first_choice(event)
        if choice is not None:
            self._choice(choice, parts)
        told = _error(event, choice)
        return parts if told is None else _then(parts, fault(told, {}))

    def whole(self, body: Mapping[str, Any]) -> Iterable[Part] | None:
        """The same for a server that answers with one completion and no stream."""
        if _first_choice(body) is None and _error(body, None) is None:
            return None
        return self.feed(body)

    def message(self, failure: Failure | None) -> AssistantMessage:
        """The reply as far as it came, an error when there is a failure.

        A reply that was cut by length stays so when an error behind it only explains the cut.
        """
        reason = self._stop_reason()
        if failure is not None and reason != "length":
            reason = "error"
        if self._details and reason != "error":
            self.reply.thinking("", signature=json.dumps(self._details, ensure_ascii=False))
        return self.reply.message(reason, usage=self._usage, stop_detail=self._stop, failure=failure)

    def _stop_reason(self) -> StopReason:
        reason = STOPS.get(self._stop or "", "stop")
        if self._refused and reason != "length":
            return "refusal"
        if reason in ("stop", "tool_use"):
            return "tool_use" if self.reply.has_calls else "stop"
        return reason

    def _choice(self, choice: Mapping[str, Any], parts: list[Part]) -> None:
        delta = choice.get("delta") or choice.get("message")
        if isinstance(delta, dict):
            self._delta(delta, parts)
        self._count(choice)
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self._stop = clean(reason)

    def _delta(self, delta: dict[str, Any], parts: list[Part]) -> None:
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        details = delta.get("reasoning_details")
        if isinstance(details, list) and details:
            thought = self._keep_details(details, thought)
        if thought and isinstance(thought, str):
            self._thinking(thought, parts)
        content = delta.get("content")
        if content and isinstance(content, str):
            self._text(content, parts)
        elif isinstance(content, list):
            self._content_list(content, parts)
        refusal = delta.get("refusal")
        if refusal and isinstance(refusal, str):
            self._refused = True
            self._text(refusal, parts)
        calls = delta.get("tool_calls")
        if isinstance(calls, list):
            for fragment in calls:
                if isinstance(fragment, dict):
                    self._fragment(fragment, parts)
        legacy = delta.get("function_call")
        if isinstance(legacy, dict):
            self._fragment({"index": 0, "function": legacy}, parts)

    def _text(self, piece: str, parts: list[Part]) -> None:
        if self._calls:
            parts += self.reply.begin()
        parts += self.reply.text(piece)

    def _thinking(self, piece: str, parts: list[Part]) -> None:
        if self._calls:
            parts += self.reply.begin()
        parts += self.reply.thinking(piece)

    def _content_list(self, content: list[Any], parts: list[Part]) -> None:
        """Mistral's way: a list of text and of thinking, whose thinking is a list of text again."""
        for block in content:
            if not isinstance(block, dict):
                continue
            inner = block.get("thinking")
            pieces = inner if isinstance(inner, list) else [inner]
            for piece in pieces:
                thought = piece.get("text") if isinstance(piece, dict) else piece
                if thought and isinstance(thought, str):
                    self._thinking(thought, parts)
            text = block.get("text")
            if text and isinstance(text, str):
                self._text(text, parts)

    def _keep_details(self, details: list[Any], thought: Any) -> Any:
        """OpenRouter's way: details to send back as they came, the pieces of one joined. Their words are the
        thinking when there is no other."""
        readable = []
        for detail in details:
            if not isinstance(detail, dict):
                continue
            readable.append(words(detail.get("text") or detail.get("summary")))
            last = self._details[-1] if self._details else None
            if last is not None and all(last.get(k) == detail.get(k) for k in ("type", "index")):
                for key, value in detail.items():
                    joins = key in ("text", "summary", "data") and isinstance(last.get(key), str)
                    if joins and isinstance(value, str):
                        last[key] += value
                    elif value is not None:
                        last[key] = value
            else:
                self._details.append(dict(detail))
        return thought or "".join(readable)

    def _fragment(self, fragment: Mapping[str, Any], parts: list[Part]) -> None:
        function = mapping(fragment.get("function"))
        id, name = words(fragment.get("id")), words(function.get("name"))
        call = self._call_for(fragment.get("index"), id, name)
        call.id = call.id or id
        if not call.begun and name != call.name:
            call.name += name
        arguments = function.get("arguments")
        if isinstance(arguments, (dict, list)):
            arguments = json.dumps(arguments, ensure_ascii=False)
        if piece := words(arguments):
            parts += call.add(piece)
            if call.name and not call.begun:
                parts += self.reply.begin(call)  # at the first argument the name is whole

    def _call_for(self, index: Any, id: str, name: str) -> OpenBlock:
        """The call that a fragment belongs to: by its index, else its id, else the last one; or a new one."""
        if isinstance(index, int):
            known = self._by_index.get(index)
        elif id:
            known = next((c for c in self._calls if c.id == id), None)
            last = self._calls[-1] if self._calls else None
            if known is None and last is not None and not last.id and not name:
                known = last
        else:
            known = self._calls[-1] if self._calls else None
        if known is not None and not _is_followed_by(known, id, name):
            return known
        call = self.reply.nameless_call(("call", len(self._calls)))
        self._calls.append(call)
        if isinstance(index, int):
            self._by_index[index] = call
        return call

    def _count(self, holder: Mapping[str, Any]) -> None:
        usage = holder.get("usage")
        if usage is None and "x_groq" in holder:
            usage = mapping(holder["x_groq"]).get("usage")
        if isinstance(usage, dict):
            self._usage = read_usage(usage) or self._usage


def _is_followed_by(call: OpenBlock, id: str, name: str) -> bool:
    """Whether a fragment at the same place is another call: it names one anew, with another id or when this one has
    whole arguments."""
    if not name:
        return False
    if id and call.id:
        return id != call.id
    return bool(call.pieces) and isinstance(_json(call.text), dict)


def _json(text: str) -> Any:
    try:
        return from_json(text)
    except ValueError:
        return None


def _first_choice(event: Mapping[str, Any]) -> Mapping[str, Any] | None:
    choices = event.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    return choice if isinstance(choice, dict) else None


def _then(parts: list[Part], told: StreamFault) -> Iterator[Part]:
    yield from parts
    raise told


def _error(event: Mapping[str, Any], choice: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The error that an event tells of, if any."""
    error = event.get("error") or (choice.get("error") if choice is not None else None)
    if error:
        return {"error": error}
    return event if "error" in (event.get("object"), event.get("type")) else None


def read_usage(usage: dict[str, Any]) -> Usage | None:
    """Tokens of a reply; None when nothing was counted. `input` leaves out what a cache gave or took."""
    details, said = (
        mapping(usage.get("prompt_tokens_details")),
        mapping(usage.get("completion_tokens_details")),
    )
    reasoning = count(said.get("reasoning_tokens")) or 0
    prompt, output = count(usage.get("prompt_tokens")) or 0, count(usage.get("completion_tokens")) or 0
    if reasoning and count(usage.get("total_tokens")) == prompt + output + reasoning:
        output += reasoning  # xAI counts reasoning beside the completion, the others inside it
    read = count(details.get("cached_tokens"))
    read = read or count(usage.get("prompt_cache_hit_tokens")) or count(usage.get("cached_tokens")) or 0
    written = count(details.get("cache_write_tokens")) or 0
    if not prompt and not output:
        return None
    return Usage(max(0, prompt - read - written), output, read, written)


PATH = "chat/completions"


class OpenAIChat(Wire):
    """A model behind `POST {base_url}/chat/completions`. The base URL includes `/v1`.

    `api_key` None sends no key; `headers` are sent beside our own. Raises ValueError for a base URL or a header
    that cannot be used.
    """

    def __init__(
        self,
        model: ModelInfo,
        *,
        base_url: str,
        api_key: str | None = None,
        quirks: ChatQuirks | None = None,
        clock: Clock | None = None,
        headers: Mapping[str, str] | None = None,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        self._quirks = quirks or ChatQuirks()
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
        body = chat_body(self._model, request, self._quirks)
        return read_reply(self._http, PATH, body, ChatReader(self._model.name))
