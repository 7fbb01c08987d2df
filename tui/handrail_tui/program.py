"""The Textual app around every screen: themes, keys, the palette, signals, and a clean end on the terminal.

A lone Esc must act at once: the delay in which Textual waits for the rest of a sequence is set before Textual
is imported.
"""

from __future__ import annotations

import os

os.environ.setdefault("ESCDELAY", "25")

import asyncio
import gc
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual import work
from textual.app import App, SystemCommand
from textual.binding import BindingType
from textual.screen import Screen

from handrail.errors import ConfigError
from handrail.events import RunEnded
from handrail_tui import navigation
from handrail_tui.controller.destinations import (
    OpenDemo,
    OpenReplay,
    OpenRun,
    OpenStored,
    OpenThemes,
    OpenToRead,
    SessionDestination,
)
from handrail_tui.screens.navigate import Navigate
from handrail_tui.screens.run import RunScreen
from handrail_tui.screens.themes import ThemesScreen
from handrail_tui.sessions import signals
from handrail_tui.view import wording
from handrail_tui.view.listing import resume_command
from handrail_tui.view.text import clean_for_terminal, one_line
from handrail_tui.widgets import theming

if TYPE_CHECKING:
    from textual import command

_SIGNALS: Final = ("SIGTERM", "SIGHUP")
_COLLECT: Final = (50_000, 50, 1_000)
_PATIENCE_S: Final = 3.0
"""Seconds that a suspended run has to end by itself before the program ends anyway."""


@dataclass(frozen=True, slots=True)
class UiPrefs:
    """A person's preferences: `theme`, the folder of their own `themes`, `keys` by the id of an action."""

    theme: str | None = None
    themes: Path | None = None
    keys: Mapping[str, str] = field(default_factory=dict)


def _run_commands() -> type[command.Provider]:
    """The palette of the run screen, imported when it is opened."""
    from handrail_tui.screens.palette import RunCommands

    return RunCommands


class Program(App[RunEnded], inherit_bindings=False):
    """Shows `first`, and what is opened from it."""

    TITLE = "handrail"
    CSS_PATH = "app.tcss"
    BINDINGS: ClassVar[list[BindingType]] = []
    COMMANDS = App.COMMANDS | {_run_commands}
    # The screen binds ctrl+p under an id of its own, so that settings can remap it.
    COMMAND_PALETTE_BINDING = "ctrl+backslash"

    def __init__(
        self,
        first: Screen[Any],
        prefs: UiPrefs | None = None,
        on_signal: Callable[[str], None] = lambda name: None,
    ) -> None:
        """`on_signal` is called with the name of a signal that ends the program."""
        super().__init__()
        prefs = prefs or UiPrefs()
        self._first, self._on_signal = first, on_signal
        self._themes = theming.install(self, prefs.themes)
        self._wanted_theme = prefs.theme
        self.theme = prefs.theme if prefs.theme in self.available_themes else theming.DEFAULT
        if prefs.keys:
            self.set_keymap(prefs.keys)
        self._open: list[navigation.OpenScreen] = []
        self.seen: RunScreen | None = None
        """The run that is looked at."""

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return theming.defaults()

    def get_default_screen(self) -> Screen[Any]:
        return self._first

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        yield SystemCommand("Theme", "choose the colours", self.search_themes)

    def search_themes(self) -> None:
        """Choose a theme, with a preview of each."""
        self.push_screen(ThemesScreen(self._themes))

    def on_mount(self) -> None:
        theming.watch(self, self._themes)
        if self._wanted_theme is not None and self._wanted_theme != self.theme:
            names = ", ".join(theming.names(self))
            self.notify(f"no theme {one_line(self._wanted_theme, 60)}; there are {names}", markup=False)
        signals.listen({name: partial(self._signalled, name) for name in _SIGNALS})

    def on_unmount(self) -> None:
        signals.ignore(_SIGNALS)

    # Runs ---------------------------------------------------------------------------------------------------

    @property
    def run_in_front(self) -> RunScreen | None:
        """The run on the screen, whatever stands over it."""
        return next((s for s in reversed(self.screen_stack) if isinstance(s, RunScreen)), None)

    def on_navigate(self, message: Navigate) -> None:
        """Build the screen that was asked for, and show it."""
        message.stop()
        match message.destination:
            case OpenThemes():
                self.search_themes()
            case OpenRun() | OpenStored() | OpenToRead() | OpenReplay() | OpenDemo() as session:
                self._open_session(session, message)
            case overlay:
                screen = navigation.overlay(overlay, list(self.screen.active_bindings.values()))

                def back(words: str | None) -> None:
                    if words:
                        message.unsent(words)

                self.push_screen(screen, back)

    @work(exclusive=True, group="open")
    async def _open_session(self, destination: SessionDestination, message: Navigate) -> None:
        """Open a session in a thread, show it until it is left, and close it."""
        try:
            opened = await asyncio.to_thread(navigation.open_session, destination)
        except ConfigError as error:
            message.refused(str(error))
            return
        self._open.append(opened)
        self.seen = screen = opened.screen()
        await self.push_screen_wait(screen)
        self.seen = None
        self._open.remove(opened)
        opened.close()
        if screen.unsent.strip():
            message.unsent(screen.unsent)

    def close_all(self) -> None:
        """Close the sessions that are still open when the program ends."""
        while self._open:
            self._open.pop().close()

    def _signalled(self, name: str) -> None:
        """Give the terminal back, and suspend the run (rule J7)."""
        if name == "SIGHUP":
            _detach_terminal()
        self._on_signal(name)
        if (screen := self.run_in_front) is None:
            self.exit(return_code=128 + signal.Signals[name])
            return
        screen.controller.suspend_and_leave(name)
        asyncio.get_running_loop().call_later(_PATIENCE_S, screen.controller.leave_now)


