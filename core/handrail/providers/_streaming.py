"""From a request to parts: what all wires share of reading a reply. Each wire brings a `ReplyReader` of its protocol.

A fault of any kind is the failure of the reply, never an exception: a refused connection, a status, a broken
stream, an error told inside a good reply, an end that came too early (rule K1). Whether a reply is whole is decided
here, for all wires alike (rules W1, W2).
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from enum import IntEnum
from typing import Any, ClassVar, Final

from pydantic_core import from_json

from handrail.messages import AssistantMessage, Failure, StopReason, Usage, clean
from handrail.providers._evidence import (
    MAX_ERROR,
    StreamFault,
    fault,
    tells_error,
    text_tells_error,
    words,
)
from handrail.providers._http_reply import HttpFailure, HttpReply
from handrail.providers._sse import BARE, ServerEvent
from handrail.providers._stops import is_known, promises_calls, says_nothing, stop_of, word_in
from handrail.providers.assemble import PartialReply
from handrail.providers.base import Finished, Part, Started
from handrail.providers.http import Http

SILENCE_S = 10.0  # without anything but pings behind a finish word: the reply is whole
USAGE_S = 5.0  # what may follow usage: the end mark
TAIL_S = 0.5  # what may follow the end mark or an error: more evidence, and the end of the body
SHOWN = 2000  # characters of an unreadable event that a failure quotes
SHORT = 32  # characters; a longer event holds more than a single word
MAX_NOTES = 20  # words of no known shape that are quoted when the reply fails

CUT = "the stream ended before the reply was finished"
_SPACE: Final = re.compile(r"\s*")
_PINGS: Final = frozenset(("", "ping", "pong", "null", "keepalive", "keep-alive", "keep alive", "heartbeat"))


class State(IntEnum):
    """How far a reply is. `SAID`: a finish word stands at its end. `COUNTED`: usage came behind it. `MARKED`: the end
    mark of the wire came."""

    OPEN = 0
    SAID = 1
    COUNTED = 2
    MARKED = 3


def _patience(state: State) -> float | None:
    """Seconds that a reply in `state` is waited for; None for as long as it takes."""
    return {State.SAID: SILENCE_S, State.COUNTED: USAGE_S, State.MARKED: TAIL_S}.get(state)


class ReplyReader(ABC):
    """Folds the events of one reply: what one protocol means, and nothing of how a stream is read.

    `reply` is the reply as far as it came. A finish word counts only as the last thing that is said: content behind it
    takes it back, and the end mark as well (rule W2).
    """

    statuses: ClassVar[Mapping[str, int]] = {}
    """HTTP statuses that names of errors mean on this wire."""

    def __init__(self, model: str) -> None:
        self.reply = PartialReply(model)
        self.notes: list[str] = []
        self.word = ""
        self.marked = False
        self.counted = False
        self.spoilt = False  # a word that means nothing, such as "null", stood where the finish word belongs
        self.usage: Usage | None = None

    @property
    def closed(self) -> bool:
        """Whether all that was begun was ended, where the wire says so."""
        return True

    @property
    def state(self) -> State:
        """How far the reply is."""
        if self.marked and (self.word or not self.spoilt):
            return State.MARKED
        if not self.word or not self.closed:
            return State.OPEN
        return State.COUNTED if self.counted else State.SAID

    def say(self, value: Any) -> None:
        """Take over a finish word. One that says nothing is none."""
        word = word_in(value)
        if not word:
            return
        if says_nothing(word):
            self.spoilt = True
        else:
            self.word = word

    def revoke(self) -> None:
        """Content came: what was said about the end before it was not the end."""
        self.word, self.marked, self.counted = "", False, False

    def meaning(self, word: str) -> StopReason:
        """What a finish word means on this wire. No word at all, where only the end mark came, means a good end."""
        return stop_of(word) if word else "stop"

    def stop_reason(self) -> StopReason:
        """What the finish word means beside what came. A reply that was only marked as ended ended well."""
        reason = self.meaning(self.word)
        if reason in ("stop", "tool_use"):
            return "tool_use" if self.reply.has_calls else "stop"
        return reason

    def bad_end(self) -> str | None:
        """Why the finish word does not finish a reply; None where it does (rule W1)."""
        if not self.word:
            return None
        if promises_calls(self.word) and not self.reply.has_calls and not self.has_foreign_calls:
            return f"the stream ended with finish_reason {self.word}, but no tool call came"
        if self.meaning(self.word) == "error":
            known = "" if is_known(self.word) else ", which is not known"
            return f"the stream ended with finish_reason {self.word}{known}"
        return None

    @property
    def has_foreign_calls(self) -> bool:
        """Whether the provider called tools of its own, which never reach us."""
        return False

    def end_mark(self) -> None:
        """The stream said `[DONE]`: the end where the reply is whole, whatever the wire's own mark is."""
        self.marked = True

    @abstractmethod
    def feed(self, event: Mapping[str, Any]) -> Iterable[Part]:
        """What one event adds. Raises StreamFault for an error told in the stream."""

    @abstractmethod
    def whole(self, body: Mapping[str, Any]) -> Iterable[Part] | None:
        """The same for a server that answers with one body and no stream; None for one of no known shape."""

    @abstractmethod
    def message(self, failure: Failure | None) -> AssistantMessage:
        """The reply as far as it came; `failure` is what ended it early."""

    def unknown(self, event: Mapping[str, Any]) -> tuple[Part, ...]:
        """An event of no known shape: an error if it tells of one, else evidence for when the reply fails."""
        if tells_error(event):
            raise fault(event, self.statuses)
        if words(event.get("type")) not in _PINGS:
            self.note(json.dumps(event, ensure_ascii=False))
        return ()

    def note(self, text: str) -> None:
        """Keep words that are part of the failure if the reply fails (rule W3)."""
        if len(self.notes) < MAX_NOTES and (text := clean(text.strip())[:SHOWN]):
            self.notes.append(text)


