"""`handrail models`: what the keys and the local servers here can reach."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from handrail import settings
from handrail_tui.text import clean_for_terminal, count, join

if TYPE_CHECKING:
    from handrail.providers.base import ModelInfo
    from handrail.providers.catalog import ProviderEntry


@click.command()
@click.argument("word", required=False)
@click.option("--all", "everything", is_flag=True, help="Known models of providers without a key, too.")
def models(word: str | None, everything: bool) -> int:
    """Models that the keys and the local servers here can reach; the one in force is marked with a star.

    Any other model of a provider can be named too: this is what is known beforehand. WORD narrows the list.

    \b
    handrail models
    handrail models --all sonnet
    handrail run --model ollama/qwen3 "what to do"
    """
    from handrail.providers import catalog

    chosen = settings.load(Path.cwd()).settings
    in_force = chosen.model or catalog.default_model(os.environ, chosen.providers)
    entries = catalog.providers(chosen.providers)
    servers = asyncio.run(catalog.list_local(list(entries.values())))
    listed = {name: f"on this machine, {server.base_url}" for server in servers for name in server.models}
    for entry in entries.values():
        key = _key(entry)
        if key or everything:
            listed |= dict.fromkeys(_known(entry), f"key: {key}" if key else "no key")
    if in_force:
        listed.setdefault(in_force, "from the settings" if chosen.model else "")
    shown = {name: how for name, how in listed.items() if word is None or word.lower() in name.lower()}
    width = max((len(name) for name in shown), default=0)
    for name, how in shown.items():
        facts = _facts(catalog.model_info(name, chosen.models))
        mark = "*" if name == in_force else " "
        click.echo(clean_for_terminal(f"{mark} {name:<{width}}  {join([how, *facts], ', ')}"))
    if not shown:
        click.echo(
            "Nothing yet: no key is set and no local server answers. `handrail doctor` says what to do."
        )
    return 0


def _known(entry: ProviderEntry) -> Iterator[str]:
    from handrail.providers import catalog

    yield from catalog.known_models(entry.name)
    default = f"{entry.name}/{entry.default_model}"
    if entry.default_model and default not in catalog.known_models(entry.name):
        yield default


def _key(entry: ProviderEntry) -> str | None:
    """Where the key of a provider is, never the key."""
    if entry.key is not None:
        return "the settings"
    return next((name for name in entry.keys if os.environ.get(name, "").strip()), None)


def _facts(info: ModelInfo) -> list[str]:
    window = f"window {count(info.window)}" if info.window else ""
    price = f"${info.price.input:g} in, ${info.price.output:g} out a million" if info.price else ""
    return [window, price]
