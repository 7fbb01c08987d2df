"""A reply while it arrives.

There is one builder, `PartialReply`: wires use it while they read, and the loop takes from it what came when a
stream is cut. Blocks keep the order in which they began. Tool arguments are parsed once, when the message is made
(rule L4).
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping
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
from handrail.providers._calls import parse_call
from handrail.providers._evidence import merged
from handrail.providers._thoughts import LiveThought, split_thought
from handrail.providers.base import CallDelta, CallStarted, Part, TextDelta, ThinkingDelta

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
    _live: LiveThought | None = None

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
            return [TextDelta(piece)] if self._live is None else self._told(self._live, piece)
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

    def expect_tags(self) -> None:
        """Look for a thought between tags at the beginning (rule W5)."""
        self._live = LiveThought()

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

    def attach(self, more: Mapping[str, Any]) -> None:
        """Add to what the provider attached to this call (rule W4)."""
        if more:
            held = json.loads(self.signature) if self.signature else {}
            self.signature = json.dumps(merged(held, more), ensure_ascii=False)

    def flush(self) -> list[Part]:
        """Announce what was held back because it could have been the beginning of a tag."""
        if self._live is None:
            return []
        live, self._live = self._live, None
        return [_DELTAS[kind](text) for kind, text in live.finish()]

    def finished(self) -> Iterable[Block]:
        """The block as it stands in a message; nothing when it is empty. A thought between tags stands by itself."""
        if self.kind == "call":
            pieces = [*self.pieces, "\ufffd"] if self._half else self.pieces
            yield parse_call(clean(self.id), clean(self.name), pieces, signature=self.signature)
            return
        text = "" if self.hidden else self.text
        if self.kind == "text" and text:
            thought, text = split_thought(text)
            if thought:
                yield Thinking(thought)
            if text:
                yield Text(text)
        if self.kind == "thinking" and (text or self.signature or self.redacted):
            redacted = clean(self.redacted) if self.redacted else self.redacted
            yield Thinking(text, self.signature, redacted)

    def _told(self, live: LiveThought, piece: str) -> list[Part]:
        parts: list[Part] = [_DELTAS[kind](text) for kind, text in live.feed(piece)]
        if live.settled:
            self._live = None
        return parts

    def _cleaned(self, piece: str) -> str:
        """`piece` cleaned. Half a surrogate pair at its end waits for the other half in the next piece."""
        piece, self._half = self._half + piece, ""
        if "\ud800" <= piece[-1] <= "\udbff":
            piece, self._half = piece[:-1], piece[-1]
        return clean(piece)


_DELTAS: dict[str, type[TextDelta] | type[ThinkingDelta]] = {"text": TextDelta, "thinking": ThinkingDelta}


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

    def text_block(self, apart: bool) -> OpenBlock:
        """The text that may still grow; a new block where there is none, or where it is to stand `apart`."""
        return self._add(OpenBlock("text")) if apart else self._behind("text")

    def grows(self, block: OpenBlock) -> bool:
        """Whether nothing of another kind came behind a block of text."""
        return self._growing is not None and self._growing.kind == block.kind

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

    def finish(self) -> list[Part]:
        """Announce what was held back; nothing more comes."""
        return self.begin() + [part for block in self._blocks for part in block.flush()]

    @property
    def has_calls(self) -> bool:
        return bool(self._calls)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls so far, parsed."""
        done = (made for block in self._calls for made in block.finished())
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
        content = tuple(made for block in self._blocks for made in block.finished())
        return AssistantMessage(content, stop_reason, usage, self._model, stop_detail, failure)

    def _behind(self, kind: Kind) -> OpenBlock:
        last = self._growing
        if last is not None and last.kind == kind and last.redacted is None:
            return last
        return self._add(OpenBlock(kind))

    def _add(self, block: OpenBlock) -> OpenBlock:
        if block.kind == "text":
            block.expect_tags()
        self._blocks.append(block)
        self._growing = block
        return block
