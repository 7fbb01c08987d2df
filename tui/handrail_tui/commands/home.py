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
        raise ConfigError(f"'{folder}' is no folder. Give the folder that a new run works in.")
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
