"""Small things that cards share: a bar, a countdown, a line for typing."""

from __future__ import annotations

from collections.abc import Callable

from textual import events
from textual.content import Content
from textual.message import Message
from textual.widgets import Input

from handrail_tui.view.text import clean_for_terminal
from handrail_tui.widgets._key_order import obey
from handrail_tui.widgets.bindings import bindings
from handrail_tui.widgets.drawn import Drawn
from handrail_tui.widgets.transcript_rows import bar


def styled(text: str, style: str = "") -> Content:
    """`text` as content: whatever stands in it is text, never markup."""
    return Content.styled(text, style) if style else Content(text)


class Countdown(Drawn):
    """One line: words, a bar in the room that is left, words. `look_again` draws it anew from the clock."""

    MIN_BAR, MAX_BAR = 8, 44

    def __init__(self, style: str, parts: Callable[[], tuple[Content, float | None, Content]]) -> None:
        """`parts` gives the words before, the share that is over (None: no bar) and the words behind."""
        super().__init__(classes="card--countdown")
        self._style, self._parts = style, parts

    def draw(self) -> Content:
        before, share, behind = self._parts()
        room = self.size.width - before.cell_length - behind.cell_length - 6
        if share is not None and room >= self.MIN_BAR:
            before = before + "   " + bar(min(room, self.MAX_BAR), share, self._style)
        return before + "   " + behind if behind.plain else before


class CardInput(Input):
    """A line for typing inside a card. Enter sends it, esc closes it, no other key leaves it."""

    BINDINGS = bindings("card.input")

    class GivenUp(Message):
        """Esc was pressed."""

    def action_give_up(self) -> None:
        self.post_message(self.GivenUp())

    async def _on_key(self, event: events.Key) -> None:
        await obey(self, event)

    def _on_paste(self, event: events.Paste) -> None:
        # Textual keeps the first line only; here nothing that was pasted is lost.
        event.prevent_default()
        event.stop()
        if text := " ".join(clean_for_terminal(event.text).split("\n")).strip():
            self.insert_text_at_cursor(text)
