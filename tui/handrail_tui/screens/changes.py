"""Changes: the files that the run touched, the whole diff of each, and undo of a turn."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from handrail.errors import ConfigError
from handrail.session.changes import FileChange, of_turn
from handrail_tui.controller.changes import RunChanges
from handrail_tui.view.text import clean_for_terminal, one_line, plural
from handrail_tui.widgets.bindings import bindings
from handrail_tui.widgets.cards import diff
from handrail_tui.widgets.footer import KeyLine
from handrail_tui.widgets.question import Question
from handrail_tui.widgets.transcript_rows import styled

_NONE: Final = "No files edited yet. Changes made by shell commands are not tracked."


class ChangesScreen(ModalScreen[None]):
    """A list of files, and what was done to the marked one, turn by turn."""

    DEFAULT_CSS = Path(__file__).with_suffix(".tcss").read_text(encoding="utf-8")
    BINDINGS = bindings("changes")

    def __init__(self, changes: RunChanges) -> None:
        super().__init__()
        self._changes, self._found = changes, changes.found
        self._paths = list(dict.fromkeys(change.path for change in self._found))

    def compose(self) -> ComposeResult:
        words = (
            f"   {plural(len(self._paths), 'file')}; changes made by shell commands are not tracked"
            if self._paths
            else ""
        )
        yield Static(styled(("Changes", "bold $accent"), (words, "$dim")), classes="changes--head")
        if not self._paths:
            yield Static(styled((_NONE, "$dim")), classes="changes--none")
        else:
            with Horizontal(classes="changes--body"):
                yield OptionList(*(Option(self._row(path)) for path in self._paths), classes="changes--list")
                with VerticalScroll(classes="changes--detail", can_focus=False):
                    yield Static()
        yield Question()
        yield Static(classes="changes--note")
        yield KeyLine(self)

    def on_mount(self) -> None:
        if self._paths:
            self.query_one(OptionList).focus()

    def on_resize(self) -> None:
        self.set_class(self.app.size.width < 100, "-narrow")

    def _of(self, path: str) -> list[FileChange]:
        return [change for change in self._found if change.path == path]

    def _row(self, path: str) -> Content:
        mine = self._of(path)
        added, removed = sum(c.added for c in mine), sum(c.removed for c in mine)
        new = "  new" if mine[0].new else ""
        sums = styled((f"+{added}", "$accepted"), " ", (f"−{removed}", "$rejected"), (new, "$dim"))
        return styled((one_line(path, 200), "$foreground"), "\n  ") + sums

    @on(OptionList.OptionHighlighted)
    def _marked(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        path = self._paths[event.option_index]
        parts: list[Content] = []
        several = len({change.run for change in self._found}) > 1
        for change in self._of(path):
            where = f"run {change.run}, turn {change.turn}" if several else f"turn {change.turn}"
            parts += [styled((where, "bold $faint")), diff.render(change.diff, change.path), Content("")]
        detail = self.query_one(VerticalScroll)
        detail.query_one(Static).update(Content("\n").join(parts))
        detail.scroll_home(animate=False)

    def tell(self, words: str) -> None:
        """The result of what was asked for."""
        self.query_one(".changes--note", Static).update(Content(clean_for_terminal(words)))

    def action_detail(self, what: str) -> None:
        """Scroll the diff while the list has the keyboard."""
        for detail in self.query(VerticalScroll):
            getattr(detail, f"scroll_{what}")(animate=False)

    def action_undo(self) -> None:
        """Undo the last turn that changed the marked file, after a question."""
        if not self._paths:
            return
        if self._changes.why_not:
            self.tell(self._changes.why_not)
            return
        marked = self.query_one(OptionList).highlighted or 0
        last = self._of(self._paths[marked])[-1]
        undone = [c for c in of_turn(self._found, last.turn) if c.run == last.run]
        if not undone:
            self.tell(f"Turn {last.turn} belongs to an earlier run; it cannot be undone here.")
            return
        later = self._found[self._found.index(undone[-1]) + 1 :]
        files = ", ".join(dict.fromkeys(change.path for change in undone))
        self.query_one(Question).ask(
            f"Undo what turn {last.turn} changed: {files}?",
            {"y": "undo"},
            lambda key: self._carry_out(undone, later),
        )

    @work(exclusive=True)
    async def _carry_out(self, undone: Sequence[FileChange], later: Sequence[FileChange]) -> None:
        try:
            paths = await asyncio.to_thread(self._changes.undo, undone, later)
        except (ConfigError, OSError) as error:
            self.tell(str(error))
            return
        turn = undone[0].turn
        self._changes.record_undo(turn, paths)
        self.tell(
            f"Turn {turn} is undone: {', '.join(paths)}. The model does not know; tell it in your next message."
        )
