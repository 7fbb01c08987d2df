"""A chat-completions stream, read into a reply.

Makers of this wire agree on little beyond text, so each of their ways is read: reasoning under three names,
content as a list, calls whose index, id or name is missing, late or used again, usage in four places, errors
in the middle of a 200. Nothing here raises, whatever comes.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

import httpx
from pydantic_core import from_json

from handrail.clock import Clock
from handrail.messages import AssistantMessage, Failure, StopReason, Usage, clean
from handrail.providers.assemble import Assembler
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
from handrail.providers.chat_request import ChatQuirks, chat_body
from handrail.providers.http import HttpFailure, Reply, Wire, bearer
from handrail.providers.sse import ServerEvent

MAX_ERROR = 64 * 1024  # characters of an error that are kept
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
    """Reads events of one stream. `parts = read(event)` as they come, then `message(failure)` once."""

    def __init__(self, model: str) -> None:
        self._reply = Assembler(model)
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._details: list[dict[str, Any]] = []
        self._usage: Usage | None = None
        self._refused = False
        self.finish_reason: str | None = None
        self.done = False
        self.error: str | None = None
        self.error_status: int | None = None

    @property
    def whole(self) -> bool:
        """Whether the stream said that the reply is complete."""
        return self.done or self.finish_reason is not None

    def read(self, event: ServerEvent) -> list[Part]:
        """The parts that `event` adds."""
        data = event.data
        if self.error is not None:
            return []
        if data == "[DONE]" or data.strip() == "[DONE]":
            self.done = True
            return []
        chunk = parse(data)
        if isinstance(chunk, list) and chunk:
            chunk = chunk[0]  # an error of Google's compatible wire comes in a list
        if not isinstance(chunk, dict):
            if data.strip() not in ("", "null") and not self.whole:
                self.error = f"the stream ended in an event that is not JSON: {clean(data[:2000])}"
            return []
        parts: list[Part] = []
        self._count(chunk)
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if isinstance(choice, dict):
            self._choice(choice, parts)
        fault = _fault(chunk, choice, event.event)
        if fault is not None:
            self.error, self.error_status = fault
        elif event.event == "body" and not isinstance(choice, dict):
            self.error = clean(data[:MAX_ERROR])
        return parts

    def message(
        self, failure: Failure | None, fault: Failure | None = None
    ) -> tuple[list[Part], AssistantMessage]:
        """The last parts and the reply. `failure` is what ended the stream, `fault` what it told of in-band.

        A stream that broke off behind its finish reason is whole. A reply that was cut by length stays so
        when an error behind it only explains the cut.
        """
        parts: list[Part] = []
        self._flush(parts)
        reason: StopReason
        if fault is not None and self.finish_reason is not None and STOPS.get(self.finish_reason) == "length":
            reason, failure = "length", fault
        elif fault is not None:
            reason, failure = "error", fault
        elif self.whole:
            reason, failure = self._stop_reason(), None
        else:
            reason = "error"
        if self._details and reason != "error":
            self._reply.thinking("", signature=json.dumps(self._details, ensure_ascii=False))
        return parts, self._reply.message(
            reason, usage=self._usage, stop_detail=self.finish_reason, failure=failure
        )

    def _stop_reason(self) -> StopReason:
        reason = STOPS.get(self.finish_reason or "", "stop")
        if self._refused and reason != "length":
            return "refusal"
        if reason in ("stop", "tool_use"):
            return "tool_use" if self._reply.has_calls else "stop"
        return reason

    def _choice(self, choice: dict[str, Any], parts: list[Part]) -> None:
        delta = choice.get("delta") or choice.get("message")
        if isinstance(delta, dict):
            self._delta(delta, parts)
        self._count(choice)
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self.finish_reason = reason

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
            self._flush(parts)
        self._reply.text(piece)
        parts.append(TextDelta(clean(piece)))

    def _thinking(self, piece: str, parts: list[Part]) -> None:
        if self._calls:
            self._flush(parts)
        self._reply.thinking(piece)
        parts.append(ThinkingDelta(clean(piece)))

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
            words = detail.get("text") or detail.get("summary")
            if isinstance(words, str):
                readable.append(words)
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

    def _fragment(self, fragment: dict[str, Any], parts: list[Part]) -> None:
        function = fragment.get("function")
        function = function if isinstance(function, dict) else {}
        id, name = _str(fragment.get("id")), _str(function.get("name"))
        call = self._call_for(fragment.get("index"), id, name)
        call.id = call.id or id
        if not call.started and name != call.name:
            call.name += name
        arguments = function.get("arguments")
        if isinstance(arguments, (dict, list)):
            arguments = json.dumps(arguments, ensure_ascii=False)
        piece = _str(arguments)
        if piece:
            call.arguments.append(piece)
            if call.name:
                self._start(call, parts)
                call.send(self._reply, parts)

    def _call_for(self, index: Any, id: str, name: str) -> _Call:
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
        if known is not None and not known.is_followed_by(id, name):
            return known
        call = _Call(len(self._calls))
        self._calls.append(call)
        if isinstance(index, int):
            self._by_index[index] = call
        return call

    def _start(self, call: _Call, parts: list[Part]) -> None:
        """Begin `call` in the reply, and before it every call that came before it."""
        for earlier in self._calls[: call.number + 1]:
            earlier.start(self._reply, parts)

    def _flush(self, parts: list[Part]) -> None:
        for call in self._calls:
            call.start(self._reply, parts)
            call.send(self._reply, parts)

    def _count(self, holder: dict[str, Any]) -> None:
        usage = holder.get("usage")
        if usage is None and "x_groq" in holder and isinstance(holder["x_groq"], dict):
            usage = holder["x_groq"].get("usage")
        if isinstance(usage, dict):
            self._usage = read_usage(usage) or self._usage


class _Call:
    """A call while its fragments come. It begins in the reply at its first argument: the name is whole."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []
        self.started = False
        self._sent = 0

    def is_followed_by(self, id: str, name: str) -> bool:
        """Whether a fragment at the same place is another call: it names one anew, with another id or when
        this one has whole arguments."""
        if not name:
            return False
        if id and self.id:
            return id != self.id
        return bool(self.arguments) and isinstance(parse("".join(self.arguments)), dict)

    def start(self, reply: Assembler, parts: list[Part]) -> None:
        if not self.started:
            self.started = True
            self.id, self.name = clean(self.id), clean(self.name)
            reply.call(self.number, self.id, self.name)
            parts.append(CallStarted(self.number, self.id, self.name))

    def send(self, reply: Assembler, parts: list[Part]) -> None:
        if piece := "".join(self.arguments[self._sent :]):
            self._sent = len(self.arguments)
            reply.arguments(self.number, piece)
            parts.append(CallDelta(self.number, clean(piece)))


