"""`handrail [DIR]`: where a person starts."""

from __future__ import annotations

from pathlib import Path

import click

from handrail.errors import ConfigError


@click.command(hidden=True)
@click.argument("folder", metavar="[DIR]", required=False, default=".")
@click.pass_context
def home(ctx: click.Context, folder: str) -> int:
    """What can be done here, until a command is given."""
    if not Path(folder).is_dir():
        raise ConfigError(f"'{folder}' is no folder. Give the folder that a new run works in.")
    where = "" if folder == "." else f"--cwd {click.format_filename(folder)} "
    root = ctx.find_root()
    click.echo(root.get_help())
    click.echo(f'\nTo begin: handrail demo, or handrail run {where}"what to do".')
    return 0
