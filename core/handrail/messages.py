"""Messages: content blocks, messages, stop reasons, usage, and a failure as plain data.

Everything here is frozen: a message never changes (rule J1 starts here). `--json` prints and the journal stores
these same fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

StopReason: TypeAlias = Literal["stop", "tool_use", "length", "refusal", "error", "aborted"]
Phase: TypeAlias = Literal["connect", "response", "stream"]
Origin: TypeAlias = Literal["person", "checkpoint", "summary", "note"]
FailureClass: TypeAlias = Literal[
    "transient",
    "usage_limit",
    "auth",
    "billing",
    "content_filter",
    "context_overflow",
    "output_truncated",
    "invalid_request",
    "empty",
    "cancelled",
    "unknown",
]
"""What a failed model call is (rule K2)."""

FAILURE_WORDS: Final[Mapping[str, str]] = {
    "transient": "connection or server error",
    "usage_limit": "usage limit reached",
    "auth": "the provider refused the key",
    "billing": "the account cannot pay",
    "content_filter": "blocked by the provider's filter",
    "context_overflow": "the context window is full",
    "output_truncated": "the reply was cut off",
    "invalid_request": "the provider refused the request",
    "empty": "the reply was empty",
    "cancelled": "cancelled",
    "unknown": "unknown reason",
}
"""The classes in words for a person."""


@dataclass(frozen=True, slots=True)
class Text:
    """Readable text."""

    text: str
    type: Literal["text"] = "text"


@dataclass(frozen=True, slots=True)
class Thinking:
    """A model's reasoning.

    `text` is what a person may read. `signature` is opaque to everyone but the model that made it and is
    replayed to that model only. `redacted` holds the provider's encrypted form of hidden reasoning.
    """

    text: str = ""
    signature: str | None = None
    redacted: str | None = None
    type: Literal["thinking"] = "thinking"


@dataclass(frozen=True, slots=True)
class Image:
    """An image, base64-encoded."""

    data: str
    media_type: str
    type: Literal["image"] = "image"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call of a reply.

    `arguments` is the parsed object, `{}` when `raw` (the JSON text as the model wrote it) does not parse
    to an object; then `error` says why (rule L4). A call with an `error` is never executed. `signature` is what the
    provider attached to the call, opaque to everyone but the model that made it (rule W4).
    """

    id: str
    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    raw: str = "{}"
    error: str | None = None
    signature: str | None = None
    type: Literal["tool_call"] = "tool_call"


Content: TypeAlias = Text | Image
Block: TypeAlias = Text | Thinking | ToolCall


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one reply or a sum of them. `input` leaves out what was read from or written to a cache."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
        )

    @property
    def total(self) -> int:
        """All tokens, cached ones included."""
        return self.input + self.output + self.cache_read + self.cache_write

    @property
    def context(self) -> int:
        """Tokens that the model read for this reply, cached ones included."""
        return self.input + self.cache_read + self.cache_write


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed model call as plain data (rule K1). Header names are lower case; none holds a key (rule J5).

    `text` is the response body, or the error message if there was no body.
    """

    text: str
    provider: str | None = None
    phase: Phase = "response"
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UserMessage:
    """A message of role user. `origin` distinguishes a person's words from ours (checkpoint, summary, note)."""

    content: tuple[Content, ...]
    origin: Origin = "person"
    role: Literal["user"] = "user"

    @property
    def text(self) -> str:
        return text_of(self.content)


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """A reply of a model, finished or broken.

    `model` is `provider/name`, so that signatures go back only to their maker. `stop_detail` is the provider's
    own word for the stop (`pause_turn`, `max_tokens`, …). `failure` is set when stop_reason is `error`.
    """

    content: tuple[Block, ...] = ()
    stop_reason: StopReason = "stop"
    usage: Usage | None = None
    model: str = ""
    stop_detail: str | None = None
    failure: Failure | None = None
    role: Literal["assistant"] = "assistant"

    @property
    def text(self) -> str:
        return text_of(self.content)

    @property
    def thinking(self) -> str:
        return "".join(b.text for b in self.content if isinstance(b, Thinking))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple([b for b in self.content if isinstance(b, ToolCall)])


@dataclass(frozen=True, slots=True)
class ToolMessage:
    """The result of one call. It follows directly after the reply with the call, in call order (rule L5)."""

    call_id: str
    name: str
    content: tuple[Content, ...]
    is_error: bool = False
    role: Literal["tool"] = "tool"

    @property
    def text(self) -> str:
        return text_of(self.content)


Message: TypeAlias = UserMessage | AssistantMessage | ToolMessage


def text_of(content: Iterable[object]) -> str:
    """The text blocks of `content`, joined."""
    return "".join([b.text for b in content if isinstance(b, Text)])


def deeper_than(value: Any, limit: int) -> bool:
    """Whether a JSON value is nested deeper than `limit` levels. Does not recurse."""
    level = [value]
    for _ in range(limit):
        level = [
            inner
            for node in level
            for inner in (node.values() if isinstance(node, dict) else node)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def clean(text: str) -> str:
    """`text` without lone surrogates and NUL, each replaced by U+FFFD (rule L11). Applied to all text that enters."""
    if text.isascii():
        return text.replace("\0", "�") if "\0" in text else text
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.replace("\0", "�")