async def read_reply(
    http: Http, path: str, body: Mapping[str, Any], reader: ReplyReader
) -> AsyncGenerator[Part, None]:
    """Post `body` and read the reply; the last part is `Finished`. Closing ends the request (rule L9).

    An error that the stream tells of is the failure of the reply, whatever follows it. A stream that breaks is one
    unless the end mark or usage came behind the finish word; one that ends, unless a finish word stands at its end.
    """
    for notice in http.notes():
        yield notice
    yield Started(reader.reply)
    told: Failure | None = None
    cut: Failure | None = None
    try:
        async with http.post(path, body) as reply:
            enough = State.SAID
            cut = reply.failure(CUT)
            state = State.OPEN
            try:
                async with aclosing(reply.events()) as events:
                    async for event in events:
                        parts: list[Part] = []
                        try:
                            for part in read_event(reader, event):
                                parts.append(part)
                                yield part
                        except StreamFault as found:
                            if told is None:
                                told = reply.failure(clean(found.text), status=found.status)
                                reply.ending(TAIL_S, last=True)
                            elif found.text not in told.text:
                                reader.note(found.text)
                        if told is None and (state or reader.word or reader.marked):
                            state = _watch(reply, reader, state, moved=bool(parts))
            except HttpFailure as error:
                cut, enough = error.failure, State.COUNTED
            if reader.state >= enough:
                cut = None
            if told is None and cut is None and (why := reader.bad_end()) is not None:
                told = reply.failure(why)
    except HttpFailure as error:
        cut = error.failure
    for part in reader.reply.finish():
        yield part
    yield Finished(reader.message(_with_notes(told or cut, reader.notes)))


