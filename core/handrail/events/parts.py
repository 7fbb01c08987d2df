"""The small data types that events are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, PlainSerializer

from handrail.clock import from_rfc3339, to_rfc3339

Moment: TypeAlias = Annotated[
    float,
    BeforeValidator(from_rfc3339),
    PlainSerializer(to_rfc3339, return_type=str, when_used="json"),
]
"""Seconds since the epoch in memory; RFC 3339 in UTC, with milliseconds, in JSON."""

DecisionKind: TypeAlias = Literal["continue", "retry", "resume", "wait", "compact", "ask", "finish"]
Reason: TypeAlias = str
"""truncated, paused, transient, empty, tool-tail, overflow, refused-piece, usage-limit, human; for finish the class or
outcome."""

Outcome: TypeAlias = Literal[
    "completed",
    "submitted",
    "invalid-submissions",
    "cancelled",
    "human-required",
    "budget",
    "turn-limit",
    "usage-limit",
    "provider",
    "no-submit",
]
HumanKind: TypeAlias = Literal[
    "captcha", "login", "2fa", "payment", "permission", "physical", "decision", "information", "other"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventBase:
    """What every event has: when it happened, and in which turn."""

    at: Moment = 0.0
    turn: int | None = None


@dataclass(frozen=True, slots=True)
class FieldError:
    """One thing wrong with a submission. `path` is dotted (`items.0.name`), empty for the whole."""

    path: str
    message: str


FieldKind: TypeAlias = Literal[
    "text", "number", "integer", "boolean", "choice", "choices", "date", "date-time", "email", "uri"
]


@dataclass(frozen=True, slots=True)
class FormField:
    """One thing that a form asks for. `options` are (value, label) pairs of a choice.

    `minimum` and `maximum` bound a number's value, a text's length in characters, how many of `choices` are taken.
    """

    name: str
    kind: FieldKind = "text"
    label: str = ""
    help: str = ""
    required: bool = False
    default: Any = None
    options: tuple[tuple[str, str], ...] = ()
    minimum: float | None = None
    maximum: float | None = None


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction for the model: the system prompt, or the project's AGENTS.md. `path` is its file."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class QueuedMessage:
    """A person's message that has not been delivered yet."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class CallInfo:
    """A call as shown in its batch. `title` is one line: a path, a command."""

    id: str
    name: str
    title: str


@dataclass(frozen=True, slots=True)
class Ledger:
    """What recovery has spent in this user request (rule R11).

    `retries`, `polls` and `unbroken` (requests of recovery) belong to one unbroken failure, as do `limited_since`, the
    moment of its first usage limit, `waited_for`, the moment that the last guided wait was for, and `waits_for_it`, how
    many waits were for it. A good reply clears them. `tail` says that the one question after a terminating batch was
    asked (rule R6).
    """

    continues: int = 0
    resumes: int = 0
    retries: int = 0
    polls: int = 0
    guided_waits: int = 0
    compactions: int = 0
    unbroken: int = 0
    limited_since: Moment | None = None
    waited_for: Moment | None = None
    waits_for_it: int = 0
    tail: bool = False
