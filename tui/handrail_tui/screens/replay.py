"""Replay: the run screen, fed with what happened before. Only playing it can be controlled."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

from textual.widgets import Static

from handrail.events import Event
from handrail_tui.screens.run import RunScreen
from handrail_tui.sessions.replay import Replay
from handrail_tui.view.text import clean_for_terminal
from handrail_tui.widgets.bindings import bindings
from handrail_tui.widgets.footer import RunFooter
from handrail_tui.widgets.replay_bar import ReplayBar
from handrail_tui.widgets.transcript_rows import styled


class ReplayScreen(RunScreen):
    """A stored run, played again with its timing."""

    DEFAULT_CSS = Path(__file__).with_suffix(".tcss").read_text(encoding="utf-8")
    READ_ONLY: ClassVar[bool] = True
    AUTO_FOCUS = ""
    FIRST_KEYS: ClassVar[str] = "replay."
    BINDINGS = bindings("replay")

    def __init__(self, events: Iterable[Event], *, plays: bool = True, note: str = "", **more: Any) -> None:
        """`plays`: from the beginning; else all of it stands there to be read. `note` is said of it.

        The rest is RunScreen's.
        """
        self.replay = Replay(events)
        self._plays, self._note = plays, note
        super().__init__(self.replay, **more)

    def on_mount(self) -> None:
        self.composer.disabled = True
        self.replay.on_rewind = self.forget
        footer = self.query_one(RunFooter)
        self.mount(ReplayBar(self.replay), before=footer)
        if self._note:
            words = styled((clean_for_terminal(self._note), "$waiting"))
            self.mount(Static(words, id="replay--note"), before=footer)
        self.call_after_refresh(self._begin_to_play)

    def _begin_to_play(self) -> None:
        if self._plays:
            self.replay.play()
        else:
            self.replay.seek(self.replay.track.length)

    async def on_unmount(self) -> None:
        self.replay.close()

    def refresh_around(self) -> None:
        super().refresh_around()
        for bar in self.query(ReplayBar):
            bar.refresh()

    # Actions ------------------------------------------------------------------------------------------------

    def action_leave(self) -> None:
        """Back to the screen before; without one, quit."""
        if self.controller.returns:
            self.dismiss(None)
        else:
            self.app.exit()

    def action_play(self) -> None:
        """Play, or stand still."""
        if self.replay.playing:
            self.replay.pause()
        else:
            self.replay.play()
        self.tick()

    def action_turn(self, by: int) -> None:
        """To the next turn or the one before."""
        self.replay.turn(by)
        self.tick()

    def action_faster(self, by: int) -> None:
        """The next speed, up or down."""
        self.replay.faster(by)
        self.tick()

    def action_seek_home(self) -> None:
        """Back to the beginning."""
        self.replay.seek(0.0)
        self.tick()
