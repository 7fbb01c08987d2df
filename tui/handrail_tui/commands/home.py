"""`handrail [DIR]`: the home screen."""

from __future__ import annotations

from pathlib import Path

import click

from handrail.errors import ConfigError


@click.command(hidden=True)
@click.argument("folder", metavar="[DIR]", required=False, default=".")
@click.pass_context
def home(ctx: click.Context, folder: str) -> int:
    """The sessions, and a new run in DIR. Without a terminal: the help."""
    from handrail_tui.sessions.headless import OutputMode

    path = Path(folder)
    if not path.is_dir():
        raise ConfigError(f"'{folder}' is not a folder. Give the folder for new runs.")
    if OutputMode.on_screen():
        return _show(path.resolve())
    where = "" if folder == "." else f"--cwd {click.format_filename(folder)} "
    root = ctx.find_root()
    click.echo(root.get_help())
    click.echo(f'\nTo start: handrail demo, or handrail run {where}"what to do".')
    return 0


def _show(folder: Path) -> int:
    from handrail import settings
    from handrail.clock import RealClock
    from handrail.session.store import Store
    from handrail_tui.commands._screen import show_screen
    from handrail_tui.screens.home import HomeScreen
    from handrail_tui.sessions.demo import builtin_demos
    from handrail_tui.sessions.model import resolve_model
    from handrail_tui.sessions.project_trust import ask_for_trust

    ask_for_trust(folder)

    def model() -> str | None:
        try:
            return resolve_model(settings.load(folder).settings).model.name
        except ConfigError:
            return None

    chosen = settings.load(folder).settings
    screen = HomeScreen(Store(), folder, RealClock(), model=model, demos=builtin_demos)
    code, _ = show_screen(screen, chosen)
    return code
