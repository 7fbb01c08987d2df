"""A chat-completions stream, read into a reply.

Makers of this wire agree on little beyond text, so each of their ways is read: reasoning under six names,
content as a list, calls whose index, id or name is missing, late or used again, calls in further choices, usage in
four places, errors in the middle of a 200. Nothing here raises, whatever comes.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from handrail.clock import Clock
from handrail.messages import AssistantMessage, Failure, StopReason
from handrail.providers._calls import is_whole, same_arguments
from handrail.providers._chat_request import ChatQuirks, chat_body
from handrail.providers._evidence import (
    StreamFault,
    attached,
    count,
    fault,
    first_text,
    items,
    mapping,
    merged,
    name_set,
    read_usage,
    readable,
    tells_error,
    text_name,
    words,
)
from handrail.providers._stops import is_full_window, is_known, says_nothing, stop_of, word_in
from handrail.providers._streaming import ReplyReader, read_reply
from handrail.providers.assemble import OpenBlock
from handrail.providers.base import ModelInfo, Part, Request
from handrail.providers.http import Wire, bearer

_EVENT_KEYS = name_set(
    """
    id object created model choices usage system_fingerprint service_tier provider obfuscation x_groq
    prompt_filter_results type
    """
)
_CHOICE_KEYS = name_set(
    """
    index delta message finish_reason logprobs native_finish_reason content_filter_results usage
    """
)
_DELTA_KEYS = name_set(
    """
    role content tool_calls reasoning_content reasoning refusal function_call annotations
    """
)
_THOUGHTS = ("reasoning_content", "reasoning", "reasoning_text", "thinking", "thought", "thoughts")
_NOT_OURS = ("tool", "function")  # roles of results that a gateway repeats in its reply


@dataclass(slots=True)
class _Choice:
    """One of the choices of a reply: all are parts of one answer, because one was asked for.

    `hasty`: content came behind its finish word. `claim`: a word on the last piece of such a choice.
    """

    number: int
    word: str = ""
    claim: str = ""
    hasty: bool = False
    calls: list[OpenBlock] = field(default_factory=list)
    by_index: dict[int, OpenBlock] = field(default_factory=dict)
    text: OpenBlock | None = None
    grew: bool = False


class ChatReader(ReplyReader):
    """Folds the events of one reply. A finish word makes it whole: some servers leave out the end mark."""

    def __init__(self, model: str) -> None:
        super().__init__(model)
        self._choices: dict[int, _Choice] = {}
        self._attached: dict[str, Any] = {}
        self._refused = False

    def feed(self, event: Mapping[str, Any]) -> Iterable[Part]:
        """What one event adds. Raises StreamFault for an error told in the stream, behind what came with it."""
        choices = event.get("choices")
        if choices.__class__ is list and len(choices) == 1 and (block := self._plain(event, choices[0])):
            return block.add(choices[0]["delta"]["content"])
        parts: list[Part] = []
        if isinstance(choices, dict):
            choices = [choices]
        grew = False
        if choices and isinstance(choices, list):
            for place, choice in enumerate(choices):
                if isinstance(choice, dict):
                    grew |= self._choice(choice, place, parts)
        counted = self._count(event)
        if grew:
            self.marked = self.counted = False
        elif counted:
            self._confirm()
            self.counted = bool(self.word)
        told = self._error(event, choices)
        return parts if told is None else _then(parts, told)

    def _plain(self, event: Mapping[str, Any], given: Any) -> OpenBlock | None:
        """The text that an event does nothing but continue, as most events do; None for any other event."""
        if given.__class__ is not dict or given.get("finish_reason") is not None or self.marked:
            return None
        delta, index = given.get("delta"), given.get("index")
        if delta.__class__ is not dict or index.__class__ is not int or not event.keys() <= _EVENT_KEYS:
            return None
        choice, content = self._choices.get(index), delta.get("content")
        if choice is None or choice.word or choice.hasty or content.__class__ is not str or not content:
            return None
        plain = delta.keys() <= _PLAIN_DELTA and given.keys() <= _PLAIN_CHOICE
        if not plain or event.get("usage") or event.get("x_groq") or event.get("type") == "error":
            return None
        block = choice.text
        return block if block is not None and self.reply.grows(block) else None

    def whole(self, body: Mapping[str, Any]) -> Iterable[Part] | None:
        """The same for a server that answers with one completion and no stream."""
        if not items(body.get("choices")) and not tells_error(body):
            return None
        return self.feed(body)

    def message(self, failure: Failure | None) -> AssistantMessage:
        """The reply as far as it came, an error when there is a failure.

        A reply that was cut by length stays so when an error behind it only explains the cut.
        """
        reason = self.stop_reason()
        if failure is not None and reason != "length":
            reason = "error"
        if self._attached and reason != "error":
            self.reply.close()
            self.reply.thinking("", signature=json.dumps(self._attached, ensure_ascii=False))
        _drop_repeats([choice.text for choice in self._choices.values() if choice.text is not None])
        detail = self.word or None
        return self.reply.message(reason, usage=self.usage, stop_detail=detail, failure=failure)

    def meaning(self, word: str) -> StopReason:
        """A full window is no cut on this wire: more output would not help, so recovery must compact (rule R3)."""
        return "error" if is_full_window(word) else super().meaning(word)

    def stop_reason(self) -> StopReason:
        reason = super().stop_reason()
        return "refusal" if self._refused and reason != "length" else reason

    def _choice(self, given: Mapping[str, Any], place: int, parts: list[Part]) -> bool:
        """Add one choice of an event; whether it held content."""
        number = count(given.get("index"))
        if number is None:
            number = place
        choice = self._choices.get(number)
        if choice is None:
            choice = self._choices[number] = _Choice(number)
        before, choice.grew = len(parts), False
        delta, message = given.get("delta"), given.get("message")
        if delta and isinstance(delta, dict):
            self._delta(choice, delta, parts)
        if message and isinstance(message, dict):
            self._delta(choice, message, parts, whole=True)
        if text := given.get("text"):
            self._text(choice, words(text), parts)  # the older completions wire
        grew = choice.grew or len(parts) > before
        if grew and choice.word:
            choice.word = ""  # content came behind the word: it was not the end (rule W2)
            choice.hasty = True
        if grew and choice.hasty:
            choice.claim = ""
            self.word = self._word()
        self._count(given)
        word = given.get("finish_reason")
        if word is None:
            word = given.get("finishReason")
        if word is not None:
            self._end(choice, word, given.get("native_finish_reason"), grew=grew)
        elif grew and self.word:
            self.word = self._word()
        return grew

    def _end(self, choice: _Choice, word: Any, native: Any, *, grew: bool) -> None:
        """Take over the finish word of a choice. The model's own word counts where it says worse than the wire's."""
        said, own = word_in(word), word_in(native)
        if says_nothing(said):
            self.spoilt = self.spoilt or bool(said)
            return
        if stop_of(said) == "stop" and is_known(own) and stop_of(own) not in ("stop", "tool_use"):
            said = own
        if choice.hasty and grew and stop_of(said) in ("stop", "tool_use"):
            choice.claim = said  # this server says it with each piece: only usage or the end mark confirms it
            return
        choice.word = said
        self.word = self._word()

    def _confirm(self) -> None:
        """Usage came behind the last piece: a finish word that stood on that piece was meant."""
        for choice in self._choices.values():
            choice.word = choice.word or choice.claim
        self.word = self._word()

    def _word(self) -> str:
        """The finish word of the reply: none while a choice lacks its own, else the one that says the worst."""
        said = [choice.word for choice in self._choices.values()]
        return max(said, key=lambda word: _WORST.index(stop_of(word))) if said and all(said) else ""

    def _delta(
        self, choice: _Choice, delta: Mapping[str, Any], parts: list[Part], *, whole: bool = False
    ) -> None:
        content = delta.get("content")
        if delta.get("role") in _NOT_OURS:
            return
        self._thought(delta, parts)
        if content and isinstance(content, str):
            self._text(choice, content, parts, whole=whole)
        elif isinstance(content, (list, dict)):
            self._content_list(choice, content if isinstance(content, list) else [content], parts)
        refusal = delta.get("refusal")
        if refusal and isinstance(refusal, str):
            self._refused = True
            self._text(choice, refusal, parts)
        calls = delta.get("tool_calls") or delta.get("toolCalls")
        for fragment in [calls] if isinstance(calls, dict) else calls if isinstance(calls, list) else ():
            if isinstance(fragment, dict):
                self._fragment(choice, fragment, parts)
        legacy = delta.get("function_call")
        if isinstance(legacy, dict) and legacy and not calls:
            self._fragment(choice, {"index": 0, "function": legacy}, parts)
        if not delta.keys() <= _DELTA_KEYS and (more := attached(delta)):
            self._attached = merged(self._attached, more)

    def _thought(self, delta: Mapping[str, Any], parts: list[Part]) -> None:
        thought = first_text(delta, _THOUGHTS)
        if not thought:
            details = delta.get("reasoning_details") or delta.get("thinking_blocks")
            thought = readable(details) if details else ""
        if thought:
            if self.reply.has_calls:
                parts += self.reply.begin()
            parts += self.reply.thinking(thought)

    def _text(self, choice: _Choice, piece: str, parts: list[Part], *, whole: bool = False) -> None:
        if self.reply.has_calls:
            parts += self.reply.begin()
        block = choice.text
        if block is None or not self.reply.grows(block):
            if whole and block is not None and piece.startswith(block.text):
                parts += block.settle(piece)
                return
            block = choice.text = self.reply.text_block(len(self._choices) > 1)
        told = block.settle(piece) if whole else block.add(piece)
        parts += told
        choice.grew = choice.grew or bool(told) or not whole

    def _content_list(self, choice: _Choice, content: list[Any], parts: list[Part]) -> None:
        """Mistral's way: a list of text and of thinking, whose thinking is a list of text again."""
        for block in content:
            if isinstance(block, str):
                self._text(choice, block, parts)
            if not isinstance(block, dict) or "tool" in words(block.get("type")):
                continue
            if thought := readable(block.get("thinking")):
                parts += [*self.reply.begin(), *self.reply.thinking(thought)]
            if text := words(block.get("text")):
                self._text(choice, text, parts)

    def _fragment(self, choice: _Choice, fragment: Mapping[str, Any], parts: list[Part]) -> None:
        choice.grew = True
        function = mapping(fragment.get("function") or fragment.get("custom"))
        if not function and "name" in fragment:
            function = fragment
        id, name = text_name(fragment.get("id") or fragment.get("call_id")), words(function.get("name"))
        arguments = function.get("arguments")
        if arguments is None:
            arguments = function.get("parameters") or function.get("input") or fragment.get("arguments")
        if isinstance(arguments, (dict, list)):
            arguments = json.dumps(arguments, ensure_ascii=False)
        piece = words(arguments)
        call = self._call_for(choice, count(fragment.get("index")), id, name, piece)
        call.id = call.id or id
        if not call.begun and name != call.name:
            call.name += name
        more = attached(fragment)
        if inner := attached(function) if function is not fragment else None:
            more["function"] = inner
        call.attach(more)
        if piece:
            parts += call.add(piece)
            if call.name and not call.begun:
                parts += self.reply.begin(call)  # at the first argument the name is whole

    def _call_for(self, choice: _Choice, index: int | None, id: str, name: str, piece: str) -> OpenBlock:
        """The call that a fragment belongs to: by its index, else its id, else the last one; or a new one."""
        calls, last = choice.calls, choice.calls[-1] if choice.calls else None
        if index is not None:
            known = choice.by_index.get(index)
            if known is None and last is not None and not id and not name and not last.pieces:
                known = choice.by_index[index] = last  # a nameless entry holds the arguments of the last call
        elif id:
            known = next((call for call in calls if call.id == id), None)
            if known is None and last is not None and not last.id and not name:
                known = last
            if known is not None and name and _is_another(known, piece):
                known = None
        else:
            known = last
        if known is not None and not _is_followed_by(known, id, name):
            return known
        call = self.reply.nameless_call(("call", choice.number, len(calls)))
        calls.append(call)
        if index is not None:
            choice.by_index[index] = call
        return call

    def _count(self, holder: Mapping[str, Any]) -> bool:
        """Take over the tokens that `holder` counts, if it does."""
        usage = holder.get("usage")
        if usage is None and "x_groq" in holder:
            usage = mapping(holder["x_groq"]).get("usage")
        found = read_usage(usage) if isinstance(usage, dict) else None
        self.usage = found or self.usage
        return found is not None

    def _error(self, event: Mapping[str, Any], choices: object) -> StreamFault | None:
        """The error that an event tells of, if any; an event of no known shape is kept as evidence."""
        if choices and isinstance(choices, list):
            for choice in choices:
                if isinstance(choice, dict) and (error := _choice_error(choice)) is not None:
                    return fault(error, self.statuses)
            if not event.keys() <= _EVENT_KEYS and tells_error(event, known=True):
                return fault(event, self.statuses)
            return None
        if event.keys() <= _EVENT_KEYS and event.get("object") != "error" and event.get("type") != "error":
            return None
        if tells_error(event, known=bool(event.get("usage") or "prompt_filter_results" in event)):
            return fault(event, self.statuses)
        self.unknown({key: value for key, value in event.items() if key not in _EVENT_KEYS})
        return None