def parse(text: str) -> Any:
    """JSON, or None for what is none. The fast parser refuses lone surrogates; the slow one lets them in."""
    try:
        return from_json(text)
    except ValueError:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return None


def _str(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _fault(chunk: dict[str, Any], choice: Any, event: str) -> tuple[str, int | None] | None:
    """The error that a chunk tells of, as JSON text, and its status if it names one."""
    error: Any = chunk.get("error")
    if not error and isinstance(choice, dict):
        error = choice.get("error")
    if not error and (event == "error" or chunk.get("object") == "error" or chunk.get("type") == "error"):
        error = chunk
    if not error:
        return None
    status = None
    if isinstance(error, dict):
        named = (error.get(key) for key in ("status_code", "status", "code", "error_code"))
        status = next((s for s in map(_status, named) if s is not None), None)
    text = json.dumps({"error": error} if error is not chunk else error, ensure_ascii=False)
    return clean(text[:MAX_ERROR]), status


def _status(value: Any) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value[:4])
    return value if isinstance(value, int) and not isinstance(value, bool) and 400 <= value < 600 else None


def read_usage(usage: dict[str, Any]) -> Usage | None:
    """Tokens of a reply; None when nothing was counted. `input` leaves out what a cache gave or took."""
    details = usage.get("prompt_tokens_details")
    details = details if isinstance(details, dict) else {}
    said = usage.get("completion_tokens_details")
    reasoning = _tokens(said.get("reasoning_tokens")) if isinstance(said, dict) else 0
    prompt, output = _tokens(usage.get("prompt_tokens")), _tokens(usage.get("completion_tokens"))
    if reasoning and _tokens(usage.get("total_tokens")) == prompt + output + reasoning:
        output += reasoning  # xAI counts reasoning beside the completion, the others inside it
    read = _tokens(details.get("cached_tokens"))
    read = read or _tokens(usage.get("prompt_cache_hit_tokens")) or _tokens(usage.get("cached_tokens"))
    written = _tokens(details.get("cache_write_tokens"))
    if not prompt and not output:
        return None
    return Usage(max(0, prompt - read - written), output, read, written)


def _tokens(value: Any) -> int:
    """A count; anything else, infinity and negative numbers included, counts as nothing."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e12:
        return 0
    return int(value)


USAGE_S = 5.0  # what may follow the finish reason: usage, the end mark
END_S = (
    0.5  # what may follow the end mark or an error: the end of the body, so that the connection serves again
)


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
            base_url=base_url.rstrip("/").removesuffix("/chat/completions"),
            own=bearer(api_key),
            clock=clock,
            headers=headers,
            client=client,
        )

    async def stream(self, request: Request) -> AsyncIterator[Part]:
        """Ask once. Parts as they arrive, `Finished` last; a fault is in it, with what came before."""
        reader = ChatReader(self._model.name)
        failure: Failure | None = None
        fault: Failure | None = None
        body = chat_body(self._model, request, self._quirks)
        for note in self._http.notes():
            yield note
        try:
            async with (
                self._http.post("chat/completions", body) as reply,
                aclosing(reply.events()) as events,
            ):
                async for event in events:
                    for part in reader.read(event):
                        yield part
                    if reader.done or reader.error is not None:
                        reply.ending(END_S)
                    elif reader.whole:
                        reply.ending(USAGE_S)
                fault = _told(reader, reply)
                failure = reply.failure("the stream ended before the reply was finished")
        except HttpFailure as stopped:
            failure = stopped.failure
        parts, message = reader.message(failure, fault)
        for part in parts:
            yield part
        yield Finished(message)


def _told(reader: ChatReader, reply: Reply) -> Failure | None:
    """The failure that the stream itself told of, if any."""
    if reader.error is not None:
        return reply.failure(reader.error, status=reader.error_status)
    if STOPS.get(reader.finish_reason or "") == "error":
        return reply.failure(f"finish_reason: {reader.finish_reason}")
    return None
