"""The blocks of a reply while it streams, for wires whose events name the block they belong to.

Blocks stand in the order in which they began. `Assembler` does the same for wires that only add to the end.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from handrail.messages import (
    AssistantMessage,
    Failure,
    StopReason,
    Text,
    Thinking,
    ToolCall,
    Usage,
    clean,
)
from handrail.messages import Block as Finished
from handrail.providers.assemble import parse_call
from handrail.providers.base import CallDelta, CallStarted, Part, TextDelta, ThinkingDelta

Kind: TypeAlias = Literal["text", "thinking", "call", "other"]
"""`other` is what the provider keeps to itself, such as tools that it runs; it never reaches a message."""


@dataclass(slots=True)
class Block:
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


class Blocks:
    """The blocks of one reply, found by the key that the wire's events carry."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._all: list[Block] = []
        self._at: dict[Hashable, Block] = {}
        self._calls = 0

    def get(self, key: Hashable) -> Block | None:
        """The block that was opened last under `key`."""
        return self._at.get(key)

    def open(self, key: Hashable, kind: Kind, *, redacted: str | None = None) -> Block:
        """Begin a block that is no call."""
        return self._keep(key, Block(kind, redacted=redacted))

    def call(self, key: Hashable, id: str, name: str) -> tuple[Block, list[Part]]:
        """Begin a call; the block, and what to tell about it."""
        block = self._keep(key, Block("call", id=id, name=name, index=self._calls))
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

    def _keep(self, key: Hashable, block: Block) -> Block:
        self._all.append(block)
        self._at[key] = block
        return block
