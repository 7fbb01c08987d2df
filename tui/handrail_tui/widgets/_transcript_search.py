"""Looking for words in the transcript: plain functions over its lines and its items."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from handrail_tui.view.items import (
    AttemptItem,
    CallItem,
    CompactionItem,
    EndItem,
    NoteItem,
    PersonItem,
    TranscriptItem,
    TurnItem,
)


class Search:
    """What is looked for, and the line of the match in front. Capitals do not matter."""

    def __init__(self) -> None:
        self._pattern: re.Pattern[str] | None = None
        self._from = 0
        self.line: int | None = None

    def begin(self, words: str, line: int) -> None:
        """Look for `words` from `line` on; while they are typed, from where the first letter began."""
        if self._pattern is None:
            self._from = line
        self._pattern = re.compile(re.escape(words), re.IGNORECASE) if words else None
        self.line = None

    def in_text(self, texts: Iterable[str]) -> bool:
        """Whether any of the texts holds the words."""
        pattern = self._pattern
        return pattern is not None and any(pattern.search(text) for text in texts)

    def spans(self, line: str) -> list[tuple[int, int]]:
        """Where the words stand in a line."""
        return [match.span() for match in self._pattern.finditer(line)] if self._pattern else []

    def go(self, lines: Iterable[str], by: int) -> tuple[int | None, tuple[int, int]]:
        """The line of the next match, and (which, of how many). From the last one it goes to the first."""
        pattern = self._pattern
        if pattern is None:
            return None, (0, 0)
        found = [n for n, line in enumerate(lines) if pattern.search(line)]
        if not found:
            self.line = None
            return None, (0, 0)
        at = self._from if self.line is None else self.line
        if by > 0 and self.line is not None:
            index = next((i for i, n in enumerate(found) if n > at), 0)
        elif by < 0:
            index = next((i for i in range(len(found) - 1, -1, -1) if found[i] < at), len(found) - 1)
        else:
            index = next((i for i, n in enumerate(found) if n >= at), 0)
        self.line = found[index]
        return self.line, (index + 1, len(found))


def item_text(item: TranscriptItem) -> Iterator[str]:
    """All the text of an item, what is folded included."""
    match item:
        case TurnItem():
            for attempt in item.attempts:
                yield from _attempt(attempt)
        case PersonItem():
            yield from (item.text, item.context or "")
        case NoteItem():
            yield item.text
        case CompactionItem():
            yield from (item.why, item.summary, item.failed)
        case EndItem():
            yield from (item.words, item.detail, item.error)


def _attempt(attempt: AttemptItem) -> Iterator[str]:
    for block in attempt.blocks:
        yield block.text
    if attempt.batch is not None:
        for call in attempt.batch.calls:
            yield from _call(call)


def _call(call: CallItem) -> Iterator[str]:
    yield from (call.name, call.title, call.summary, call.text, call.diff or "")