class Watchdog:
    """Ends the program some seconds after a signal, should it still be there.

    Writing to a terminal that is gone may block for ever; by then everything is on disk.
    """

    def __init__(self) -> None:
        self._timer: threading.Timer | None = None

    def arm(self, name: str) -> None:
        """`name` is the signal that came; the exit code is made from it."""
        self._timer = threading.Timer(2 * _PATIENCE_S, os._exit, (128 + signal.Signals[name],))
        self._timer.daemon = True
        self._timer.start()

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def _detach_terminal() -> None:
    """Send output nowhere from now on: writes to a terminal that hung up must not fail."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        if os.isatty(stream):
            os.dup2(nowhere, stream)
    os.close(nowhere)


def show(program: Program, watchdog: Watchdog) -> RunEnded | None:
    """Show the program until the person leaves; returns how the last run ended, if one was on the screen.

    Afterwards a line on stderr says how it ended and, when the session is stored, how to resume it; another one what
    was typed and not sent.
    """
    # A full collection over a long transcript would hold the keys for a tenth of a second: it is made seldom.
    gc.freeze()
    gc.set_threshold(*_COLLECT)
    try:
        last = program.run()
    finally:
        watchdog.cancel()
        program.close_all()
    if program.return_code == 0 and program.seen is not None:
        _print_summary(program.seen, last)
    return last


def _print_summary(screen: RunScreen, last: RunEnded | None) -> None:
    """A line or two where the screen was: the terminal may be gone by then."""
    if last is None or last.type == "run_interrupted":
        outcome = "no run" if last is None else "interrupted"
    else:
        outcome = wording.outcome(last)[0].lower()
    name = one_line(screen.view.header.session, 80)
    parts = [f"handrail: {outcome}"]
    if screen.controller.journal and name:
        command = resume_command(
            name, last.outcome if last is not None and last.type == "run_finished" else None
        )
        # What is needed next comes first: a narrow terminal breaks the line somewhere.
        parts += [f"resume: {command}" if command else f"session {name}", screen.controller.journal]
    lines = ["   ".join(parts)]
    if unsent := clean_for_terminal(screen.unsent).strip():
        lines.append(f"not sent: {unsent}")
    with suppress(OSError):
        print("\n".join(lines), file=sys.stderr)  # noqa: T201
