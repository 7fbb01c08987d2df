"""Keeps a run's events in its journal, and the pieces of a reply in flight (rules J1, J3, J6).

Appending never fails a run: what could not be written waits here, in order, and `commit` says so until it is on disk.
"""

from __future__ import annotations

from collections import deque

from handrail import events as ev
from handrail.clock import Clock, Timer
from handrail.session.journal import Journal, JournalBroken

PIECES_S = 1.0  # how often the pieces of a reply are written


class JournalWriter:
    """The record of a session (see `loop.stage.Record`)."""

    def __init__(self, journal: Journal, clock: Clock) -> None:
        self.journal = journal
        self._clock = clock
        self._backlog: deque[ev.Event] = deque()
        self._pieces: list[ev.MessageDelta] = []
        self._timer: Timer | None = None

    def append(self, event: ev.Event) -> None:
        """Keep one event; pieces of a reply are gathered, tools' live output is not kept (their results are)."""
        if isinstance(event, ev.MessageDelta):
            self._gather(event)
            return
        if isinstance(event, ev.ToolProgress):
            return
        if isinstance(event, ev.MessageFinished):
            self._drop_pieces()  # whole, it supersedes them
        elif isinstance(event, ev.RunInterrupted):
            self._write_pieces()
        self._backlog.append(event)
        self._write()

    async def commit(self) -> str | None:
        """Return None when all is on the disk, else why it cannot be written."""
        words = self._write()
        if words is None:
            try:
                await self.journal.commit()
            except JournalBroken as error:
                words = str(error)
        return words

    def close(self) -> None:
        """Write what is left and let the journal go. What cannot be written is lost with the program."""
        self._write_pieces()
        self._write()
        try:
            self.journal.close()
        except JournalBroken:
            return

    def _write(self) -> str | None:
        while self._backlog:
            try:
                self.journal.append(self._backlog[0])
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
            return  # a disk that is full has no room for what will be superseded
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
