"""The queue: what waits to be delivered, to be edited, put in another order, or withdrawn (rule L8)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from textual.app import ComposeResult
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static, TextArea
from textual.widgets.option_list import Option

from handrail.events import QueuedMessage
from handrail.session.protocol import SessionProtocol
from handrail_tui.view.state import ViewState
from handrail_tui.view.text import one_line
from handrail_tui.widgets.bindings import bindings
from handrail_tui.widgets.footer import KeyLine
from handrail_tui.widgets.transcript_rows import styled

_LOOK_S: Final = 0.25
_LANES: Final = {"steer": "before the next request", "then": "after this task"}


class _MessageList(OptionList):
    BINDINGS = bindings("queue.list")


class _MessageText(TextArea):
    BINDINGS = bindings("queue.text")


class QueueScreen(ModalScreen[str | None]):
    """Shows the queue as it is now. Ends with words that came back: they were delivered, or withdrawn."""

    DEFAULT_CSS = Path(__file__).with_suffix(".tcss").read_text(encoding="utf-8")
    BINDINGS = bindings("queue")

    def __init__(self, session: SessionProtocol, view: ViewState) -> None:
        super().__init__()
        self._session, self._view = session, view
        self._messages: list[tuple[str, QueuedMessage]] = []
        self._edited: QueuedMessage | None = None

    def compose(self) -> ComposeResult:
        yield Static(
            styled(("Queue", "bold $accent"), ("   in the order of delivery", "$dim")), classes="queue--head"
        )
        yield Static(styled(("The queue is empty.", "$dim")), classes="queue--none")
        yield _MessageList(classes="queue--list")
        yield _MessageText(soft_wrap=True, show_line_numbers=False, compact=True, classes="queue--words")
        yield Static(classes="queue--note")
        yield KeyLine(self)

    def on_mount(self) -> None:
        self._words.display = False
        self._look()
        self._list.focus()
        self.set_interval(_LOOK_S, self._look)

    @property
    def _list(self) -> _MessageList:
        return self.query_one(_MessageList)

    @property
    def _words(self) -> _MessageText:
        return self.query_one(_MessageText)

    @property
    def _marked(self) -> QueuedMessage | None:
        at = self._list.highlighted
        return self._messages[at][1] if at is not None and at < len(self._messages) else None

    def _look(self) -> None:
        """Bring the list in line with the queue; what was delivered meanwhile is gone from it."""
        now = [("steer", m) for m in self._view.steering] + [("then", m) for m in self._view.follow_ups]
        self.set_class(not now, "-empty")
        if now == self._messages:
            return
        marked, at = self._marked, self._list.highlighted or 0
        self._messages = now
        self._list.clear_options()
        self._list.add_options(Option(_row(lane, message)) for lane, message in now)
        ids = [message.id for _, message in now]
        if ids:
            self._list.highlighted = (
                ids.index(marked.id) if marked and marked.id in ids else min(at, len(ids) - 1)
            )

    def tell(self, words: str) -> None:
        self.query_one(".queue--note", Static).update(Content(words))

    # Actions ------------------------------------------------------------------------------------------------

    def action_edit(self) -> None:
        """Change the words of the marked message."""
        if (marked := self._marked) is not None:
            self._edited = marked
            self._words.load_text(marked.text)
            self._words.move_cursor(self._words.document.end)
            self._words.display = True
            self._words.focus()

    def action_new_line(self) -> None:
        """Break the line."""
        self._words.insert("\n")

    def action_save(self) -> None:
        """Keep the changed words. They come back to the composer when the message is gone."""
        edited, words = self._edited, self._words.text
        self._close()
        if edited is None:
            return
        self._look()
        if edited.id not in [message.id for _, message in self._messages]:
            self.dismiss(words)
        elif not words.strip():
            self.tell("The message is empty. To withdraw it, press x.")
        else:
            self._session.edit_queued(edited.id, words)
            self._look()

    def action_move(self, by: int) -> None:
        """Deliver the marked message earlier or later among its like."""
        if (marked := self._marked) is not None:
            self._session.move_queued(marked.id, by)
            self._look()

    def action_withdraw(self) -> None:
        """Take the marked message off the queue; its words go back to the composer."""
        marked = self._marked
        message = self._session.withdraw(marked.id) if marked is not None else None
        if message is not None:
            self.dismiss(message.text)

    def action_leave(self) -> None:
        """End the editing, or leave."""
        if self._edited is not None:
            self._close()
        else:
            self.dismiss(None)

    def _close(self) -> None:
        self._edited, self._words.display = None, False
        self._list.focus()


def _row(lane: str, message: QueuedMessage) -> Content:
    return styled((one_line(message.text, 300), "$foreground"), ("\n  " + _LANES[lane], "$dim"))
