"""Builds a reply from parts: for providers while they read a wire, and for the loop when a stream is cut.

Blocks keep the order in which they began; neighbouring pieces of one kind join. Tool arguments are parsed once,
when the message is made (rule L4).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from handrail.messages import (
    AssistantMessage,
    Block,
    Failure,
    StopReason,
    Text,
    Thinking,
    ToolCall,
    Usage,
    clean,
)


@dataclass(slots=True)
class _Words:
    kind: str
    pieces: list[str] = field(default_factory=list)
    signature: str | None = None
    redacted: str | None = None


@dataclass(slots=True)
class _Call:
    id: str
    name: str
    pieces: list[str] = field(default_factory=list)


class Assembler:
    """Collects the pieces of one reply."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._blocks: list[_Words | _Call] = []
        self._calls: dict[int, _Call] = {}

    def text(self, piece: str) -> None:
        """Add readable text."""
        self._words("text").pieces.append(piece)

    def thinking(self, piece: str, *, signature: str | None = None) -> None:
        """Add readable thinking; a signature belongs to the thinking block that is open and closes it."""
        block = self._words("thinking")
        block.pieces.append(piece)
        if signature is not None:
            block.signature = (block.signature or "") + signature

    def redacted(self, data: str) -> None:
        """Add a block of thinking that nobody can read."""
        self._blocks.append(_Words("thinking", redacted=data))

    def close(self) -> None:
        """End the open block: what comes next begins a new one even if it is of the same kind."""
        self._blocks.append(_Words("closed"))

    def call(self, index: int, id: str, name: str) -> None:
        """Begin call number `index`."""
        call = _Call(id, name)
        self._calls[index] = call
        self._blocks.append(call)

    def arguments(self, index: int, piece: str) -> None:
        """Add raw JSON to call number `index`, which must have begun."""
        self._calls[index].pieces.append(piece)

    @property
    def has_calls(self) -> bool:
        return bool(self._calls)

    def message(
        self,
        stop_reason: StopReason,
        *,
        usage: Usage | None = None,
        stop_detail: str | None = None,
        failure: Failure | None = None,
    ) -> AssistantMessage:
        """The reply, whole or as far as it came."""
        content: list[Block] = []
        for block in self._blocks:
            if isinstance(block, _Call):
                content.append(parse_call(block.id, block.name, "".join(block.pieces)))
            elif block.kind == "text":
                content.append(Text(clean("".join(block.pieces))))
            elif block.kind == "thinking":
                words = clean("".join(block.pieces))
                content.append(Thinking(words, block.signature, block.redacted))
        return AssistantMessage(tuple(content), stop_reason, usage, self._model, stop_detail, failure)

    def _words(self, kind: str) -> _Words:
        last = self._blocks[-1] if self._blocks else None
        if isinstance(last, _Words) and last.kind == kind and last.redacted is None:
            return last
        block = _Words(kind)
        self._blocks.append(block)
        return block


DEEPEST = 150
"""Levels of nesting that arguments may have: what is deeper could not be read back from a journal."""


def _deeper_than(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        level = [
            v for node in level for v in (node.values() if isinstance(node, dict) else node) if _nests(v)
        ]
        if not level:
            return False
    return True


def _nests(value: Any) -> bool:
    return isinstance(value, dict | list)


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def parse_call(id: str, name: str, raw: str) -> ToolCall:
    """A call from its raw arguments. Blank means `{}`: some providers send nothing for no arguments."""
    raw = clean(raw)
    if not raw.strip():
        return ToolCall(id, name, {}, "{}")
    try:
        value = json.loads(raw, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        return ToolCall(id, name, {}, raw, error=f"the arguments are not JSON: {error}")
    if not isinstance(value, dict):
        return ToolCall(id, name, {}, raw, error=f"the arguments are no JSON object but {_kind(value)}")
    if _deeper_than(value, DEEPEST):
        return ToolCall(id, name, {}, raw, error=f"the arguments are nested deeper than {DEEPEST} levels")
    return ToolCall(id, name, _clean(value), raw)


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
