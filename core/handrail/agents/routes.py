"""Where the requests of a client go: providers of the catalog by name, and the variables that lead a program here."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from handrail.providers import catalog
from handrail.providers.keys import find_key
from handrail.settings import ProviderSettings


@dataclass(frozen=True, slots=True)
class Route:
    """One provider. `address` stands in front of what a client asks for, `messages_address` does for the Messages wire
    where that differs. `key` is the gateway's own and replaces the client's; None: the client's passes through.
    `at_home`: the address is the provider's own, so its prices hold. `variables` may hold the key in an environment."""

    provider: str
    address: str
    messages_address: str | None = None
    key: str | None = field(default=None, repr=False)
    at_home: bool = True
    variables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Client:
    """How programs are pointed at one provider (see clients.toml)."""

    provider: str
    base_url: tuple[str, ...]
    keys: tuple[str, ...]
    address: str | None = None


@cache
def clients() -> tuple[Client, ...]:
    """The rows of clients.toml."""
    text = files("handrail.agents").joinpath("clients.toml").read_text("utf-8")
    rows: list[dict[str, Any]] = tomllib.loads(text)["client"]
    return tuple(
        Client(r["provider"], tuple(r["base_url"]), tuple(r["keys"]), r.get("address")) for r in rows
    )


def routes(
    environ: Mapping[str, str],
    provider_settings: Mapping[str, ProviderSettings] | None = None,
    *,
    hold_keys: bool = False,
) -> dict[str, Route]:
    """Every provider that can be reached, by name. A variable that moves a provider's address counts. With `hold_keys`
    the keys are looked up here, so that no client needs one. Raises ConfigError for a key that cannot be read."""
    entries = catalog.providers(provider_settings)
    by_name = {client.provider: client for client in clients()}
    found: dict[str, Route] = {}
    for name in [*entries, *(n for n in by_name if n not in entries)]:
        entry, client = entries.get(name), by_name.get(name)
        moved = next(
            (u for v in (client.base_url if client else ()) if (u := environ.get(v, "").strip())), None
        )
        home = (entry.base_url or entry.anthropic_base_url) if entry else client and client.address
        address = moved or home
        if not address:
            continue
        keys = tuple(dict.fromkeys((*(entry.keys if entry else ()), *(client.keys if client else ()))))
        key = None
        if hold_keys and keys:
            key, _ = find_key(entry.key if entry else None, keys, environ, name)
        second = entry.anthropic_base_url if entry and entry.base_url and not moved else None
        found[name] = Route(name, address.rstrip("/"), second, key, moved is None, keys)
    return found


def client_environ(
    base: str, known: Mapping[str, Route], token: str, environ: Mapping[str, str]
) -> dict[str, str]:
    """The environment of a program whose requests are to come to the gateway at `base`: `environ` with the addresses
    of the providers. Where the gateway holds a key, the program gets `token` in its place: most clients do not start
    without any."""
    held = {name for route in known.values() if route.key is not None for name in route.variables}
    made = {name: value for name, value in environ.items() if name not in held}
    for client in clients():
        route = known.get(client.provider)
        if route is None:
            continue
        made |= dict.fromkeys(client.base_url, f"{base}/{client.provider}")
        if route.key is not None:
            made |= dict.fromkeys(client.keys, token)
    direct = [made.get("NO_PROXY") or made.get("no_proxy"), "127.0.0.1,localhost"]
    made["NO_PROXY"] = made["no_proxy"] = ",".join(filter(None, direct))
    return made
