"""One session on a terminal: an app around its run screen, and `run_session`, which shows it until it is left."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any

from handrail.events import Event, RunEnded
from handrail.providers.base import Provider
from handrail.session.protocol import SessionProtocol
from handrail_tui.program import Program, UiPrefs, Watchdog, show
from handrail_tui.screens.run import RunScreen


class HandrailApp(Program):
    """One session on a terminal."""

    def __init__(
        self,
        session: SessionProtocol,
        begin: Callable[[], Coroutine[Any, Any, RunEnded]] | None = None,
        *,
        past: Iterable[Event] = (),
        prefs: UiPrefs | None = None,
        journal: str = "",
        make_provider: Callable[[str], Provider] | None = None,
        on_signal: Callable[[str], None] = lambda name: None,
    ) -> None:
        """`begin` starts the first run, `past` stands above it.

        `on_signal` is called with the name of a signal that ends the program.
        """
        self.session = session
        self.run_screen = RunScreen(
            session,
            begin=begin,
            past=past,
            home=str(Path.home()),
            journal=journal,
            make_provider=make_provider,
        )
        super().__init__(self.run_screen, prefs, on_signal)
        self.seen = self.run_screen


def run_session(
    session: SessionProtocol,
    begin: Callable[[], Coroutine[Any, Any, RunEnded]] | None,
    *,
    past: Iterable[Event] = (),
    prefs: UiPrefs | None = None,
    journal: str = "",
    make_provider: Callable[[str], Provider] | None = None,
) -> RunEnded | None:
    """Carry the run that `begin` begins on the screen, until the person leaves. Returns the last outcome, if any.

    `past` is what happened in the session before: it stands above the run. `journal` is where the session is kept.
    """
    watchdog = Watchdog()
    app = HandrailApp(
        session,
        begin,
        past=past,
        prefs=prefs,
        journal=journal,
        make_provider=make_provider,
        on_signal=watchdog.arm,
    )
    return show(app, watchdog)