def _watch(reply: HttpReply, reader: ReplyReader, before: State, *, moved: bool) -> State:
    """Set how long the rest of the stream is waited for: from the last content, longer than any pause in a reply."""
    state = reader.state
    if state is not before or (moved and state):
        reply.ending(_patience(state), last=state is State.MARKED)
    return state


def _with_notes(failure: Failure | None, notes: list[str]) -> Failure | None:
    """The failure, with the words of no known shape that came beside it."""
    more = "\n".join(note for note in notes if failure is not None and note not in failure.text)
    if failure is None or not more:
        return failure
    text = f"{failure.text}\n{more}"[:MAX_ERROR]
    return Failure(text, failure.provider, failure.phase, failure.status, failure.headers)


def read_event(reader: ReplyReader, event: ServerEvent) -> Iterable[Part]:
    """What one event of a stream adds. Raises StreamFault for one that tells of an error or cannot be read."""
    text = event.data
    if len(text) < SHORT and (word := text.strip()).lower() in _PINGS | {"[done]"}:
        if word.upper() == "[DONE]":
            reader.end_mark()
        return ()
    try:
        data = _parsed(text)
    except (ValueError, RecursionError):
        return _unparsed(reader, event)
    if isinstance(data, str) and data != text:
        return read_event(reader, ServerEvent(event.event, data))  # JSON in quotes
    if isinstance(data, list) and len(data) > 1:
        return _each(reader, event.event, data)
    if isinstance(data, list) and data:
        data = data[0]  # an error of Google's compatible wire comes in a list
    if not isinstance(data, dict):
        return _words(reader, event.event, text)
    return _object(reader, event.event, data)


def _object(reader: ReplyReader, name: str, data: dict[str, Any]) -> Iterable[Part]:
    if name == "error":
        raise fault(data, reader.statuses)
    if name == "body":
        parts = reader.whole(data)
        if parts is None:
            raise fault(data, reader.statuses)
        return parts
    if name and name != BARE and "type" not in data:
        data["type"] = name
    return reader.feed(data)


def _each(reader: ReplyReader, name: str, data: list[Any]) -> Iterable[Part]:
    """Several events in one: an error among them is told behind what the others add."""
    found: StreamFault | None = None
    for item in data:
        try:
            if isinstance(item, dict):
                yield from _object(reader, "" if name == "body" else name, item)
            elif isinstance(item, str):
                yield from read_event(reader, ServerEvent(name, item))
        except StreamFault as error:
            found = found or error
    if found is not None:
        raise found


def _unparsed(reader: ReplyReader, event: ServerEvent) -> Iterable[Part]:
    """Several values in one event, or words that are no JSON at all."""
    values = _values(event.data)
    if values is None:
        return _words(reader, event.event, event.data)
    return _each(reader, event.event, values)


def _values(text: str) -> list[Any] | None:
    """The JSON values that stand in a row, end marks among them; None when anything else stands there."""
    decoder, found, at = json.JSONDecoder(), list[Any](), 0
    while (start := _SPACE.match(text, at).end()) < len(text):  # type: ignore[union-attr]
        if text.startswith("[DONE]", start):
            found.append("[DONE]")
            at = start + len("[DONE]")
            continue
        try:
            value, at = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            return None
        found.append(value)
    return found if len(found) > 1 and any(isinstance(value, dict) for value in found) else None


def _words(reader: ReplyReader, name: str, text: str) -> Iterable[Part]:
    """Words instead of an event. They fail the reply where they speak of an error or are the rest of an event."""
    if name == "error" or text_tells_error(text):
        raise StreamFault(text[:MAX_ERROR])
    if text.lstrip()[:1] in ("{", "[") and reader.state is State.OPEN:
        raise StreamFault(f"the stream ended in an event that is not JSON: {text[:SHOWN]}")
    reader.note(text)
    return ()


def _parsed(text: str) -> Any:
    """JSON at the speed of pydantic's parser, which is stricter; what it refuses the standard one may still read."""
    try:
        return from_json(text)
    except ValueError:
        return json.loads(text)
