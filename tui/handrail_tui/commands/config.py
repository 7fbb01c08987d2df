"""`handrail config`: the settings, where each comes from, and which folders are trusted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from handrail import settings, trust
from handrail.errors import ConfigError
from handrail.toml import short_path
from handrail_tui.view.text import clean_for_terminal

_TEMPLATE = """\
# Settings of Handrail. Every line is optional; docs/settings.md lists all of them.
# Environment variables (HANDRAIL_MODEL …) and flags (--model …) override this file.

# model = "anthropic/claude-sonnet-4-5"      # provider/name; `handrail models` lists what you can use
# approve = "ask"                            # ask | edits | all
# theme = "handrail-dark"                    # `handrail themes` lists them

# [bounds]
# max_turns = 50
# deadline_s = "30m"
# max_cost = 2.0

# [recovery]
# max_wait_s = "6h"

# [hooks]
# on_needs_you = "notify-send 'Handrail needs you'"

# [providers.mine]                           # any server that speaks one of the three APIs
# base_url = "http://127.0.0.1:8000/v1"
# api = "openai-chat"
# key = "!pass show mine"                    # or key_env = "MINE_API_KEY"
"""


@click.group(invoke_without_command=True)
@click.pass_context
def config(ctx: click.Context) -> Any:
    """The settings in force and where each comes from.

    \b
    handrail config              the settings in force, and where they were set
    handrail config path         the files that are read
    handrail config edit         open your own file in $EDITOR
    handrail config trust        use this project's AGENTS.md, tools and keys
    """
    return ctx.invoke(show) if ctx.invoked_subcommand is None else None


@config.command()
def path() -> None:
    """The files that are read, and whether they exist.

    \b
    handrail config path
    """
    own, project = settings.user_file(), settings.project_file(Path.cwd())
    click.echo(f"{own}{'' if own.exists() else '  (does not exist; handrail config edit creates it)'}")
    if project:
        click.echo(clean_for_terminal(f"{project}  (this project)"))


@config.command()
def show() -> None:
    """The settings that differ from their defaults, and where each is set; keys are never shown.

    \b
    handrail config show
    """
    loaded = settings.load(Path.cwd())
    rows = list(_rows(loaded))
    width = min(60, max((len(left) for left, _ in rows), default=0))
    for left, place in rows:
        click.echo(clean_for_terminal(f"{left:<{width}}  # {place}"))
    if not rows:
        click.echo(f"All settings have their defaults. Your file: {short_path(settings.user_file())}")
    if loaded.held_back:
        click.echo(
            f"Ignored until you trust this folder: {', '.join(loaded.held_back)}  (handrail config trust)"
        )


@config.command()
def edit() -> None:
    """Open your settings file in $VISUAL or $EDITOR, and check it afterwards.

    \b
    handrail config edit
    EDITOR=nano handrail config edit
    """
    file = settings.user_file()
    if not file.exists():
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch(mode=0o600)
            file.write_text(_TEMPLATE, "utf-8")
        except OSError as error:
            raise ConfigError(
                f"{file} cannot be written: {error.strerror}. Check its permissions."
            ) from error
    click.edit(filename=str(file))
    settings.load(Path.cwd())
    click.echo(f"{short_path(file)} is valid.")


@config.command(name="trust")
@click.argument("folder", required=False, metavar="[DIR]")
def trust_folder(folder: str | None) -> None:
    """Trust a project (default: this one): use its AGENTS.md as instructions, and the tools, keys, approvals,
    servers and hooks of its .handrail.toml.

    \b
    handrail config trust
    handrail config trust ~/code/shop
    """
    root = _folder(folder)
    trust.trust(root)
    click.echo(clean_for_terminal(f"Trusted: {short_path(root)}"))


@config.command()
@click.argument("folder", required=False, metavar="[DIR]")
def distrust(folder: str | None) -> None:
    """Stop trusting a project.

    \b
    handrail config distrust ~/code/shop
    """
    root = _folder(folder)
    trust.distrust(root)
    left = "A folder above it is still trusted." if trust.is_trusted(root) else "No longer trusted."
    click.echo(clean_for_terminal(f"{short_path(root)}: {left}"))


def _folder(folder: str | None) -> Path:
    if folder is None:
        return trust.project_root(Path.cwd())
    if not Path(folder).is_dir():
        raise ConfigError(f"'{folder}' is not a folder. Give the folder of a project.")
    return Path(folder).resolve()


def _rows(loaded: settings.LoadedSettings) -> Iterator[tuple[str, str]]:
    """`key = value` and where it is set, for each key that is set; the last source wins."""
    in_force: dict[tuple[str, ...], tuple[Any, str]] = {}
    for source in loaded.sources:
        for path, value in _leaves(source.data):
            in_force[path] = (value, source.place(path).partition(": ")[0])
    for path, (value, place) in sorted(in_force.items()):
        shown = (
            '"…"'
            if path[-1] == "key" or {"headers", "env"} & {*path}
            else json.dumps(value, ensure_ascii=False)
        )
        yield f"{'.'.join(path)} = {shown}", place


def _leaves(data: dict[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in data.items():
        if isinstance(value, dict):
            yield from _leaves(value, (*above, key))
        else:
            yield (*above, key), value
