"""Tool calls: their arguments as servers send them, and the ids and names under which they go back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from handrail.messages import ToolCall, clean, deeper_than

DEEPEST = 150
"""Levels of nesting that arguments may have: what is deeper could not be read back from a journal."""
MAX_VALUES = 8  # JSON values in a row that are looked at; a server that repeats arguments sends two
_SPACE = re.compile(r"\s*")


def parse_call(id: str, name: str, raw: str | Sequence[str], *, signature: str | None = None) -> ToolCall:
    """A call from its raw arguments, in one piece or in the pieces that came (rules L4, W5).

    Blank means `{}`: some providers send nothing for no arguments. The same object sent twice counts once, also where
    one of the two is JSON text in quotes, and where each piece repeats what came before it. Different objects are an
    error of the call, and so is anything behind the object.
    """
    pieces = [raw] if isinstance(raw, str) else raw
    text = clean("".join(pieces))
    if not text.strip():
        return ToolCall(id, name, {}, "{}", signature=signature)
    try:
        value, text = _object(text)
    except (ValueError, RecursionError) as error:
        whole = _grown(pieces)
        if whole is None:
            return ToolCall(id, name, {}, text, f"the arguments are not JSON: {error}", signature)
        value, text = whole
    if not isinstance(value, dict):
        return ToolCall(
            id, name, {}, text, f"the arguments are not a JSON object but {_kind(value)}", signature
        )
    if deeper_than(value, DEEPEST):
        return ToolCall(
            id, name, {}, text, f"the arguments are nested deeper than {DEEPEST} levels", signature
        )
    return ToolCall(id, name, _clean(value), text, signature=signature)


def is_whole(pieces: Sequence[str]) -> bool:
    """Whether the pieces of arguments make up at least one JSON object."""
    text = "".join(pieces)
    if not text.rstrip().endswith("}"):
        return False
    try:
        return isinstance(_object(text)[0], dict)
    except (ValueError, RecursionError):
        return False


def same_arguments(held: Sequence[str], more: Sequence[str]) -> bool:
    """Whether the pieces of two arguments make up the same object."""
    first, second = parse_call("", "", held), parse_call("", "", more)
    return not first.error and not second.error and _same(first.arguments) == _same(second.arguments)


def _object(text: str) -> tuple[Any, str]:
    """The value of arguments and its JSON text. Raises ValueError for text that is not JSON or says two things."""
    try:
        return json.loads(
            text, parse_constant=_no_constant
        ), text  # JSON text in quotes alone is no object (rule S2)
    except json.JSONDecodeError as error:
        values = _values(text, error)
    unquoted = [_unquoted(value, source) for value, source in values]
    first = unquoted[0]
    if len(unquoted) > 1:
        if not all(isinstance(value, dict) for value, _ in unquoted):
            raise ValueError("there is more than one JSON value")
        if any(_same(value) != _same(first[0]) for value, _ in unquoted):
            raise ValueError("they were sent twice, and the two differ")
    return first


def _values(text: str, error: json.JSONDecodeError) -> list[tuple[Any, str]]:
    """The JSON values that stand in a row. Raises `error` when anything else stands there."""
    decoder, found, at = json.JSONDecoder(parse_constant=_no_constant), list[tuple[Any, str]](), 0
    while at < len(text):
        if len(found) == MAX_VALUES:
            raise error
        start = _end_of_space(text, at)
        if start == len(text):
            break
        try:
            value, at = decoder.raw_decode(text, start)
        except json.JSONDecodeError:
            raise error from None
        found.append((value, text[start:at]))
    return found


def _end_of_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _unquoted(value: Any, source: str) -> tuple[Any, str]:
    """The object inside JSON text that was put in quotes once more."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", '"'):
        try:
            return _object(value)
        except (ValueError, RecursionError):
            pass
    return value, source


def _grown(pieces: Sequence[str]) -> tuple[dict[str, Any], str] | None:
    """The last piece, where each piece repeats all that came before it."""
    said = [piece for piece in pieces if piece]
    if len(said) < 2 or not all(later.startswith(piece) for piece, later in pairwise(said)):
        return None
    try:
        value = json.loads(said[-1], parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None
    return (value, said[-1]) if isinstance(value, dict) else None


def _same(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def _kind(value: Any) -> str:
    names = {str: "a string", bool: "a boolean", int: "a number", float: "a number", list: "an array"}
    return names.get(type(value), "null")


def _clean(value: Any) -> Any:
    """Replace what `\\ud800` escapes let in (rule L11)."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_clean(v) for v in value]
    if isinstance(value, dict):
        return {clean(k): _clean(v) for k, v in value.items()}
    return value


LIMIT = 64
_SIGNED = "__thought__"  # LiteLLM's mark of a signature inside an id
_REFUSED = re.compile(r"[^a-zA-Z0-9_-]")


def given_with(signature: str | None) -> dict[str, Any]:
    """What a provider attached, as it goes back; empty when the signature is of another wire (rule W4)."""
    try:
        held = json.loads(signature or "{}")
    except ValueError:
        return {}
    if isinstance(held, list):
        return {"reasoning_details": held}  # journals up to 0.3 kept nothing else
    return held if isinstance(held, dict) and not held.get("type") else {}


class CallIds:
    """Ids for the wire of at most `limit` characters, asked for in the order of the history.

    An id that carries a signature goes back to its own model as it came (rule W4).
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._taken: set[str] = set()
        self._now: dict[str, str] = {}

    def reply(self, calls: Iterable[ToolCall], *, own: bool = False) -> None:
        """The calls of the next reply: results that follow belong to these. `own`: of the model that is asked."""
        for call in calls:
            signed = own and _SIGNED in call.id and call.id not in self._taken
            self._now[call.id] = call.id if signed else self._free(call.id)
            self._taken.add(self._now[call.id])

    def of(self, call_id: str) -> str:
        """The id on the wire of a call, for the call itself and for its result."""
        if call_id not in self._now:
            self._now[call_id] = self._free(call_id)
        return self._now[call_id]

    def _free(self, call_id: str) -> str:
        plain = _REFUSED.sub("_", call_id)[: self._limit] or "call"
        wire, n = plain, 1
        while wire in self._taken:
            n += 1
            mark = f"_{n}"
            wire = plain[: self._limit - len(mark)] + mark
        self._taken.add(wire)
        return wire


def wire_name(name: str) -> str:
    """A tool's name as wires accept it: a model may have called one that does not exist."""
    return _REFUSED.sub("_", name)[:LIMIT] or "unknown"
