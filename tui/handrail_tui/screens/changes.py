"""Changes: the files that the run touched, the whole diff of each, and taking a turn back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from handrail.errors import ConfigError
from handrail.events import RunStarted
from handrail.session.changes import FileChange, changes, of_turn, undo
from handrail_tui.view.text import clean_for_terminal, one_line, plural
from handrail_tui.widgets.cards import diff
from handrail_tui.widgets.footer import KeyLine
from handrail_tui.widgets.question import Question
from handrail_tui.widgets.transcript_rows import styled

if TYPE_CHECKING:
    from handrail_tui.screens.run import RunScreen

_NONE: Final = "No file was changed by the tools for files; what commands did is not on record."


def changes_of(screen: RunScreen) -> ChangesScreen:
    """The changes of the run on `screen`. They can be undone while nothing runs, and the journal says so."""
    session = screen.session
    folders = [event.cwd for event in screen.on_files if isinstance(event, RunStarted)]
    found = changes(screen.on_files)

    def take_back(undone: Sequence[FileChange], later: Sequence[FileChange]) -> list[str]:
        return undo(undone, later, Path(folders[-1]), session.clock)

    def taken(turn: int, paths: Sequence[str]) -> None:
        session.notice(f"the person took back what turn {turn} changed: {', '.join(paths)}")

    if not screen.acts:
        why_not = "This is what happened; handrail changes --undo takes a turn back."
    else:
        why_not = "Stop the run first: a tool may be writing these files now." if session.running else ""
    return ChangesScreen(found, take_back, taken, why_not)


class ChangesScreen(ModalScreen[None]):
    """A list of files, and what was done to the marked one, turn by turn."""

    DEFAULT_CSS = Path(__file__).with_suffix(".tcss").read_text(encoding="utf-8")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("u", "undo", "undo its last turn", id="changes.undo"),
        Binding("pagedown", "detail('page_down')", "page down", show=False, id="changes.page_down"),
        Binding("pageup", "detail('page_up')", "page up", show=False, id="changes.page_up"),
        Binding("escape,ctrl+g,q", "dismiss", "back", id="changes.back"),
    ]

    def __init__(
        self,
        found: Sequence[FileChange],
        take_back: Callable[[Sequence[FileChange], Sequence[FileChange]], list[str]],
        taken: Callable[[int, Sequence[str]], None],
        why_not: str = "",
    ) -> None:
        """`take_back` undoes changes (blocking), `taken` hears of which turn and files. `why_not`: nothing can be."""
        super().__init__()
        self._found, self._take_back, self._taken, self._why_not = found, take_back, taken, why_not
        self._paths = list(dict.fromkeys(change.path for change in found))

    def compose(self) -> ComposeResult:
        words = (
            f"   {plural(len(self._paths), 'file')}; what commands did is not on record"
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
        """What came of something."""
        self.query_one(".changes--note", Static).update(Content(clean_for_terminal(words)))

    def action_detail(self, what: str) -> None:
        """Scroll the diff while the list has the keyboard."""
        for detail in self.query(VerticalScroll):
            getattr(detail, f"scroll_{what}")(animate=False)

    def action_undo(self) -> None:
        """Take back the last turn that changed the marked file, after a question."""
        if not self._paths:
            return
        if self._why_not:
            self.tell(self._why_not)
            return
        marked = self.query_one(OptionList).highlighted or 0
        last = self._of(self._paths[marked])[-1]
        undone = [c for c in of_turn(self._found, last.turn) if c.run == last.run]
        if not undone:
            self.tell(f"Turn {last.turn} of an earlier run is no longer the last of its number.")
            return
        later = self._found[self._found.index(undone[-1]) + 1 :]
        files = ", ".join(dict.fromkeys(change.path for change in undone))
        self.query_one(Question).ask(
            f"Take back what turn {last.turn} changed: {files}?",
            {"y": "take it back"},
            lambda key: self._carry_out(undone, later),
        )

    @work(exclusive=True)
    async def _carry_out(self, undone: Sequence[FileChange], later: Sequence[FileChange]) -> None:
        try:
            paths = await asyncio.to_thread(self._take_back, undone, later)
        except (ConfigError, OSError) as error:
            self.tell(str(error))
            return
        turn = undone[0].turn
        self._taken(turn, paths)
        self.tell(f"Turn {turn} is undone: {', '.join(paths)}. The model is not told; say so when you go on.")
