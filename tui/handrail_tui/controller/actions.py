"""What a run screen can be asked to show: other screens over it, parts of the transcript."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual.screen import Screen

from handrail_tui.screens.changes import changes_of
from handrail_tui.screens.decisions import DecisionsScreen
from handrail_tui.screens.help import HelpScreen
from handrail_tui.screens.queue import QueueScreen
from handrail_tui.widgets.search_bar import SearchBar

if TYPE_CHECKING:
    from handrail_tui.screens.run import RunScreen


class RunActions(Screen[None]):
    """The actions that change nothing in the run."""

    @property
    def _run(self) -> RunScreen:
        return cast("RunScreen", self)

    def action_palette(self) -> None:
        """Search what can be done."""
        self.app.action_command_palette()

    def action_thinking(self) -> None:
        """Open or fold all thoughts."""
        transcript = self._run.transcript
        transcript.show_thinking(not transcript.thinking)

    def action_decisions(self) -> None:
        """Look at each decision and its evidence."""
        self.app.push_screen(DecisionsScreen(self._run.view))

    def action_changes(self) -> None:
        """The files that the run touched, and undo of a turn."""
        self.app.push_screen(changes_of(self._run))

    def action_queue(self) -> None:
        """What waits to be delivered. Words that are withdrawn come back to the composer."""

        def back(words: str | None) -> None:
            if words is not None:
                self._run.composer.give_back(words, "taken back from the queue; enter sends it again")

        self.app.push_screen(QueueScreen(self._run.session, self._run.view), back)

    def action_search(self) -> None:
        """Look for words in the transcript."""
        self.query_one(SearchBar).open()

    def action_help(self) -> None:
        """The keys of what has focus, and the commands."""
        self.app.push_screen(HelpScreen(list(self.active_bindings.values())))

    def action_transcript(self, what: str, by: int = 0) -> None:
        """Scroll the transcript, wherever the keyboard is."""
        action = getattr(self._run.transcript, f"action_{what}")
        action(by) if by else action()
