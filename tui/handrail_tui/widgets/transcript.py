"""The transcript: everything that was said and done, as rows that scroll.

One widget draws all of it, line by line, so that its cost is what is seen and what is new, not what there is:
no widget a message, nothing to restyle when the focus moves. An item's rows are made once and kept; only the
newest item is made again while it changes.

Following the end is the default. Scrolling up stops following; what is read stays where it is, whatever
changes above or below it. `End` follows again.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_right
from collections.abc import Hashable
from pathlib import Path
from typing import Final

from textual import events
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style
from textual.visual import RenderOptions

from handrail_tui.view.items import TranscriptItem
from handrail_tui.widgets._transcript_search import Search, item_text
from handrail_tui.widgets._transcript_section import Section
from handrail_tui.widgets.bindings import bindings
from handrail_tui.widgets.transcript_rows import Look, Row

_SLICE_S: Final = 0.012
"""Seconds of one go at making rows; what is left over waits for the next go."""

_PAUSE_S: Final = 0.02
"""Seconds between two goes, for keys."""


class Transcript(ScrollView, can_focus=True):
    """Shows items. `touch` says that one is new or changed, `paint` draws what was touched."""

    DEFAULT_CSS = Path(__file__).with_suffix(".tcss").read_text(encoding="utf-8")
    BINDINGS = bindings("transcript")

    following: reactive[bool] = reactive(True)
    """Whether new rows are scrolled to."""

    class Moved(Message):
        """Following began or ended, or rows came in below: `below` rows are under the lower edge."""

        def __init__(self, following: bool, below: int) -> None:
            super().__init__()
            self.following, self.below = following, below

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.thinking = False
        self.has_output = False
        self._sections: list[Section] = []
        self._by_item: dict[TranscriptItem, int] = {}
        self._tops: list[int] = []
        self._total = 0
        self._toggled: set[Hashable] = set()
        self._mark: Hashable | None = None
        self._epoch = 0
        self._placing = False
        self._seen_total = 0
        self._now = 0.0
        self._waiting = False
        self._made_for = 0
        self._search = Search()

    # What the screen says -----------------------------------------------------------------------------------

    def touch(self, item: TranscriptItem) -> None:
        """`item` is new, or changed."""
        index = self._by_item.get(item)
        if index is None:
            self._by_item[item] = len(self._sections)
            self._sections.append(Section(item))
            # What was the newest may fold by itself now.
            if len(self._sections) > 1:
                self._sections[-2].stale = True
        else:
            self._sections[index].stale = True

    def clear(self) -> None:
        """Show nothing any more. What was opened and folded by hand is forgotten, too."""
        self._sections.clear()
        self._by_item.clear()
        self._toggled.clear()
        self._mark, self.following = None, True

    def paint(self, now: float) -> None:
        """Make the rows of what was touched, and place them; `now` is the moment of the session's clock."""
        self._now = now
        self._renew()

    def show_thinking(self, shown: bool) -> None:
        """Open or fold all thoughts."""
        self.thinking = shown
        self._toggled = {key for key in self._toggled if getattr(key, "kind", None) != "thinking"}
        for section in self._sections:
            if section.turn is not None:
                section.stale = True
        self._renew()

    def search(self, words: str) -> tuple[int, int]:
        """Look for `words`: they are marked, and what is folded over them is opened. Empty ends it.

        Returns which match is in front, and how many lines hold one.
        """
        self._search.begin(words, round(self.scroll_y))
        for section in self._sections:
            hidden = bool(words) and self._search.in_text(item_text(section.item))
            if section.unfolded != hidden:
                section.unfolded, section.stale = hidden, True
        self._renew(whole=True)
        return self.next_match(0)

    def next_match(self, by: int) -> tuple[int, int]:
        """Go to the next match below (1) or above (-1); 0: to the first one from where the search began."""
        rows = (row for section in self._sections for row in section.rows)
        line, found = self._search.go((row.content.plain for row in rows), by)
        if line is not None:
            self.following = False
            if not self.scroll_y <= line < self.scroll_y + self.size.height - 1:
                self.scroll_to(y=max(0, line - self.size.height // 2), animate=False)
        self.refresh()
        return found

    @property
    def lines(self) -> int:
        """Rows in all."""
        return self._total

    def plain(self) -> str:
        """All of it as text, as it is drawn."""
        return "\n".join(row.content.plain.rstrip() for section in self._sections for row in section.rows)

    # Rows ---------------------------------------------------------------------------------------------------

    def _width(self) -> int:
        return max(10, self.scrollable_content_region.width - 1)

    @property
    def settled(self) -> bool:
        """Whether all rows are made and stand where they should: nothing is to be drawn."""
        if len(self._tops) != len(self._sections) or any(section.stale for section in self._sections):
            return False
        return not self.following or self.scroll_y >= self.max_scroll_y - 0.5

    def _renew(self, whole: bool = False, resized: bool = False) -> None:
        """Make stale rows anew: what is seen first, then from the newest upwards, in slices of time.

        `whole`: all of them now. `resized`: they are placed anew also when none is stale.
        """
        if not self.size:
            return
        if self.settled and not whole and not resized:
            return
        anchor = self._anchor()
        until = math.inf if whole else time.perf_counter() + _SLICE_S
        look = Look(self._width(), self._now, until, self.thinking, self.has_output, self._toggled)
        for index in self._order(anchor):
            if time.perf_counter() >= until and self._sections[index].rows:
                break
            section = self._sections[index]
            look.unfolded = section.unfolded
            section.make(look, current=index == len(self._sections) - 1)
        self._place(anchor)
        if not self._waiting and any(section.stale for section in self._sections):
            self._waiting = True
            self.set_timer(_PAUSE_S, self._go_on)

    def _go_on(self) -> None:
        self._waiting = False
        self._renew()

    def _order(self, anchor: tuple[int, int] | None) -> list[int]:
        """The stale sections: those that are read, then from the newest upwards."""
        stale = [n for n in range(len(self._sections) - 1, -1, -1) if self._sections[n].stale]
        if anchor is None:
            return stale
        seen = range(anchor[0], anchor[0] + self.size.height)
        return sorted(stale, key=lambda n: (n not in seen, n if n in seen else -n))

    def _anchor(self) -> tuple[int, int] | None:
        """The item at the upper edge and the row in it, while someone reads; None when following."""
        if self.following or not self._tops:
            return None
        y = round(self.scroll_y)
        index = max(0, bisect_right(self._tops, y) - 1)
        return index, y - self._tops[index]

    def _place(self, anchor: tuple[int, int] | None) -> None:
        """Measure, and keep in place what is read."""
        self._tops = []
        total = 0
        for section in self._sections:
            self._tops.append(total)
            total += len(section.rows)
        self._total = total
        self._placing = True
        try:
            self.virtual_size = Size(self._width(), total)
            if anchor is None:
                self._seen_total = total
                self.scroll_to(y=self.max_scroll_y, animate=False)
            else:
                index, offset = anchor
                row = min(offset, max(0, len(self._sections[index].rows) - 1))
                self.scroll_to(y=self._tops[index] + row, animate=False)
        finally:
            self._placing = False
        self.refresh()
        self._tell()

    def _tell(self) -> None:
        self.post_message(
            self.Moved(self.following, 0 if self.following else max(0, self._total - self._seen_total))
        )

    def _row(self, y: int) -> Row | None:
        if not 0 <= y < self._total:
            return None
        index = bisect_right(self._tops, y) - 1
        rows = self._sections[index].rows
        offset = y - self._tops[index]
        return rows[offset] if offset < len(rows) else None

    # Drawing ------------------------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        line = y + round(self.scroll_y)
        width = self.scrollable_content_region.width
        base = self.visual_style
        row = self._row(line)
        if row is None:
            return Strip.blank(width, base.rich_style)
        span = self.text_selection.get_span(line) if self.text_selection is not None else None
        marked = self._mark is not None and row.fold == self._mark and self.has_focus
        found = self._search.spans(row.content.plain)
        plain = span is None and not marked and not found
        if plain and row.strip is not None and row.epoch == self._epoch:
            return row.strip.crop_extend(0, width, base.rich_style).apply_offsets(0, line)
        content = row.content
        if marked:
            content = content.stylize("bold $accent")
        for start, end in found:
            here = line == self._search.line
            content = content.stylize(
                "bold $background on $waiting" if here else "underline $waiting", start, end
            )
        if span is not None:
            start, end = span
            style = Style.from_styles(self.screen.get_component_styles("screen--selection"))
            content = content.stylize(style, start, len(content.plain) if end == -1 else end)
        strip = self._strip(content, base)
        if plain:
            row.strip, row.epoch = strip, self._epoch
        return strip.crop_extend(0, width, base.rich_style).apply_offsets(0, line)

    def _strip(self, content: Content, base: Style) -> Strip:
        """One row, already wrapped: never wrapped again, whatever its width."""
        options = RenderOptions(self._get_style, {"text_wrap": "nowrap", "text_overflow": "clip"})
        strips = content.render_strips(max(1, self._width()), 1, base, options)
        return strips[0] if strips else Strip.blank(0)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._epoch += 1

    # Selecting ----------------------------------------------------------------------------------------------

    @property
    def allow_select(self) -> bool:
        return True

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text, read from the rows that it covers."""
        first = selection.start.y if selection.start is not None else 0
        last = selection.end.y if selection.end is not None else self._total - 1
        lines = []
        for y in range(max(0, first), min(last, self._total - 1) + 1):
            row, span = self._row(y), selection.get_span(y)
            if row is not None and span is not None:
                text = row.content.plain
                lines.append(text[span[0] : len(text) if span[1] == -1 else span[1]].rstrip())
        return "\n".join(lines), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()

    # Scrolling and folding ----------------------------------------------------------------------------------

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if self._placing:
            return
        at_end = new_value >= self.max_scroll_y - 0.5
        if at_end != self.following:
            self.following = at_end
            self._seen_total = self._total
            self._tell()

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(self.app.size.width < 60, "-narrow")
        if self._made_for != (width := self._width()):
            self._made_for = width
            for section in self._sections:
                section.stale = True
        self._renew(resized=True)

    def action_line(self, by: int) -> None:
        """Scroll by one line."""
        self.scroll_to(y=self.scroll_y + by, animate=False)

    def action_page(self, by: int) -> None:
        """Scroll by a page, two lines of it staying."""
        self.scroll_to(y=self.scroll_y + by * max(1, self.size.height - 2), animate=False)

    def action_top(self) -> None:
        """Go to the beginning."""
        self.scroll_to(y=0, animate=False)

    def action_follow(self) -> None:
        """Go to the end and follow it."""
        self.following = True
        self._place(None)

    def action_fold(self, by: int) -> None:
        """Mark the next or previous thing that folds."""
        folds: list[tuple[int, Hashable]] = []
        for y in range(self._total):
            row = self._row(y)
            if row is not None and row.fold is not None and (not folds or folds[-1][1] != row.fold):
                folds.append((y, row.fold))
        if not folds:
            return
        marked = next((n for n, (_, key) in enumerate(folds) if key == self._mark), None)
        if marked is None:
            seen = [n for n, (y, _) in enumerate(folds) if y < self.scroll_y + self.size.height]
            marked = (seen[-1] if seen else 0) - by
        y, self._mark = folds[max(0, min(len(folds) - 1, marked + by))]
        if not self.scroll_y <= y < self.scroll_y + self.size.height - 1:
            self.scroll_to(y=max(0, y - self.size.height // 2), animate=False)
        self.refresh()

    def action_open(self) -> None:
        """Open or fold what is marked."""
        if self._mark is not None:
            self.toggle(self._mark)
        else:
            self.action_fold(-1)

    def toggle(self, key: Hashable) -> None:
        """Open what is folded, fold what is open. The handle stays where it is on the screen."""
        self._toggled ^= {key}
        for section in self._sections:
            if any(row.fold == key for row in section.rows):
                section.stale = True
        if self.following and self._total > self.size.height:
            # Someone looks at this now; the end would take it away.
            self.following = False
            self._seen_total = self._total
        self._renew()

    def on_click(self, event: events.Click) -> None:
        if self.text_selection is not None:
            return  # the end of marking text, not a click on what stands there
        offset = event.get_content_offset(self)
        row = self._row(offset.y + round(self.scroll_y)) if offset is not None else None
        if row is not None and row.fold is not None:
            self._mark = row.fold
            self.toggle(row.fold)
            event.stop()
