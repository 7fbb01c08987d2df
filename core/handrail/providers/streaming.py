"""From a request to parts: what all wires share of reading a stream. Each wire brings a `Reader` of its protocol.

A fault of any kind is the failure of the reply, never an exception: a refused connection, a status, a broken
stream, an error told inside a good reply, an end that came too early (rule K1).
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from typing import Any, Protocol

from pydantic_core import from_json

from handrail.messages import AssistantMessage, Failure, clean
from handrail.providers.assemble import PartialReply
from handrail.providers.base import Finished, Part, Started
from handrail.providers.http import Http, HttpFailure
from handrail.providers.sse import ServerEvent

USAGE_S = 5.0  # what may follow a stop reason: usage, the end mark
TAIL_S = (
    0.5  # what may follow the end mark or an error: the end of the body, so that the connection serves again
)
SHOWN = 2000  # characters of an unreadable event that a failure quotes
MAX_ERROR = 64 * 1024  # characters of an error that are kept
SHORT = 32  # characters; a longer event holds more than a single word
MAX_COUNT = 10**12  # a larger count of tokens is not one

CUT = "the stream ended before the reply was finished"


class StreamFault(Exception):
    """The reply tells of an error, or cannot be read. `status` is the HTTP status that the error means."""

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.status = status


class Reader(Protocol):
    """Folds the events of one reply: what one protocol means, and nothing of how a stream is read.

    `reply` is the reply as far as it came. `done`: the end mark came, nothing more is read. `ended`: the stop reason
    came, so the reply is whole even if the stream breaks; usage may follow.
    """

    reply: PartialReply
    done: bool

    @property
    def ended(self) -> bool: ...

    @property
    def bad_end(self) -> str | None:
        """What the stop reason says where it means a fault; None when it does not."""
        ...

    def end_mark(self) -> None:
        """The stream said `[DONE]`, which means something on one wire only."""
        ...

    def feed(self, event: Mapping[str, Any]) -> Iterable[Part]:
        """What one event adds. Raises StreamFault for an error told in the stream."""
        ...

    def whole(self, body: Mapping[str, Any]) -> Iterable[Part] | None:
        """The same for a server that answers with one body and no stream; None for one of no known shape."""
        ...

    def message(self, failure: Failure | None) -> AssistantMessage:
        """The reply as far as it came; `failure` is what ended it early."""
        ...


async def read_reply(
    http: Http, path: str, body: Mapping[str, Any], reader: Reader
) -> AsyncGenerator[Part, None]:
    """Post `body` and read the reply; the last part is `Finished`. Closing ends the request (rule L9).

    An error that the stream tells of is the failure of the reply. A stream that breaks is one only while the reply
    is not whole.
    """
    for notice in http.notes():
        yield notice
    yield Started(reader.reply)
    told: Failure | None = None
    cut: Failure | None = None
    try:
        async with http.post(path, body) as reply:
            try:
                async with aclosing(reply.events()) as events:
                    async for event in events:
                        if reader.done or told is not None:
                            continue  # read to the end, so that the connection can be used again
                        try:
                            for part in read_event(reader, event):
                                yield part
                        except StreamFault as fault:
                            told = reply.failure(clean(fault.text), status=fault.status)
                        if reader.done or told is not None:
                            reply.ending(TAIL_S)
                        elif reader.ended:
                            reply.ending(USAGE_S)
                cut = reply.failure(CUT)
            except HttpFailure as error:
                cut = error.failure
            if told is None and reader.bad_end is not None:
                told = reply.failure(reader.bad_end)
    except HttpFailure as error:
        cut = error.failure
    for part in reader.reply.begin():
        yield part
    yield Finished(reader.message(told or (None if reader.ended else cut)))


def read_event(reader: Reader, event: ServerEvent) -> Iterable[Part]:
    """What one event of a stream adds. Raises StreamFault for one that tells of an error or cannot be read."""
    text = event.data
    if len(text) < SHORT and (word := text.strip()) in ("", "null", "[DONE]"):
        if word == "[DONE]":
            reader.end_mark()
        return ()
    try:
        data = _parsed(text)
    except (ValueError, RecursionError):
        data = None
    if isinstance(data, list) and data:
        data = data[0]  # an error of Google's compatible wire comes in a list
    if not isinstance(data, dict):
        if event.event == "error":
            raise StreamFault(text[:MAX_ERROR])
        if reader.ended:
            return ()
        raise StreamFault(f"the stream ended in an event that is not JSON: {text[:SHOWN]}")
    if event.event == "body":
        parts = reader.whole(data)
        if parts is None:
            raise StreamFault(text[:MAX_ERROR])
        return parts
    if event.event and "type" not in data:
        data["type"] = event.event
    return reader.feed(data)


def _parsed(text: str) -> Any:
    """JSON at the speed of pydantic's parser, which is stricter; what it refuses the standard one may still read."""
    try:
        return from_json(text)
    except ValueError:
        return json.loads(text)


def fault(event: Mapping[str, Any], statuses: Mapping[str, int]) -> StreamFault:
    """An error event as a fault: its JSON, and the status that one of its fields is or, by `statuses`, means."""
    error = event.get("error") or event
    found = None
    if isinstance(error, dict):
        named = (error.get(key) for key in ("status_code", "code", "status", "error_code", "type"))
        found = next((s for word in named if (s := _status(word, statuses)) is not None), None)
    return StreamFault(json.dumps(event, ensure_ascii=False)[:MAX_ERROR], found)


def _status(word: object, statuses: Mapping[str, int]) -> int | None:
    if isinstance(word, str) and word.isascii() and word.isdigit():
        word = int(word[:4])
    number = count(word)
    if number is not None:
        return number if 400 <= number <= 599 else None
    return statuses.get(word) if isinstance(word, str) else None


def tells_error(event: Mapping[str, Any]) -> bool:
    """Whether an event is an error, whatever its shape."""
    return event.get("type") == "error" or bool(event.get("error"))


# What follows reads values that nobody promised: a wrong type counts as absent.


def mapping(value: object) -> Mapping[str, Any]:
    """`value` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[Mapping[str, Any]]:
    """The objects of `value` if it is a list, else none."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def words(value: object) -> str:
    """`value` if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def count(value: object) -> int | None:
    """`value` as a count; None if it is not one."""
    if type(value) is int and 0 <= value < MAX_COUNT:
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if 0 <= value < MAX_COUNT else None
