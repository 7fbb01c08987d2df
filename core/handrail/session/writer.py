"""Writes a run's events to its journal, and the pieces of a streaming reply (rules J1, J3, J6).

Appending never fails a run: events that could not be written are queued, and `commit` reports that until they are on
disk.
"""

from __future__ import annotations

from collections import deque

from handrail import events as ev
from handrail.clock import Clock, Timer
from handrail.session.journal import Journal, JournalBroken
from handrail.session.records import JournalRecord, event_data

PIECES_S = 1.0  # how often the pieces of a reply are written


class JournalWriter:
    """The recorder of a stored session (see `loop.context.Recorder`)."""

    def __init__(self, journal: Journal, clock: Clock) -> None:
        self.journal = journal
        self._clock = clock
        self._backlog: deque[JournalRecord] = deque()
        self._pieces: list[ev.MessageDelta] = []
        self._timer: Timer | None = None

    def append(self, event: ev.Event) -> None:
        """Write one event. Pieces of a reply are collected; live output of tools is not stored.

        Raises ValueError for an event that could not be read back (rule H6); it is not stored then.
        """
        if isinstance(event, ev.MessageDelta):
            self._gather(event)
            return
        if isinstance(event, ev.ToolProgress):
            return
        record = JournalRecord(0, event.type, event_data(event))
        if isinstance(event, ev.MessageFinished):
            self._drop_pieces()  # the whole reply supersedes them
        elif isinstance(event, ev.RunInterrupted):
            self._write_pieces()
        self._backlog.append(record)
        self._write()

    async def commit(self) -> str | None:
        """Write everything to disk. Returns None, or the reason why that failed."""
        problem = self._write()
        if problem is None:
            try:
                await self.journal.commit()
            except JournalBroken as error:
                problem = str(error)
        return problem

    def close(self) -> None:
        """Write what is left and close the journal. What cannot be written is lost."""
        self._write_pieces()
        self._write()
        try:
            self.journal.close()
        except JournalBroken:
            return

    def _write(self) -> str | None:
        while self._backlog:
            try:
                self.journal.append_record(self._backlog[0])
            except JournalBroken as error:
                return str(error)
            self._backlog.popleft()
        return None

    def _gather(self, piece: ev.MessageDelta) -> None:
        last = self._pieces[-1] if self._pieces else None
        joins = (
            last is not None and piece.name is None and (last.kind, last.index) == (piece.kind, piece.index)
        )
        if last is not None and joins:
            self._pieces[-1] = ev.MessageDelta(
                at=piece.at,
                turn=piece.turn,
                kind=last.kind,
                text=last.text + piece.text,
                index=last.index,
                name=last.name,
            )
        else:
            self._pieces.append(piece)
        if self._timer is None:
            self._timer = self._clock.call_later(PIECES_S, self._write_pieces)

    def _write_pieces(self) -> None:
        pieces = self._pieces
        self._drop_pieces()
        if self._backlog:
            return  # on a full disk, do not write what will be superseded
        for piece in pieces:
            try:
                self.journal.append_piece(piece)
            except JournalBroken:
                return

    def _drop_pieces(self) -> None:
        self._pieces = []
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
