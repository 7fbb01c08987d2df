"""Rows of a text block as it streams: closed paragraphs as Markdown, the open one as plain text.

Appending to Markdown costs the size of its last block, so a long fence or list would slow down with each
piece. Here a piece costs its own length: plain rows are made for what is new, and a paragraph becomes
Markdown once, when it closes.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from typing import Final

from textual.content import Content

from handrail_tui.view.items import ReplyBlock
from handrail_tui.widgets.transcript_rows import INDENT, Row, blank, styled

_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_SLICE: Final = 2_048
"""Characters that are taken in between two looks at the time."""

_MARKDOWN_LIMIT: Final = 60_000
"""Characters of one paragraph that are read as Markdown; a longer one stays plain."""


_MARKED: Final = re.compile(r"[*_`\[<#|~\\&]|^[ \t>+=-]|^\d{1,9}[.)]", re.MULTILINE)
"""What makes a paragraph more than words; without it no parser is asked."""


def paragraph_lines(text: str, width: int) -> list[Content]:
    """A whole paragraph, list, fence … as lines."""
    if _MARKED.search(text) is None:
        return Content(" ".join(text.split())).wrap(width)
    # Imported late: the parser costs a tenth of a second, and the first screen needs none.
    from handrail_tui.widgets._reply_markdown import markdown_lines

    return markdown_lines(text, width)


def warm_up() -> None:
    """Import what the first Markdown needs, before it is needed."""
    paragraph_lines("`x`", 80)


class PlainRows:
    """Rows of plain text that grows. Of a line without end only its last row is wrapped again."""

    def __init__(self, room: int, dress: Callable[[Content], Content]) -> None:
        self._room, self._dress = room, dress
        self._rows: list[Row] = []
        self._open = ""

    def add(self, text: str) -> None:
        """More of the open line."""
        self._open += text
        if len(self._open) > 8 * self._room:
            *whole, last = Content(self._open).wrap(self._room)
            self._rows += [Row(self._dress(line)) for line in whole]
            self._open = last.plain

    def newline(self) -> None:
        """The open line ends."""
        self._rows += self._rest() or [blank()]
        self._open = ""

    def rows(self) -> list[Row]:
        return [*self._rows, *self._rest()]

    def _rest(self) -> list[Row]:
        lines = Content(self._open).wrap(self._room) if self._open else []
        return [Row(self._dress(line)) for line in lines]


class ReplyRows:
    """The rows of one block. `update` takes in what is new and returns all rows. Thinking is not Markdown."""

    def __init__(self, block: ReplyBlock, width: int, indent: str = INDENT, style: str = "") -> None:
        self.width = width
        self._block, self._indent, self._style = block, styled((indent, "$line")), style
        self._room = max(8, width - len(indent))
        self._seen = 0
        self._fence = ""
        self._after_blank = False
        self._lines: list[str] = []
        self._line: list[str] = []
        self._closed: list[Row] = []
        self._plain = PlainRows(self._room, self._dress)
        self._final = False

    @property
    def behind(self) -> bool:
        """Whether there is text that `update` had no time for."""
        return not self._final and (self._seen < self._block.chars or self._block.ended_at is not None)

    def update(self, until: float = math.inf) -> list[Row]:
        """All rows as of now, as far as they can be made `until` (time.perf_counter). Always gets further."""
        while not self._final:
            new = self._block.since(self._seen)[:_SLICE]
            self._seen += len(new)
            for n, part in enumerate(new.split("\n")):
                if n:
                    self._end_line()
                if part:
                    self._take(part)
            if self._seen >= self._block.chars:
                if self._block.ended_at is not None:
                    self._end_line()
                    self._close()
                    self._final = True
                break
            if time.perf_counter() >= until:
                break
        if self._final:
            return self._closed
        rows = self._plain.rows()
        return [*self._closed, *([blank()] if self._closed and rows else []), *rows]

    def _take(self, part: str) -> None:
        """More of a line. A paragraph closes where the next one begins."""
        if self._after_blank and not self._line and not part[0].isspace():
            self._close()
        self._line.append(part)
        self._plain.add(part)

    def _end_line(self) -> None:
        line = "".join(self._line)
        self._line.clear()
        self._lines.append(line)
        self._plain.newline()
        if fence := _FENCE.match(line):
            if not self._fence:
                self._fence = fence[1]
            elif fence[1].startswith(self._fence) and not line.strip(" `~"):
                self._fence, self._after_blank = "", True
                return
        self._after_blank = not self._fence and not line.strip()

    def _close(self) -> None:
        """The open paragraph becomes Markdown, if it is to be any."""
        text = "\n".join(self._lines).strip("\n")
        self._lines = []
        plain, self._plain = self._plain, PlainRows(self._room, self._dress)
        if not text.strip():
            return
        if self._block.kind == "text" and len(text) <= _MARKDOWN_LIMIT:
            rows = [Row(self._dress(line)) for line in paragraph_lines(text, self._room)]
        else:
            rows = plain.rows()
        while rows and not rows[-1].content.plain.strip():
            rows.pop()
        self._closed += [blank(), *rows] if self._closed else rows

    def _dress(self, content: Content) -> Content:
        return self._indent + (content.stylize_before(self._style) if self._style else content)
