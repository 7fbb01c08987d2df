"""A question in one line, answered with one key: for what must not happen by accident."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from textual import events
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from handrail_tui.view.text import one_line
from handrail_tui.widgets.transcript_rows import styled


class Question(Static):
    """Hidden until `ask`. Any other key, esc, or losing focus cancels the question."""

    DEFAULT_CSS = Path(__file__).with_suffix(".tcss").read_text(encoding="utf-8")

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._answers: Mapping[str, str] = {}
        self._then: Callable[[str], object] = lambda key: None
        self._before: Widget | None = None

    @property
    def asking(self) -> bool:
        return self.has_class("-asking")

    def ask(self, words: str, answers: Mapping[str, str], then: Callable[[str], object]) -> None:
        """Ask. `answers` are words by their key; `then` is called with the key that was pressed."""
        self._answers, self._then, self._before = answers, then, self.app.focused
        line = styled((one_line(words, 300), "bold"), "\n")
        for key, answer in {**answers, "esc": "no"}.items():
            line = line + styled((f"{key} ", "bold $accent"), (f"{answer}    ", "$dim"))
        self.update(Content(line.plain.rstrip(), spans=list(line.spans)))
        self.add_class("-asking")
        self.can_focus = True
        self.focus()

    def on_key(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()
        then = self._then if event.key in self._answers else None
        self._close()
        if then is not None:
            then(event.key)

    def on_blur(self) -> None:
        self._hide()

    def _hide(self) -> None:
        self.remove_class("-asking")
        self.can_focus = False

    def _close(self) -> None:
        self._hide()
        if self._before is not None and self._before.is_attached:
            self._before.focus()
