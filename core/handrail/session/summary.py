"""A session in one line of a list, from the two ends of its journal.

It reads only the head (the prompt) and the last turn, so that listing many long sessions is fast.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Literal, TypeAlias

from handrail import events as ev
from handrail.session._files import read_regular
from handrail.session.lock import holder
from handrail.session.records import JournalHeader, JournalRecord, decode, read_header

State: TypeAlias = Literal["needs_you", "waiting", "running", "interrupted", "finished", "unreadable"]

TITLE = 80
_WINDOW = 16 * 1024
_HEAD_LINES = 20
_BEGINS = frozenset({"run_started", "turn_started"})
_SUMS = frozenset({"run_started", "turn_finished", "run_finished"})


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """What a list shows of a session.

    `state` comes from its last events; `running` means that a process has it open now. `until` is set while it
    waits for a limit, or when a limit ended it; `needs` says what a person is asked for. Moments are seconds since
    the epoch. `turns` and `cost` are those of its last run, `title` the first words of its prompt, `parent` the
    session that it was forked from.
    """

    id: str
    path: Path
    title: str = ""
    cwd: str = ""
    model: str = ""
    started: float = 0.0
    last: float = 0.0
    state: State = "unreadable"
    running: bool = False
    outcome: str | None = None
    until: float | None = None
    needs: str | None = None
    turns: int = 0
    cost: float | None = None
    parent: str | None = None


def summarise(path: Path) -> SessionSummary:
    """The summary of the journal at `path`. Never raises: what cannot be read is `unreadable`."""
    name = path.parent.name
    try:
        header, first = _head(path)
        standing = _Standing()
        records = _tail(path)
        last = max(standing.apply(records), _moment(records))
    except OSError:
        return SessionSummary(name, path)
    if header is None:
        return SessionSummary(name, path)
    running = holder(path.with_suffix(".lock")) is not None
    parent = header.meta.get("parent")
    return SessionSummary(
        id=name,  # not what the header says: it may name another session
        path=path,
        title=_title(first.prompt if first else str(header.meta.get("title", ""))),
        cwd=standing.cwd or (first.cwd if first else str(header.meta.get("cwd", ""))),
        model=standing.model or (first.model if first else ""),
        started=header.at,
        last=max(header.at, last),
        state=standing.state(running),
        running=running,
        outcome=standing.outcome,
        until=standing.until,
        needs=next(reversed(standing.asks.values()), None),
        turns=standing.turns,
        cost=standing.cost,
        parent=parent if isinstance(parent, str) else None,
    )


@dataclass(slots=True)
class _Standing:
    """A fold over the last records: the state of the session."""

    outcome: str | None = None
    until: float | None = None
    asks: dict[str, str] = field(default_factory=dict)
    turns: int = 0
    cost: float | None = None
    model: str = ""
    cwd: str = ""

    def apply(self, records: Iterable[JournalRecord]) -> float:
        """Apply the records. Returns the time of the last one that counts."""
        at = 0.0
        for record in records:
            if record.kind in _FOLDS and (event := record.event) is not None:
                self._event(event)
                at = event.at
        return at

    def state(self, running: bool) -> State:
        if self.asks:
            return "needs_you"
        if self.outcome is not None:
            return "finished"
        if self.until is not None:
            return "waiting"
        return "running" if running else "interrupted"

    def _event(self, event: ev.Event) -> None:
        match event:
            case ev.RunStarted():
                self._begin(event)
            case ev.TurnStarted():
                self.until, self.turns = None, event.turn or self.turns
            case ev.TurnFinished():
                self.cost = event.cost
            case ev.MessageStarted():
                self.model = event.model or self.model
            case ev.SettingsChanged():
                self.model = event.model or self.model
                self.cwd = event.cwd or self.cwd
            case ev.WaitStarted(decision="wait"):
                self.until = event.until
            case ev.WaitEnded():
                self.until = None
            case ev.HumanRequested():
                self.asks[event.id] = event.needed
            case ev.ApprovalRequested():
                self.asks[event.id] = f"{event.tool} {event.title}".strip()
            case ev.HumanAnswered() | ev.ApprovalAnswered():
                if event.how != "nobody":
                    self.asks.pop(event.id, None)
            case ev.RunFinished():
                self._finish(event)

    def _begin(self, event: ev.RunStarted) -> None:
        self.outcome = None
        self.model = event.model or self.model
        self.cwd = event.cwd or self.cwd
        if not event.resumed:
            self.asks.clear()
            self.until, self.turns, self.cost = None, 0, None

    def _finish(self, event: ev.RunFinished) -> None:
        self.outcome, self.until = event.outcome, event.until
        self.turns, self.cost = event.turns, event.cost
        if event.outcome != "human-required":
            self.asks.clear()
        elif event.question is not None:
            self.asks[event.question.id] = event.question.needed


_FOLDS = frozenset(
    {
        "run_started",
        "turn_started",
        "turn_finished",
        "message_started",
        "settings_changed",
        "wait_started",
        "wait_ended",
        "human_requested",
        "human_answered",
        "approval_requested",
        "approval_answered",
        "run_finished",
        "run_interrupted",
    }
)


def _head(path: Path) -> tuple[JournalHeader | None, ev.RunStarted | None]:
    header: JournalHeader | None = None
    with read_regular(path) as file:
        for line in islice(file, _HEAD_LINES):
            record = decode(line.rstrip(b"\n"))
            if record is None:
                continue
            header = header or read_header(record)
            if record.kind == "run_started" and isinstance(event := record.event, ev.RunStarted):
                return header, event
    return header, None


def _tail(path: Path) -> list[JournalRecord]:
    """The last records, from the start of a turn on; all of them when there is no turn."""
    window = _WINDOW
    with read_regular(path) as file:
        size = file.seek(0, 2)
        while True:
            start = max(0, size - window)
            file.seek(start)
            lines = file.read(size - start).split(b"\n")
            if start:
                del lines[0]  # it starts before the window
            records = [r for line in lines if (r := decode(line)) is not None]
            kinds = {r.kind for r in records}
            if not start or (kinds & _BEGINS and kinds & _SUMS):
                return records
            window *= 4


def _moment(records: list[JournalRecord]) -> float:
    """The time of the last record of any kind."""
    event = records[-1].event if records else None
    return event.at if event is not None else 0.0


def _title(prompt: str) -> str:
    """The first words of a prompt, on one line."""
    words = " ".join(prompt[: TITLE * 10].split())
    return words if len(words) <= TITLE else words[: TITLE - 1].rstrip() + "…"
