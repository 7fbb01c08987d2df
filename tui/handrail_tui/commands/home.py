"""`handrail [DIR]`: where a person starts."""

from __future__ import annotations

from pathlib import Path

import click

from handrail.errors import ConfigError


@click.command(hidden=True)
@click.argument("folder", metavar="[DIR]", required=False, default=".")
@click.pass_context
def home(ctx: click.Context, folder: str) -> int:
    """The sessions that are kept, and a new run in DIR. Without a terminal: what can be done here."""
    from handrail_tui.sessions.headless import OutputMode

    path = Path(folder)
    if not path.is_dir():
        raise ConfigError(f"'{folder}' is not a folder. Give the folder that a new run works in.")
    if OutputMode.on_screen():
        return _show(path.resolve())
    where = "" if folder == "." else f"--cwd {click.format_filename(folder)} "
    root = ctx.find_root()
    click.echo(root.get_help())
    click.echo(f'\nTo begin: handrail demo, or handrail run {where}"what to do".')
    return 0


def _show(folder: Path) -> int:
    from handrail import settings
    from handrail.clock import RealClock
    from handrail.session.store import Store
    from handrail_tui.commands.demo import demos_here
    from handrail_tui.program import Program, Watchdog, carry
    from handrail_tui.screens.home import HomeScreen
    from handrail_tui.sessions import prepare

    prepare.ask_for_trust(folder)

    def model() -> str | None:
        try:
            return prepare.resolve(settings.load(folder).settings).model.name
        except ConfigError:
            return None

    chosen = settings.load(folder).settings
    watchdog = Watchdog()
    screen = HomeScreen(Store(), folder, RealClock(), model=model, demos=demos_here)
    program = Program(screen, prepare.ui_prefs_of(chosen), watchdog.arm)
    carry(program, watchdog)
    return program.return_code or 0
