"""The models that can be used from here: those of keys, of local servers, and files on this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from handrail import settings
from handrail.toml import short_path
from handrail_tui.view.text import count

if TYPE_CHECKING:
    from handrail.providers.base import ModelInfo
    from handrail.providers.catalog import ProviderEntry


@dataclass(frozen=True, slots=True)
class UsableModel:
    """`name` is `provider/name`, `how` says what makes it usable, `facts` are its window and price in words."""

    name: str
    how: str
    facts: tuple[str, ...] = ()


def model_in_use(chosen: settings.Settings) -> str | None:
    """The model of the settings, else the default of the first provider with a key."""
    from handrail.providers import catalog
    from handrail.providers.keys import environment

    return chosen.model or catalog.default_model(environment(), chosen.providers)


def usable_models(chosen: settings.Settings, *, everything: bool = False) -> list[UsableModel]:
    """The models that are known; any other model of a provider works by its name. Asks local servers: blocks.

    `everything`: also models of providers without a key.
    """
    from handrail.providers import catalog

    entries = catalog.providers(chosen.providers)
    servers = asyncio.run(catalog.list_local(list(entries.values())))
    found = {name: f"on this machine, {server.base_url}" for server in servers for name in server.models}
    found |= _files()
    for entry in entries.values():
        key = _key(entry)
        if key or everything:
            found |= dict.fromkeys(_known(entry), f"key: {key}" if key else "no key")
    if in_use := model_in_use(chosen):
        found.setdefault(in_use, "from the settings" if chosen.model else "")
    return [
        UsableModel(name, how, tuple(_facts(catalog.model_info(name, chosen.models))))
        for name, how in found.items()
    ]


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
    from handrail.providers.keys import environment

    held = environment()
    return next((name for name in entry.keys if held.get(name, "").strip()), None)


def _facts(info: ModelInfo) -> Iterator[str]:
    if info.window:
        yield f"window {count(info.window)}"
    if info.price:
        yield f"${info.price.input:g} in, ${info.price.output:g} out per million tokens"