_PLAIN_DELTA = frozenset(("content", "role"))
_PLAIN_CHOICE = frozenset(("index", "delta", "finish_reason", "logprobs"))
_WORST = ("stop", "tool_use", "aborted", "length", "refusal", "error")


def _is_followed_by(call: OpenBlock, id: str, name: str) -> bool:
    """Whether a fragment at the same place is another call: it names one anew, with another id or when this one has
    whole arguments."""
    if not name:
        return False
    if id and call.id:
        return id != call.id
    return bool(call.pieces) and is_whole(call.pieces)


def _is_another(call: OpenBlock, piece: str) -> bool:
    """Whether a fragment with the id of `call` is another call: the arguments of both are whole, and differ."""
    if not is_whole(call.pieces) or not is_whole([piece]):
        return False
    return not same_arguments(call.pieces, [piece])


def _choice_error(choice: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The error inside a choice, its delta or its message."""
    for holder, usual in (
        (choice, _CHOICE_KEYS),
        (mapping(choice.get("delta")), _DELTA_KEYS),
        (mapping(choice.get("message")), _DELTA_KEYS),
    ):
        if not holder.keys() <= usual and tells_error(holder, known=True):
            return {"error": holder["error"]} if holder.get("error") else holder
    return None


def _drop_repeats(blocks: list[OpenBlock]) -> None:
    """Hide what a further choice only repeats."""
    seen: set[str] = set()
    for block in blocks:
        text = block.text
        block.hidden = text in seen
        seen.add(text)


def _then(parts: list[Part], told: StreamFault) -> Iterator[Part]:
    yield from parts
    raise told


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
