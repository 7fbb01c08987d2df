"""Streamed text for line output: whole lines of text, and thinking as a few words."""

from __future__ import annotations

from collections.abc import Callable

from handrail_tui.view.text import Cleaner, plural, seconds


class ThinkingSummary:
    """The thinking of a reply, in a few words."""

    def __init__(self) -> None:
        self.seen = False
        self._chars = 0
        self._from = self._to = 0.0

    def add(self, text: str, at: float) -> None:
        if text and not self.seen:
            self.seen, self._from = True, at
        self._chars, self._to = self._chars + len(text), at

    def take(self) -> str:
        """`thought for 2.1 s, 812 characters`, once; empty when nothing new came."""
        chars, self._chars = self._chars, 0
        took = f" for {seconds(self._to - self._from)}" if self._to > self._from else ""
        return f"thought{took}, {plural(chars, 'character')}" if chars else ""


class WholeLines:
    """Text that comes in pieces, passed on in whole, clean lines."""

    def __init__(self, line: Callable[[str], None]) -> None:
        self._line = line
        self.begin()

    def begin(self) -> None:
        self._cleaner, self._pending = Cleaner(), ""
        self.seen = False

    def feed(self, piece: str) -> None:
        self.seen = True
        self._take(self._cleaner.feed(piece))

    def end(self) -> None:
        self._take(self._cleaner.close())
        if self._pending:
            self._line(self._pending)
        self._pending = ""

    def _take(self, text: str) -> None:
        *whole, last = text.split("\n")
        if whole:
            whole[0] = self._pending + whole[0]
            self._pending = ""
        for line in whole:
            self._line(line)
        self._pending += last
