"""From a request to parts, for wires whose reply ends with an event of its own.

A fault of any kind is the failure of the reply, never an exception: a refused connection, a status, a broken
stream, an error told inside a good reply, an end that came too early (rule K1).
"""

from __future__ import annotations

import json
import math
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from typing import Any, Protocol

from pydantic_core import from_json

from handrail.messages import AssistantMessage, Failure, clean
from handrail.providers.base import Finished, Part
from handrail.providers.http import Http, HttpFailure
from handrail.providers.sse import ServerEvent

TAIL_S = 0.5  # how long the end of a stream is awaited once its reply is whole
SHOWN = 500  # characters of an unreadable event that a failure quotes


class StreamFault(Exception):
    """The reply tells of an error, or cannot be read. `status` is the HTTP status that the error means."""

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.status = status


class Reader(Protocol):
    """Folds the events of one reply. `terminal` names the event that makes it whole; `done`: it came."""

    terminal: str
    done: bool

    def feed(self, event: Mapping[str, Any]) -> Iterable[Part]:
        """What one event adds. Raises StreamFault for an error told in the stream."""
        ...

    def whole(self, body: Mapping[str, Any]) -> Iterable[Part]:
        """The same for a server that answers with one body and no stream."""
        ...

    def message(self, failure: Failure | None) -> AssistantMessage:
        """The reply as far as it came."""
        ...


async def read_reply(
    http: Http, path: str, body: Mapping[str, Any], reader: Reader
) -> AsyncGenerator[Part, None]:
    """Post `body` and read the reply; the last part is `Finished`. Closing ends the request (rule L9)."""
    for note in http.notes():
        yield note
    failure: Failure | None = None
    try:
        async with http.post(path, body) as reply:
            try:
                async with aclosing(reply.events()) as events:
                    async for event in events:
                        if reader.done:
                            continue  # read to the end, so that the connection can be used again
                        for part in _parts(reader, event):
                            yield part
                        if reader.done:
                            reply.ending(TAIL_S)
                if not reader.done:
                    failure = reply.failure(f"the stream ended before {reader.terminal} came")
            except StreamFault as fault:
                failure = reply.failure(clean(fault.text), status=fault.status)
    except HttpFailure as error:
        failure = error.failure
    yield Finished(reader.message(None if reader.done else failure))


def _parts(reader: Reader, event: ServerEvent) -> Iterable[Part]:
    if event.data == "[DONE]" or not event.data:
        return ()
    try:
        data = _parsed(event.data)
    except (ValueError, RecursionError):
        if event.event == "error":
            raise StreamFault(event.data) from None
        raise StreamFault(f"the stream ended in an event that is not JSON: {event.data[:SHOWN]}") from None
    if not isinstance(data, dict):
        raise StreamFault(f"the stream ended in an event that is no JSON object: {event.data[:SHOWN]}")
    if event.event == "body":
        return reader.whole(data)
    if "type" not in data and event.event:
        data["type"] = event.event
    return reader.feed(data)


def _parsed(text: str) -> Any:
    """JSON at the speed of pydantic's parser, which is stricter; what it refuses the standard one may still read."""
    try:
        return from_json(text)
    except ValueError:
        return json.loads(text)


def fault(event: Mapping[str, Any], statuses: Mapping[str, int]) -> StreamFault:
    """An error event as a fault: its whole JSON, and the status that its type or code means."""
    error = event.get("error") or event
    status = None
    if isinstance(error, dict):
        for word in (error.get("code"), error.get("status"), error.get("type")):
            number = count(word)
            if number is not None and 400 <= number <= 599:
                status = number
            elif isinstance(word, str):
                status = statuses.get(word)
            if status is not None:
                break
    return StreamFault(json.dumps(event, ensure_ascii=False), status)


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
    """`value` as a number of things, None if it is none."""
    if type(value) is int and value >= 0:
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if math.isfinite(value) and value >= 0 else None
