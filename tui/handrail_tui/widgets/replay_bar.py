"""Where a replay is: playing or not, how fast, which turn, how much is left."""

from __future__ import annotations

from textual import events
from textual.content import Content
from textual.widget import Widget

from handrail_tui.sessions.replay import Replay
from handrail_tui.view.text import countdown
from handrail_tui.widgets.transcript_rows import bar, styled


class ReplayBar(Widget):
    """One line: a bar of playing time. A click on it goes there."""

    DEFAULT_CSS = "ReplayBar { height: 1; width: 1fr; padding: 0 2; background: $panel; }"

    def __init__(self, replay: Replay) -> None:
        super().__init__()
        self._replay = replay
        self._from = self._cells = 0

    def render(self) -> Content:
        replay, track = self._replay, self._replay.track
        state = "▶ REPLAY" if replay.playing else "■ ENDED " if replay.at_end else "‖ PAUSED"
        left = styled((state, "bold $accent"), (f"  {replay.speed:g}×", "$foreground"))
        left = left + styled((f"  turn {track.turn_at(replay.position)} of {len(track.turns)}  ", "$dim"))
        right = styled((f"  {countdown(replay.position)} of {countdown(track.length)}", "$dim"))
        room = self.content_size.width - left.cell_length - right.cell_length
        self._from, self._cells = left.cell_length, max(0, room)
        if room < 4:
            return left.truncate(max(1, self.content_size.width), ellipsis=True)
        return left + bar(room, replay.position / track.length if track.length else 1.0) + right

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is not None and self._cells and 0 <= offset.x - self._from < self._cells:
            self._replay.seek(self._replay.track.length * (offset.x - self._from) / self._cells)
            self.refresh()
