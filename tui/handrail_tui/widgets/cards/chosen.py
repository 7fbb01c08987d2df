"""What a person chose on a card. Cards post these; the run screen turns them into commands of a session.

`@on(Choice)` takes all of them; no card touches a session.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from textual.message import Message

BoundKind: TypeAlias = Literal["max_turns", "max_attempts", "deadline_s", "max_total_tokens", "max_cost"]


class Choice(Message):
    """The base of all choices."""


@dataclass
class Approve(Choice):
    """An approval was answered (rule H5). `text` is the word to the model, `pattern` what was allowed."""

    id: str
    how: Literal["once", "session", "deny"]
    text: str = ""
    pattern: str | None = None


@dataclass
class Answer(Choice):
    """A question was answered (rule H3). A secret `text` stays out of logs and of `repr`."""

    id: str
    how: Literal["resolved", "answered", "declined", "stopped"]
    text: str = field(default="", repr=False)
    secret: bool = False


@dataclass
class SkipWait(Choice):
    """Ask the provider now instead of waiting for a limit to end (rule U8)."""


@dataclass
class RetryNow(Choice):
    """Ask again at once: a pause before a retry, a stalled stream, or a failure for good."""


@dataclass
class GoOnWaiting(Choice):
    """A stalled stream may take its time."""


@dataclass
class AnotherModel(Choice):
    """Choose another model, then go on."""


@dataclass
class EditKey(Choice):
    """Set another key for the provider."""


@dataclass
class RaiseBound(Choice):
    """Let the run go on with a bound that is `amount` higher, in the bound's own unit."""

    kind: BoundKind
    amount: float


@dataclass
class Finish(Choice):
    """Leave it at that: the run stays as it ended, nothing more is asked of it."""


@dataclass
class Close(Choice):
    """The card has been read. Its host takes it away; nobody else needs to know."""


@dataclass
class Stop(Choice):
    """Stop the run."""
