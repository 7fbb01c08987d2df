"""Whether a scenario file may use real tools freely: a file from elsewhere is code (rule H7)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from handrail import settings, trust
from handrail.errors import ConfigError
from handrail.toml import short_path
from handrail_tui.sessions.demo import builtin_demos
from handrail_tui.view.text import one_line, reveal

if TYPE_CHECKING:
    from handrail.scenario import Scenario


def is_trusted(scenario: Scenario) -> bool:
    """Whether the scenario's real tools may run as they are: it has none, came with the program, or lies in a folder
    that the person trusts.

    On a terminal, a file that is not trusted and would run commands is shown first. Raises ConfigError when the person
    does not want them to run.
    """
    from handrail.scenario import would_run

    path = scenario.path.resolve()
    if not scenario.use or path in {demo.resolve() for demo in builtin_demos().values()}:
        return True
    also = settings.load(path.parent).settings.trusted
    if trust.is_trusted(trust.project_root(path.parent), also=also):
        return True
    commands = would_run(scenario)
    if commands and sys.stdin.isatty():
        _ask(scenario, commands)
    return False


def _ask(scenario: Scenario, commands: list[str]) -> None:
    name = one_line(short_path(scenario.path), 300)
    click.echo(f"{name} is not in a folder that you trust. It would run:", err=True)
    for command in commands:
        for line in reveal(command).split("\n"):
            click.echo(f"    {line}", err=True)
    if not click.confirm("Run this, held in a temporary folder without a network?", default=False, err=True):
        raise ConfigError(f"{name}: not run.")
