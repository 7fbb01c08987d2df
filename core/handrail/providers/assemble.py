"""Builds a reply from parts: for providers while they read a wire, and for the loop when a stream is cut.

Blocks keep the order in which they began; neighbouring pieces of one kind join. Tool arguments are parsed once,
when the message is made (rule L4).
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

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
from handrail.messages import Block as Finished
from handrail.providers.base import CallDelta, CallStarted, Part, TextDelta, ThinkingDelta


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


Kind: TypeAlias = Literal["text", "thinking", "call", "other"]
"""`other` is what the provider keeps to itself, such as tools that it runs; it never reaches a message."""


@dataclass(slots=True)
class OpenBlock:
    """A block that may still grow.

    `index` numbers a call in its reply. `hidden` keeps the text out of the message.
    """

    kind: Kind
    pieces: list[str] = field(default_factory=list)
    id: str = ""
    name: str = ""
    index: int = 0
    signature: str | None = None
    redacted: str | None = None
    hidden: bool = False

    @property
    def text(self) -> str:
        """All that came so far."""
        return "".join(self.pieces)

    def add(self, piece: str) -> list[Part]:
        """Grow by `piece`; what to tell about it."""
        if not piece or self.kind == "other":
            return []
        self.pieces.append(piece)
        piece = clean(piece)
        if self.kind == "call":
            return [CallDelta(self.index, piece)]
        return [TextDelta(piece) if self.kind == "text" else ThinkingDelta(piece)]

    def settle(self, whole: str) -> list[Part]:
        """Take `whole` as the full text, where the wire repeats it; what was missing so far is told."""
        held = self.text
        if not whole or whole == held:
            return []
        if whole.startswith(held):
            return self.add(whole[len(held) :])
        self.pieces[:] = [whole]
        return []

    def finished(self) -> Finished | None:
        """The block as part of a message; None when it holds nothing."""
        if self.kind == "call":
            return parse_call(clean(self.id), clean(self.name), self.text)
        text = "" if self.hidden else clean(self.text)
        if self.kind == "text" and text:
            return Text(text)
        if self.kind == "thinking" and (text or self.signature or self.redacted):
            signature, redacted = (value and clean(value) for value in (self.signature, self.redacted))
            return Thinking(text, signature, redacted)
        return None


class OpenBlocks:
    """The blocks of one reply, found by the key that the wire's events carry."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._all: list[OpenBlock] = []
        self._at: dict[Hashable, OpenBlock] = {}
        self._calls = 0

    def get(self, key: Hashable) -> OpenBlock | None:
        """The block that was opened last under `key`."""
        return self._at.get(key)

    def open(self, key: Hashable, kind: Kind, *, redacted: str | None = None) -> OpenBlock:
        """Begin a block that is no call."""
        return self._keep(key, OpenBlock(kind, redacted=redacted))

    def call(self, key: Hashable, id: str, name: str) -> tuple[OpenBlock, list[Part]]:
        """Begin a call; the block, and what to tell about it."""
        block = self._keep(key, OpenBlock("call", id=id, name=name, index=self._calls))
        self._calls += 1
        return block, [CallStarted(block.index, clean(id), clean(name))]

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls so far, parsed."""
        done = (block.finished() for block in self._all if block.kind == "call")
        return tuple(call for call in done if isinstance(call, ToolCall))

    def message(
        self,
        stop_reason: StopReason,
        *,
        usage: Usage | None,
        stop_detail: str | None,
        failure: Failure | None,
    ) -> AssistantMessage:
        """The reply, whole or as far as it came."""
        done: Iterable[Finished | None] = (block.finished() for block in self._all)
        content = tuple(block for block in done if block is not None)
        return AssistantMessage(content, stop_reason, usage, self._model, stop_detail, failure)

    def _keep(self, key: Hashable, block: OpenBlock) -> OpenBlock:
        self._all.append(block)
        self._at[key] = block
        return block


LIMIT = 64
_REFUSED = re.compile(r"[^a-zA-Z0-9_-]")


class CallIds:
    """Ids for the wire of at most `limit` characters, asked for in the order of the history."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._taken: set[str] = set()
        self._now: dict[str, str] = {}

    def reply(self, calls: Iterable[ToolCall]) -> None:
        """The calls of the next reply: results that follow belong to these."""
        for call in calls:
            self._now[call.id] = self._free(call.id)

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
