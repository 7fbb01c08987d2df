"""What shows a run, as its controller sees it: the run screen, or a test double."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from handrail_tui.controller.destinations import Destination


class RunDisplay(Protocol):
    """What shows a run, as the controller sees it."""

    @property
    def draft(self) -> str:
        """What is typed and not sent."""

    def note(self, words: str) -> None:
        """A line below the composer; empty takes it away."""

    def give_back(self, text: str, why: str = "") -> None:
        """Put `text` before what is typed, and say why."""

    def focus_composer(self) -> None:
        """Give the keyboard to the composer."""

    def navigate(self, destination: Destination) -> None:
        """Go there."""

    def drive(self, run: Coroutine[Any, Any, None]) -> None:
        """Carry a run in the background."""

    def after(self, seconds: float, call: Callable[[], None]) -> None:
        """Call `call` later, in real time."""

    def refresh_state(self) -> None:
        """Something that events do not tell has changed: draw state and keys again."""

    def close_card(self) -> None:
        """Take the card away; it does not come back for the same trigger."""

    def copy_selection(self) -> bool:
        """Copy what is selected with the mouse; False when nothing is."""

    def show_palette(self) -> None:
        """Open the command palette."""

    def show_search(self) -> None:
        """Open the search bar."""

    def toggle_thinking(self) -> None:
        """Open or fold all thinking."""

    def use_theme(self, name: str) -> str:
        """Use the theme `name`; returns what to say about it, if anything."""

    def leave(self, *, back: bool) -> None:
        """Give the terminal back; `back`: to the screen before this one."""
