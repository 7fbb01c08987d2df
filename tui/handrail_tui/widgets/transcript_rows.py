"""Rows: what a transcript is made of, and the few ways to make them.

A row is one line of the screen, already wrapped. Its text is content with spans, never markup (a model may
write `[/]`), and its colours are names of the theme, so that another theme asks for no new wrapping.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Final

from textual.content import Content
from textual.strip import Strip

BAR: Final = "▌ "
FOLDED: Final = "▸ "
OPEN: Final = "▾ "
INDENT: Final = "  "


@dataclass(slots=True, eq=False)
class Row:
    """One line. `fold` names what a click or enter on it opens and closes. `strip` is kept by the widget."""

    content: Content
    fold: Hashable | None = None
    strip: Strip | None = None
    epoch: int = -1


@dataclass(slots=True)
class Look:
    """How rows are made: for what width, at what moment, with what folded, until when (time.perf_counter)."""

    width: int
    now: float
    until: float = math.inf
    thinking: bool = False
    has_output: bool = False
    toggled: set[Hashable] = field(default_factory=set)
    unfolded: bool = False

    def is_open(self, key: Hashable, default: bool = False) -> bool:
        """Whether the foldable thing `key` is open; a person's choice turns the default round.

        `unfolded`: everything is, because what is looked for may be in it.
        """
        return self.unfolded or default != (key in self.toggled)


def styled(*parts: tuple[str, str] | str) -> Content:
    """Content of `(text, style)` parts."""
    return Content.assemble(*parts)


def rows_of(
    content: Content, width: int, *, indent: str = "", style: str = "$line", hang: str | None = None
) -> list[Row]:
    """`content` wrapped behind `indent`. `hang` stands before the second row and those after it."""
    room = max(1, width - len(indent))
    first, rest = styled((indent, style)), styled((indent if hang is None else hang, style))
    return [Row((rest if n else first) + line) for n, line in enumerate(content.wrap(room))]


def text_rows(text: str, width: int, indent: str = INDENT, style: str = "") -> list[Row]:
    """Plain text, wrapped line by line. `indent` may hold a bar; it has the colour of lines."""
    rows: list[Row] = []
    for line in text.rstrip("\n").split("\n"):
        rows += rows_of(Content.styled(line, style) if style else Content(line), width, indent=indent)
    return rows


def fold_row(words: str, opened: bool, key: Hashable, width: int, indent: str = INDENT) -> Row:
    """The handle of something that folds: `▸ thought for 2.1 s, 34 lines`. One row, cut to fit."""
    sign = OPEN if opened else FOLDED
    room = max(1, width - len(indent) - len(sign))
    line = Content.styled(words, "$dim").truncate(room, ellipsis=True)
    return Row(styled((indent, "$line"), (sign, "$faint")) + line, key)


def at_most(rows: list[Row], limit: int, key: Hashable, look: Look, indent: str = INDENT) -> list[Row]:
    """`rows`, folded behind the first `limit` of them; says how many it hides."""
    hidden = len(rows) - limit
    if hidden <= 1:
        return rows
    opened = look.is_open(key)
    words = "fold again" if opened else f"{hidden} more lines"
    return [*(rows if opened else rows[:limit]), fold_row(words, opened, key, look.width, indent)]


def beside(left: Content, right: Content, width: int) -> Content:
    """`left` and `right` on one line of `width`, the left one cut to make room."""
    room = width - right.cell_length - 2
    if room < 4:
        return left.truncate(max(1, width), ellipsis=True)
    left = left.truncate(room, ellipsis=True)
    return left + " " * (room + 2 - left.cell_length) + right


def bar(width: int, share: float, style: str = "$accent") -> Content:
    """A bar of `width` cells, `share` (0 to 1) of it done."""
    done = round(width * min(1.0, max(0.0, share)))
    return styled(("━" * done, style), ("─" * (width - done), "$line"))


def blank() -> Row:
    """An empty row."""
    return Row(Content(""))


def with_air(groups: Iterable[list[Row]]) -> list[Row]:
    """The groups that hold something, an empty row between two of them."""
    rows: list[Row] = []
    for group in groups:
        if group:
            rows += [blank(), *group] if rows else group
    return rows
