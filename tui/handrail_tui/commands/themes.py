"""`handrail themes`: list the colour themes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from handrail import settings
from handrail.toml import short_path
from handrail_tui.view.text import one_line

if TYPE_CHECKING:
    from handrail_tui.widgets.theming import Source

_SWATCH = ("person", "tool", "decision", "waiting", "needs-you", "accepted", "rejected")


@click.command()
def themes() -> int:
    """The colour themes, built-in and your own; a star marks the one in use.

    \b
    handrail themes                               the list
    HANDRAIL_THEME=handrail-light handrail demo   try one
    handrail config edit                          set one: theme = "handrail-light"
    """
    from handrail_tui.widgets import theming

    folder = settings.user_file().parent / "themes"
    chosen = settings.load(Path.cwd()).settings.theme or theming.DEFAULT
    every = theming.Themes(folder)
    problems = every.poll().problems
    for name, source in every.sources.items():
        mark = "*" if name == chosen else " "
        ground = "ansi" if source.ansi else "dark" if source.dark else "light"
        click.echo(
            f"{mark} {one_line(name, 24):<24} {ground:<6} {_swatch(source)} {one_line(source.title, 40)}"
        )
    if chosen not in every.sources:
        problems.append(f"The theme '{chosen}' of the settings does not exist; using {theming.DEFAULT}.")
    for problem in problems:
        click.echo(f"! {one_line(problem, 300)}", err=True)
    click.echo(
        f"\nYour own themes: TOML files in {short_path(folder)}; changes are picked up while Handrail runs."
    )
    return 2 if problems else 0


def _swatch(source: Source) -> str:
    """The colours of a theme as coloured letters; click removes the colours where there is no terminal."""
    return "".join(_painted(source.colors[name], name[0].upper()) for name in _SWATCH)


def _painted(color: str, letter: str) -> str:
    if not (color.startswith("#") and len(color) == 7):
        return click.style(letter, fg=color.removeprefix("ansi_") if color.startswith("ansi_") else None)
    return click.style(letter, fg=(int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)))
