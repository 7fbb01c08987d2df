"""From a journal back to a session: the events, and a reply cut off by the program's exit (rules J3, J4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from handrail import events as ev
from handrail.session.records import PIECE, JournalContents


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """A stored run as `Session.load` takes it. `unknown` counts records that this version cannot read."""

    events: tuple[ev.Event, ...]
    in_flight: tuple[ev.MessageDelta, ...] = ()
    unknown: int = 0

    @property
    def started(self) -> ev.RunStarted | None:
        """How the last run began."""
        return next((e for e in reversed(self.events) if isinstance(e, ev.RunStarted)), None)

    @property
    def finished(self) -> ev.RunFinished | None:
        """How the last run ended, if it did."""
        for event in reversed(self.events):
            if isinstance(event, ev.RunFinished):
                return event
            if isinstance(event, ev.RunStarted):
                return None
        return None

    def latest(self, name: str) -> Any:
        """The latest value of the setting `name`: from the start of the last run, or a change made during it."""
        for event in reversed(self.events):
            if isinstance(event, ev.RunStarted | ev.SettingsChanged):
                value = getattr(event, name)
                if value is not None:
                    return value
        return None


def load_run(contents: JournalContents) -> LoadedRun:
    """Everything in a journal, in order; pieces only of a reply that was not finished."""
    events: list[ev.Event] = []
    pieces: list[ev.MessageDelta] = []
    unknown = 0
    streaming = False
    for record in contents.records:
        event = record.event
        if event is None:
            unknown += record.kind not in ("header", "tail_repaired")
        elif record.kind == PIECE and isinstance(event, ev.MessageDelta):
            if streaming:
                pieces.append(event)
        else:
            if isinstance(event, ev.TurnStarted):
                streaming = event.purpose == "task"
            if isinstance(event, ev.TurnStarted | ev.MessageFinished | ev.RunFinished):
                pieces.clear()
            events.append(event)
    return LoadedRun(tuple(events), tuple(pieces), unknown)
