"""Replay: the run screen, fed with what happened before. Nothing can be said to it but how to play."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.widgets import Static

from handrail.events import Event
from handrail_tui.screens.run import RunScreen
from handrail_tui.sessions.replay import Replay
from handrail_tui.view.text import clean_for_terminal
from handrail_tui.widgets.cards.chosen import Choice
from handrail_tui.widgets.footer import RunFooter
from handrail_tui.widgets.replay_bar import ReplayBar
from handrail_tui.widgets.transcript_rows import styled


class ReplayScreen(RunScreen):
    """A stored run, told again with its timing."""

    DEFAULT_CSS = Path(__file__).with_suffix(".tcss").read_text(encoding="utf-8")
    acts: ClassVar[bool] = False
    AUTO_FOCUS = ""
    FIRST_KEYS: ClassVar[str] = "replay."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "back", id="replay.leave"),
        Binding("space", "play", "play, pause", id="replay.play"),
        Binding("left", "turn(-1)", "turn before", id="replay.turn_before", key_display="←"),
        Binding("right", "turn(1)", "next turn", id="replay.next_turn", key_display="→"),
        Binding("plus,equals_sign", "faster(1)", "faster", id="replay.faster", key_display="+"),
        Binding("minus", "faster(-1)", "slower", id="replay.slower", key_display="-"),
        Binding("up", "transcript('line', -1)", "up", show=False, id="replay.up"),
        Binding("down", "transcript('line', 1)", "down", show=False, id="replay.down"),
        Binding("0", "seek_home", "from the beginning", show=False, id="replay.beginning"),
        Binding("ctrl+c", "quit", "quit", show=False, id="replay.interrupt"),
    ]

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

    def refresh_facts(self) -> None:
        super().refresh_facts()
        for bar in self.query(ReplayBar):
            bar.refresh()

    @on(Choice)
    def _only_watched(self, event: Choice) -> None:
        """A card of the past: what is chosen on it changes nothing."""
        event.stop()
        event.prevent_default()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action not in ("stop", "sessions") and super().check_action(action, parameters)

    # Actions ------------------------------------------------------------------------------------------------

    def action_leave(self) -> None:
        """To where one came from; out of the program when it was from nowhere."""
        if self.returns:
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
