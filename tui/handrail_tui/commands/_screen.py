"""Showing a session or a screen on the terminal, for the commands. Textual is imported only here, on use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from handrail import settings

if TYPE_CHECKING:
    from textual.screen import Screen

    from handrail.events import RunEnded
    from handrail_tui.program import UiPrefs
    from handrail_tui.sessions.prepare import PreparedSession


def show_session(prepared: PreparedSession) -> RunEnded | None:
    """Show a session until the person leaves; returns the last event of its last run, if there was one."""
    from handrail_tui.app import run_session

    return run_session(
        prepared.session,
        prepared.begin,
        past=prepared.past,
        prefs=_ui_prefs(prepared.settings),
        journal=prepared.journal,
        make_provider=prepared.make_provider,
    )


def show_screen(first: Screen[Any], chosen: settings.Settings) -> tuple[int, RunEnded | None]:
    """Show `first` until the person leaves: the program's own exit code, and how the run in front ended, if any."""
    from handrail_tui.program import Program, Watchdog, show

    watchdog = Watchdog()
    program = Program(first, _ui_prefs(chosen), watchdog.arm)
    last = show(program, watchdog)
    return program.return_code or 0, last


def _ui_prefs(chosen: settings.Settings) -> UiPrefs:
    from handrail_tui.program import UiPrefs

    return UiPrefs(chosen.theme, settings.user_file().parent / "themes", chosen.keys)
