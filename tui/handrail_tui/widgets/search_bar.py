"""Searching the transcript: the words, and how many lines hold them."""

from __future__ import annotations

from pathlib import Path

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Input, Static

from handrail_tui.widgets._composer_input import ComposerInput
from handrail_tui.widgets.bindings import bindings
from handrail_tui.widgets.transcript import Transcript
from handrail_tui.widgets.transcript_rows import styled


class _Sought(Input):
    BINDINGS = bindings("search")

    def action_go(self, by: int) -> None:
        """To the next match below, or above."""
        if isinstance(bar := self.parent, SearchBar):
            bar.go(by)

    def action_leave(self) -> None:
        """Search no more."""
        if isinstance(bar := self.parent, SearchBar):
            bar.close()


class SearchBar(Horizontal):
    """Hidden until `open`. What is folded is opened where the words are in it."""

    DEFAULT_CSS = Path(__file__).with_suffix(".tcss").read_text(encoding="utf-8")

    def __init__(self, transcript: Transcript) -> None:
        super().__init__()
        self._transcript = transcript

    def compose(self) -> ComposeResult:
        yield Static(styled(("find", "bold $accent")), id="search--name")
        yield _Sought()
        yield Static(id="search--found")

    @property
    def is_open(self) -> bool:
        return self.has_class("-open")

    def open(self) -> None:
        """Take words to look for."""
        self.add_class("-open")
        field = self.query_one(_Sought)
        field.focus()
        field.select_all()
        if field.value:
            self._show(self._transcript.search(field.value))

    def close(self) -> None:
        """Fold again what was opened for it, and give the keyboard back."""
        self.remove_class("-open")
        self._transcript.search("")
        field = self.screen.query_one(ComposerInput)
        self.screen.set_focus(field if field.focusable else None)

    def go(self, by: int) -> None:
        """To the next match below (1) or above (-1)."""
        self._show(self._transcript.next_match(by))

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        if self.is_open:
            self._show(self._transcript.search(event.value))

    def _show(self, found: tuple[int, int]) -> None:
        at, of = found
        words = f"{at} of {of}" if of else "no match" if self.query_one(_Sought).value else ""
        keys = "   enter: next  ↑: previous  esc: close" if self.size.width >= 80 else ""
        shown = styled((words, "$foreground" if of else "$waiting"), (keys, "$dim"))
        self.query_one("#search--found", Static).update(shown)
