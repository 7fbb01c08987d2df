"""A display for tests of the controller: it remembers what it is asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from ports import FakeSession

from handrail.events import Event
from handrail_tui.controller.destinations import Destination
from handrail_tui.controller.run import RunController


class FakeDisplay:
    """`calls` are what it was asked for, in order; `later` waits until a test calls it."""

    def __init__(self) -> None:
        self.draft = ""
        self.selected = False
        self.notes: list[str] = []
        self.returned: list[tuple[str, str]] = []
        self.destinations: list[Destination] = []
        self.calls: list[object] = []
        self.later: list[Callable[[], None]] = []
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def noted(self) -> str:
        return self.notes[-1] if self.notes else ""

    def note(self, words: str) -> None:
        self.notes.append(words)

    def give_back(self, text: str, why: str = "") -> None:
        self.returned.append((text, why))

    def focus_composer(self) -> None:
        self.calls.append("focus")

    def navigate(self, destination: Destination) -> None:
        self.destinations.append(destination)

    def drive(self, run: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.create_task(run))

    def after(self, seconds: float, call: Callable[[], None]) -> None:
        self.later.append(call)

    def refresh_state(self) -> None:
        pass

    def close_card(self) -> None:
        self.calls.append("close card")

    def copy_selection(self) -> bool:
        return self.selected

    def show_palette(self) -> None:
        self.calls.append("palette")

    def show_search(self) -> None:
        self.calls.append("search")

    def toggle_thinking(self) -> None:
        self.calls.append("thinking")

    def use_theme(self, name: str) -> str:
        return f"theme {name}"

    def leave(self, *, back: bool) -> None:
        self.calls.append(("leave", back))


class Stage:
    """A controller between a session and a display."""

    def __init__(self, **more: Any) -> None:
        self.session, self.display = FakeSession(), FakeDisplay()
        self.controller = RunController(self.session, self.display, **more)
        self.session.listen(self.controller.on_event)

    async def start(self, *events: Event) -> None:
        """Begin a run and play `events`."""
        self.controller.drive(self.session.run("a task"))
        await settle()
        self.session.play(events)
        await settle()

    @property
    def told(self) -> list[tuple[Any, ...]]:
        """What the session was told since the run began."""
        return [told for told in self.session.told if told != ("run", "a task")]


async def settle() -> None:
    """Let tasks run as far as they can."""
    for _ in range(5):
        await asyncio.sleep(0)
