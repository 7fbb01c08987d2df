"""What the screen shows, as data: the items of the transcript and the facts beside it.

Written by the fold in `state`, read by widgets. All text is cleaned (rule L11). Times are moments of the session's
clock; a widget computes durations when it draws.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from handrail.events import FieldError, Ledger
from handrail.messages import Usage
from handrail_tui.view.text import Cleaner, Tail, line_count

CallState: TypeAlias = Literal["queued", "asking", "running", "ok", "error", "denied", "skipped"]
Tone: TypeAlias = Literal["plain", "decision", "waiting", "needs-you", "accepted", "rejected"]
Level: TypeAlias = Literal["info", "warning", "error"]


@dataclass(slots=True, eq=False)
class PersonItem:
    """A message of the person. `context` is piped input that came with the prompt."""

    kind: Literal["prompt", "steer", "follow_up"]
    text: str
    context: str | None = None


@dataclass(slots=True, eq=False)
class ReplyBlock:
    """A block of text or thinking. Pieces are appended while it streams; `chars` is their total length."""

    kind: Literal["text", "thinking"]
    started_at: float
    pieces: list[str] = field(default_factory=list)
    chars: int = 0
    ended_at: float | None = None
    cleaner: Cleaner = field(default_factory=Cleaner)

    def add(self, piece: str) -> None:
        """Append raw text."""
        shown = self.cleaner.feed(piece)
        if shown:
            self.pieces.append(shown)
            self.chars += len(shown)

    def close(self, at: float) -> None:
        """The block is complete."""
        self.ended_at = at
        if rest := self.cleaner.close():
            self.pieces.append(rest)
            self.chars += len(rest)

    def since(self, chars: int) -> str:
        """The text after the first `chars` characters. The cost depends only on the new text."""
        missing, found = self.chars - chars, []
        for piece in reversed(self.pieces):
            if missing <= 0:
                break
            found.append(piece if len(piece) <= missing else piece[len(piece) - missing :])
            missing -= len(piece)
        return "".join(reversed(found))

    @property
    def text(self) -> str:
        """The whole text."""
        if len(self.pieces) > 1:
            self.pieces[:] = ["".join(self.pieces)]
        return self.pieces[0] if self.pieces else ""

    @property
    def lines(self) -> int:
        return line_count(self.text)


@dataclass(slots=True, eq=False)
class CallDraft:
    """A call whose arguments are still being written."""

    name: str
    chars: int = 0


@dataclass(slots=True, eq=False)
class SubmissionVerdict:
    """The result of validating a submission (rule S4)."""

    accepted: bool
    attempt: int
    of: int
    errors: tuple[FieldError, ...] = ()
    value: Any = None


@dataclass(slots=True, eq=False)
class CallItem:
    """One call of a batch and its result. `lines` is the line count of the whole result; `text` may be shortened."""

    id: str
    name: str
    title: str
    state: CallState = "queued"
    effect: str = "read"
    started_at: float | None = None
    seconds: float | None = None
    summary: str = ""
    text: str = ""
    lines: int = 0
    diff: str | None = None
    terminate: bool = False
    tail: Tail = field(default_factory=Tail)
    verdict: SubmissionVerdict | None = None

    @property
    def done(self) -> bool:
        return self.state in ("ok", "error", "denied", "skipped")


@dataclass(slots=True, eq=False)
class BatchItem:
    """The calls of one reply. `votes` of `of` results asked to end the loop (rule L7); None before."""

    started_at: float
    calls: list[CallItem] = field(default_factory=list)
    sequential: bool = False
    seconds: float | None = None
    votes: int | None = None
    of: int = 0
    ends: bool = False


@dataclass(slots=True, eq=False)
class AttemptItem:
    """One request and its reply. `fault`: what went wrong; `superseded`: replaced by another attempt."""

    request: int
    started_at: float
    heading: str = ""
    blocks: list[ReplyBlock] = field(default_factory=list)
    writing: dict[int, CallDraft] = field(default_factory=dict)
    batch: BatchItem | None = None
    streaming: bool = True
    seconds: float | None = None
    fault: str = ""
    kept: str = ""
    superseded: bool = False

    @property
    def chars(self) -> int:
        return sum(block.chars for block in self.blocks)

    @property
    def text(self) -> str:
        return "".join(block.text for block in self.blocks if block.kind == "text")


@dataclass(slots=True, eq=False)
class TurnItem:
    """A turn: its attempts. The last one is the current one."""

    attempts: list[AttemptItem]

    @property
    def current(self) -> AttemptItem:
        return self.attempts[-1]


@dataclass(slots=True, eq=False)
class NoteItem:
    """A line for the person."""

    text: str
    level: Level = "info"


@dataclass(slots=True, eq=False)
class CompactionItem:
    """Older messages were replaced by a summary (rule R14). Token counts are estimates."""

    why: str
    messages: int
    before: int
    started_at: float
    after: int | None = None
    ok: bool | None = None
    kept: int = 0
    summary: str = ""
    failed: str = ""


@dataclass(slots=True, eq=False)
class EndItem:
    """How the run ended, in plain words, and the error. A value is shown where it was submitted."""

    words: str
    tone: Tone
    detail: str = ""
    error: str = ""


TranscriptItem: TypeAlias = PersonItem | TurnItem | NoteItem | CompactionItem | EndItem


@dataclass(slots=True, eq=False)
class DecisionItem:
    """One line of the decisions column, and its details for the inspector."""

    at: float
    word: str
    tone: Tone
    rest: str = ""
    why: str = ""
    turn: int | None = None
    failure: str = ""
    evidence: tuple[tuple[str, str], ...] = ()
    before: Ledger | None = None
    after: Ledger | None = None
    checkpoint: str = ""


@dataclass(slots=True)
class RunFacts:
    """The run's prompt, model, folder and settings. `servers` counts the tools of each MCP server."""

    title: str = ""
    model: str = ""
    cwd: str = ""
    session: str = ""
    window: int | None = None
    approve: str = "ask"
    sandbox: str = ""
    tools: tuple[str, ...] = ()
    servers: dict[str, int] = field(default_factory=dict)
    instructions: tuple[tuple[str, str], ...] = ()
    has_output: bool = False


@dataclass(slots=True)
class Meters:
    """What the run has used, and its bounds. None: the bound is off, or the figure is unknown."""

    turn: int = 0
    max_turns: int = 0
    rejected: int = 0
    max_attempts: int = 0
    ledger: Ledger = field(default_factory=Ledger)
    max_resumes: int | str | None = None
    stream_retries: int | None = None
    recovery: bool = False
    usage: Usage = field(default_factory=Usage)
    cost: float | None = None
    max_total_tokens: int | None = None
    max_cost: float | None = None
    deadline_s: float | None = None
    context: float | None = None
