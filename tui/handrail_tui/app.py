"""The program on a terminal: an app around one session, and `run_session`, which runs it.

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
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual.app import App, SystemCommand
from textual.binding import BindingType
from textual.screen import Screen

from handrail.events import Event
from handrail.providers.base import Provider
from handrail_tui import theming
from handrail_tui.port import Last, SessionPort
from handrail_tui.screens.run import RunScreen
from handrail_tui.screens.themes import ThemesScreen
from handrail_tui.text import clean_for_terminal, one_line

if TYPE_CHECKING:
    from textual import command

_SIGNALS: Final = ("SIGTERM", "SIGHUP")
_COLLECT: Final = (50_000, 50, 1_000)
_PATIENCE_S: Final = 3.0
"""Seconds that a suspended run gets to end by itself before the terminal is given back anyway."""


def _run_commands() -> type[command.Provider]:
    """The palette of the run screen, imported when it is opened."""
    from handrail_tui.screens.palette import RunCommands

    return RunCommands


class HandrailApp(App[Last], inherit_bindings=False):
    """One session on a terminal."""

    TITLE = "handrail"
    CSS_PATH = "app.tcss"
    BINDINGS: ClassVar[list[BindingType]] = []
    COMMANDS = App.COMMANDS | {_run_commands}
    # The screen binds ctrl+p under an id of its own, so that settings can remap it.
    COMMAND_PALETTE_BINDING = "ctrl+backslash"

    def __init__(
        self,
        session: SessionPort,
        begin: Callable[[], Coroutine[Any, Any, Last]] | None = None,
        *,
        theme: str | None = None,
        themes: Path | None = None,
        keys: Mapping[str, str] | None = None,
        journal: str = "",
        make_provider: Callable[[str], Provider] | None = None,
        on_signal: Callable[[str], None] = lambda name: None,
    ) -> None:
        """`begin` starts the first run. `themes` is the folder of a person's own, `keys` maps actions to keys.

        `on_signal` hears of a signal that ends the program.
        """
        super().__init__()
        self.session = session
        self._on_signal = on_signal
        self._themes = theming.install(self, themes)
        self._wanted_theme = theme
        self.theme = theme if theme in self.available_themes else theming.DEFAULT
        if keys:
            self.set_keymap(keys)
        home = str(Path.home())
        self.run_screen = RunScreen(
            session, begin=begin, home=home, journal=journal, make_provider=make_provider
        )

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return theming.defaults()

    def get_default_screen(self) -> Screen[None]:
        return self.run_screen

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        yield SystemCommand("Theme", "choose the colours", self.search_themes)

    def search_themes(self) -> None:
        """Choose a theme, with a preview of each."""
        self.push_screen(ThemesScreen(self._themes))

    def on_mount(self) -> None:
        theming.watch(self, self._themes)
        if self._wanted_theme is not None and self._wanted_theme != self.theme:
            names = ", ".join(sorted(self.available_themes))
            self.notify(f"no theme {one_line(self._wanted_theme, 60)}; there are {names}", markup=False)
        loop = asyncio.get_running_loop()
        for name in _SIGNALS:
            if number := getattr(signal, name, None):
                # Not on every platform, and not outside the main thread.
                with suppress(NotImplementedError, RuntimeError, ValueError):
                    loop.add_signal_handler(number, self._signalled, name)

    def on_unmount(self) -> None:
        loop = asyncio.get_running_loop()
        for name in _SIGNALS:
            if number := getattr(signal, name, None):
                with suppress(NotImplementedError, RuntimeError, ValueError):
                    loop.remove_signal_handler(number)

    def _signalled(self, name: str) -> None:
        """Give the terminal back, and suspend the run (rule J7)."""
        if name == "SIGHUP":
            _let_the_terminal_go()
        self.run_screen.suspend_and_leave(name)
        asyncio.get_running_loop().call_later(_PATIENCE_S, self.run_screen.leave)
        self._on_signal(name)


class Watchdog:
    """Ends the program some seconds after a signal, should it still be there.

    Writing to a terminal that is gone may block for ever; by then everything is on disk.
    """

    def __init__(self) -> None:
        self._timer: threading.Timer | None = None

    def arm(self, name: str) -> None:
        """`name` is the signal that came; the exit code tells it."""
        self._timer = threading.Timer(2 * _PATIENCE_S, os._exit, (128 + signal.Signals[name],))
        self._timer.daemon = True
        self._timer.start()

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def _let_the_terminal_go() -> None:
    """Nobody reads what is written from now on: writes to a terminal that hung up must not fail."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        if os.isatty(stream):
            os.dup2(nowhere, stream)
    os.close(nowhere)


def run_session(
    session: SessionPort,
    begin: Callable[[], Coroutine[Any, Any, Last]],
    *,
    past: Iterable[Event] = (),
    theme: str | None = None,
    themes: Path | None = None,
    keys: Mapping[str, str] | None = None,
    journal: str = "",
    make_provider: Callable[[str], Provider] | None = None,
) -> Last | None:
    """Carry the run that `begin` begins on the screen, until the person leaves. Returns the last outcome, if any.

    `past` is what happened in the session before: it stands above the run. Afterwards a line on stderr says how
    it ended and, when the session is kept in `journal`, how to go on; another one what was typed and not sent.
    """

    async def carry() -> Last:
        app.run_screen.recall(past)
        return await begin()

    watchdog = Watchdog()
    app = HandrailApp(
        session,
        carry,
        theme=theme,
        themes=themes,
        keys=keys,
        journal=journal,
        make_provider=make_provider,
        on_signal=watchdog.arm,
    )
    # A full collection over a long transcript would hold the keys for a tenth of a second: it is made seldom.
    gc.freeze()
    gc.set_threshold(*_COLLECT)
    try:
        last = app.run()
    finally:
        watchdog.cancel()
    if app.return_code == 0:
        _say_goodbye(app, last, journal)
    return last


def _say_goodbye(app: HandrailApp, last: Last | None, journal: str) -> None:
    """A line or two where the screen was: the terminal may be gone, then nobody reads them."""
    outcome = "no run" if last is None else "interrupted" if last.type == "run_interrupted" else last.outcome
    name = one_line(app.run_screen.view.header.session, 80)
    parts = [f"handrail: {outcome}"]
    if journal and name:
        parts += [f"session {name}", journal, f"go on: handrail resume {name}"]
    lines = ["   ".join(parts)]
    if unsent := clean_for_terminal(app.run_screen.unsent).strip():
        lines.append(f"not sent: {unsent}")
    with suppress(OSError):
        print("\n".join(lines), file=sys.stderr)  # noqa: T201
