"""A reply while it arrives, and the ids under which its calls go back.

There is one builder, `PartialReply`: wires use it while they read, and the loop takes from it what came when a
stream is cut. Blocks keep the order in which they began. Tool arguments are parsed once, when the message is made
(rule L4).
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
from handrail.providers.base import CallDelta, CallStarted, Part, TextDelta, ThinkingDelta

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
        return ToolCall(id, name, {}, raw, error=f"the arguments are not a JSON object but {_kind(value)}")
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
    """A block that may still grow. Its text is cleaned as it arrives (rule L11).

    `index` numbers a call in its reply. A call is announced once its name is known (`begun`); until then its
    arguments are collected in silence. `hidden` keeps the text out of the message.
    """

    kind: Kind
    pieces: list[str] = field(default_factory=list)
    id: str = ""
    name: str = ""
    index: int = 0
    begun: bool = True
    signature: str | None = None
    redacted: str | None = None
    hidden: bool = False
    _half: str = ""

    @property
    def text(self) -> str:
        """All that came so far."""
        return "".join(self.pieces) + ("\ufffd" if self._half else "")

    def add(self, piece: str) -> list[Part]:
        """Grow by `piece`; the parts that announce it."""
        if not piece or self.kind == "other":
            return []
        if self._half or not piece.isascii() or "\0" in piece:
            piece = self._cleaned(piece)
            if not piece:
                return []
        self.pieces.append(piece)
        if self.kind == "text":
            return [TextDelta(piece)]
        if self.kind == "thinking":
            return [ThinkingDelta(piece)]
        return [CallDelta(self.index, piece)] if self.begun else []

    def settle(self, whole: str) -> list[Part]:
        """Take `whole` as the full text, where the wire repeats it; the parts that announce what was missing."""
        whole = clean(whole)
        held = self.text
        if not whole or whole == held:
            return []
        if not self._half and whole.startswith(held):
            return self.add(whole[len(held) :])
        self.pieces[:], self._half = [whole], ""
        return []

    def begin(self) -> list[Part]:
        """Announce a call, with the arguments that came before its name; nothing if that was done."""
        if self.begun:
            return []
        self.begun = True
        self.id, self.name = clean(self.id), clean(self.name)
        parts: list[Part] = [CallStarted(self.index, self.id, self.name)]
        if self.pieces:
            parts.append(CallDelta(self.index, "".join(self.pieces)))
        return parts

    def sign(self, signature: str | None) -> None:
        """Add to what the model wants back with this block."""
        if signature:
            self.signature = (self.signature or "") + clean(signature)

    def finished(self) -> Block | None:
        """The block as part of a message; None when it holds nothing."""
        if self.kind == "call":
            return parse_call(clean(self.id), clean(self.name), self.text)
        text = "" if self.hidden else self.text
        if self.kind == "text" and text:
            return Text(text)
        if self.kind == "thinking" and (text or self.signature or self.redacted):
            redacted = clean(self.redacted) if self.redacted else self.redacted
            return Thinking(text, self.signature, redacted)
        return None

    def _cleaned(self, piece: str) -> str:
        """`piece` cleaned. Half a surrogate pair at its end waits for the other half in the next piece."""
        piece, self._half = self._half + piece, ""
        if "\ud800" <= piece[-1] <= "\udbff":
            piece, self._half = piece[:-1], piece[-1]
        return clean(piece)


class PartialReply:
    """One reply while it arrives. A stream passes it on in its first part, so that nobody collects a second time."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._blocks: list[OpenBlock] = []
        self._at: dict[Hashable, OpenBlock] = {}
        self._calls: list[OpenBlock] = []
        self._waiting = False  # a call that was not announced yet is there
        self._growing: OpenBlock | None = None  # the last block, while text or thinking may still join it

    def get(self, key: Hashable) -> OpenBlock | None:
        """The block that was opened last under `key`."""
        return self._at.get(key)

    def text(self, piece: str) -> list[Part]:
        """Add readable text behind what is there."""
        return self._behind("text").add(piece)

    def thinking(self, piece: str, *, signature: str | None = None) -> list[Part]:
        """Add readable thinking behind what is there, and what the model wants back with it."""
        block = self._behind("thinking")
        block.sign(signature)
        return block.add(piece)

    def close(self) -> None:
        """End the last block: what comes next begins a new one even if it is of the same kind."""
        self._growing = None

    def open(self, key: Hashable, kind: Kind, *, redacted: str | None = None) -> OpenBlock:
        """Begin a block that is not a call and has a name on the wire."""
        block = OpenBlock(kind, redacted=redacted)
        self._at[key] = block
        return self._add(block)

    def call(self, key: Hashable, id: str, name: str) -> tuple[OpenBlock, list[Part]]:
        """Begin a call whose name is whole; the block, and the parts that announce it."""
        block = self.nameless_call(key)
        block.id, block.name = id, name
        return block, self.begin(block)

    def nameless_call(self, key: Hashable) -> OpenBlock:
        """Open a call whose name is still to come; `begin` announces it."""
        block = OpenBlock("call", index=len(self._calls), begun=False)
        self._calls.append(block)
        self._at[key] = block
        self._waiting = True
        return self._add(block)

    def begin(self, call: OpenBlock | None = None) -> list[Part]:
        """Announce `call` and every call before it; all of them when none is named."""
        if not self._waiting:
            return []
        upto = self._calls if call is None else self._calls[: call.index + 1]
        parts = [part for block in upto for part in block.begin()]
        self._waiting = not all(block.begun for block in self._calls)
        return parts

    def take(self, part: Part) -> list[Part]:
        """Add a part of a stream that keeps no reply of its own; the same part, cleaned."""
        if isinstance(part, TextDelta):
            return self.text(part.text)
        if isinstance(part, ThinkingDelta):
            return self.thinking(part.text)
        if isinstance(part, CallStarted):
            return self.call(part.index, part.id, part.name)[1]
        if isinstance(part, CallDelta):
            block = self.get(part.index)
            if block is None:
                raise ValueError(f"arguments of call {part.index} came before the call itself")
            return block.add(part.text)
        return [part]

    @property
    def has_calls(self) -> bool:
        return bool(self._calls)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls so far, parsed."""
        done = (block.finished() for block in self._calls)
        return tuple(call for call in done if isinstance(call, ToolCall))

    def message(
        self,
        stop_reason: StopReason,
        *,
        usage: Usage | None = None,
        stop_detail: str | None = None,
        failure: Failure | None = None,
    ) -> AssistantMessage:
        """The reply, whole or as far as it came."""
        done = (block.finished() for block in self._blocks)
        content = tuple(block for block in done if block is not None)
        return AssistantMessage(content, stop_reason, usage, self._model, stop_detail, failure)

    def _behind(self, kind: Kind) -> OpenBlock:
        last = self._growing
        if last is not None and last.kind == kind and last.redacted is None:
            return last
        return self._add(OpenBlock(kind))

    def _add(self, block: OpenBlock) -> OpenBlock:
        self._blocks.append(block)
        self._growing = block
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
