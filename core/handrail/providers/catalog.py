"""Models by `provider/name`: what is known of them, where they are asked, with which key, through which wire.

The built-in ones are data (catalog.toml); settings add to them. Only `list_local` opens connections.
"""

from __future__ import annotations

import asyncio
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, get_args

from handrail.errors import ConfigError, did_you_mean
from handrail.providers._chat_request import ChatQuirks
from handrail.providers.base import ModelInfo, Price, Provider
from handrail.providers.keys import find_key
from handrail.providers.local_models import LocalModel, find_model
from handrail.settings import Api, ModelSettings, ProviderSettings

if TYPE_CHECKING:
    import httpx

    from handrail.clock import Clock

KEY_VARIABLES: dict[Api, str] = {
    "openai-chat": "OPENAI_API_KEY",
    "openai-responses": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
}
"""The variable of each protocol, for servers that have none of their own."""

LOCAL = "local"
"""The provider whose models are files here, run by a server that the program starts itself."""

LOCAL_S = 2.0  # a server on this machine answers within this, or it is not there
_DATED = re.compile(r"-(20\d{6}|20\d\d-\d\d-\d\d|latest)$")
_MISTRAL = re.compile(r"mistral|mixtral|devstral|magistral|codestral|pixtral", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ProviderEntry:
    """A provider as it is built in or set. See catalog.toml for the fields."""

    name: str
    api: Api = "openai-chat"
    base_url: str | None = None
    anthropic_base_url: str | None = None
    base_url_variable: str | None = None
    keys: tuple[str, ...] = ()
    local: bool = False
    default_model: str | None = None
    quirks: ChatQuirks = field(default_factory=ChatQuirks)
    headers: Mapping[str, str] = field(default_factory=dict)
    key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Resolved:
    """Everything that it takes to ask a model. `key_source` says where the key came from, never the key.

    `weights` is set for a model whose server is started on the first request; `base_url` is empty then.
    """

    model: ModelInfo
    api: Api
    base_url: str
    api_key: str | None = field(default=None, repr=False)
    key_source: str | None = None
    local: bool = False
    quirks: ChatQuirks = field(default_factory=ChatQuirks)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    weights: LocalModel | None = None


@cache
def built_in() -> Mapping[str, ProviderEntry]:
    """The built-in providers by name, in the order in which keys are looked for."""
    return {
        name: ProviderEntry(
            name, **{**row, "keys": tuple(row["keys"]), "quirks": ChatQuirks(**row.get("quirks", {}))}
        )
        for name, row in _data()["providers"].items()
    }


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads(files("handrail.providers").joinpath("catalog.toml").read_text("utf-8"))


def providers(settings: Mapping[str, ProviderSettings] | None = None) -> dict[str, ProviderEntry]:
    """Built-in providers and those of `settings`, which may also change a built-in one."""
    entries = dict(built_in())
    for name, row in (settings or {}).items():
        entry = entries.get(name, ProviderEntry(name))
        changes: dict[str, Any] = {"headers": dict(row.headers), "key": row.key}
        changes |= {k: v for k in ("base_url", "api", "default_model") if (v := getattr(row, k)) is not None}
        if row.base_url is not None:
            kept: Api = "anthropic" if entry.api == "anthropic" else "openai-chat"
            changes["api"] = row.api or kept
            changes["anthropic_base_url"] = row.base_url if changes["api"] == "anthropic" else None
        if row.key_env is not None:
            changes["keys"] = (row.key_env,)
        entries[name] = replace(entry, **changes)
    return entries


def key_variables(settings: Mapping[str, ProviderSettings] | None = None) -> frozenset[str]:
    """The names, in upper case, of all variables that hold providers' keys: the catalog, the protocols, `settings`.

    The environment of children, the masks and `handrail doctor` are derived from it.
    """
    entries = (*built_in().values(), *providers(settings).values())
    names = {name for entry in entries for name in entry.keys}
    return frozenset(
        name.upper() for name in {*names, *KEY_VARIABLES.values(), *_data()["other_keys"], "HANDRAIL_API_KEY"}
    )


def known_models(provider: str) -> tuple[str, ...]:
    """Names (`provider/name`) of the models of `provider` that the catalog knows something of."""
    return tuple(name for name in _data()["models"] if name.partition("/")[0] == provider)


def model_info(name: str, settings: Mapping[str, ModelSettings] | None = None) -> ModelInfo:
    """What is known of a model, None for what is not. Settings win over the catalog."""
    models = _data()["models"]
    row = models.get(name) or models.get(_DATED.sub("", name)) or {}
    info = ModelInfo(
        name,
        window=row.get("window"),
        max_output=row.get("max_output"),
        price=Price(*row["price"]) if "price" in row else None,
        images=row.get("images", False),
    )
    said = (settings or {}).get(name)
    if said is None:
        return info
    changes: dict[str, Any] = {
        k: v for k in ("window", "max_output", "images") if (v := getattr(said, k)) is not None
    }
    if said.price is not None:
        changes["price"] = Price(**said.price.model_dump())
    return replace(info, **changes)


def resolve(
    name: str,
    *,
    api: Api | None = None,
    base_url: str | None = None,
    environ: Mapping[str, str],
    provider_settings: Mapping[str, ProviderSettings] | None = None,
    model_settings: Mapping[str, ModelSettings] | None = None,
) -> Resolved:
    """Where and how the model `name` is asked.

    `base_url` goes with any provider name; its protocol is openai-chat unless `api` says otherwise. The key
    is HANDRAIL_API_KEY, else the provider's own, else (with a base URL of one's own) the protocol's. Raises
    ConfigError for an unknown provider, a protocol that it does not speak, and a missing key.
    """
    if api is not None and api not in get_args(Api):
        raise ConfigError(f"--api {api}: there is no such protocol.{did_you_mean(api, get_args(Api))}")
    provider, _, short = name.partition("/")
    if not provider or not short:
        raise ConfigError(f"the model {name!r} names no provider: write PROVIDER/NAME.{_examples(name)}")
    entries = providers(provider_settings)
    entry = entries.get(provider)
    moved = base_url or (entry and entry.base_url_variable and environ.get(entry.base_url_variable)) or None
    if provider == LOCAL and moved is None and (entry is None or entry.base_url is None):
        info = model_info(name, model_settings)
        info = replace(info, price=info.price or Price(0.0, 0.0))  # nobody asks for money
        return Resolved(info, api or "openai-chat", "", local=True, weights=find_model(short))
    if entry is None:
        if moved is None:
            raise ConfigError(
                f"the model {name!r}: there is no provider '{provider}'.{did_you_mean(provider, [*entries, LOCAL])}"
                " Another server is reached with --base-url URL."
            )
        entry = ProviderEntry(provider)
    wire, url = _wire_and_url(entry, api, moved, base_url is not None)
    key, source = find_key(entry.key, _key_variables(entry, wire, moved is not None), environ, provider)
    original = built_in().get(provider)
    at_home = moved is None and original is not None and _addresses(entry) == _addresses(original)
    if key is None and at_home and not entry.local:
        raise ConfigError(
            f"no key for {provider}: set {' or '.join(entry.keys)} (or HANDRAIL_API_KEY) in the environment,"
            f" or `key` under [providers.{provider}] in the settings. `handrail doctor` shows what is set."
        )
    model = model_info(name, model_settings)
    if not at_home and not (model_settings and name in model_settings):
        model = replace(model, price=None)  # another server asks for another price
    quirks = entry.quirks
    if _MISTRAL.search(short):
        quirks = replace(quirks, bridge=True)  # these models refuse the order wherever they are served
    return Resolved(model, wire, url, key, source, entry.local, quirks, entry.headers)


def _wire_and_url(entry: ProviderEntry, api: Api | None, moved: str | None, by_flag: bool) -> tuple[Api, str]:
    if moved is not None:
        # A server at another address speaks what nearly all speak, unless it stands in for Anthropic's.
        kept: Api = "anthropic" if entry.api == "anthropic" and not by_flag else "openai-chat"
        return api or kept, moved
    wire = api or entry.api
    url = entry.anthropic_base_url if wire == "anthropic" else entry.base_url
    if url is None:
        raise ConfigError(
            f"{entry.name} has no known address for the protocol {wire}: give one with --base-url URL,"
            f" or leave --api off ({entry.api})."
        )
    return wire, url


def _addresses(entry: ProviderEntry) -> tuple[str | None, str | None]:
    return entry.base_url, entry.anthropic_base_url


def _key_variables(entry: ProviderEntry, wire: Api, moved: bool) -> tuple[str, ...]:
    variables = ("HANDRAIL_API_KEY", *entry.keys)
    return (*variables, KEY_VARIABLES[wire]) if moved else variables


def _examples(name: str) -> str:
    like = [known for known in _data()["models"] if name and known.partition("/")[2].startswith(name)]
    return (
        f" For instance {min(like, key=len)}."
        if like
        else " For instance anthropic/claude-sonnet-4-6 or ollama/qwen3."
    )


def default_model(
    environ: Mapping[str, str], provider_settings: Mapping[str, ProviderSettings] | None = None
) -> str | None:
    """The default model of the first provider whose key is there; None when there is none."""
    for entry in providers(provider_settings).values():
        has_key = entry.key is not None or any(environ.get(variable, "").strip() for variable in entry.keys)
        if has_key and entry.default_model is not None:
            return f"{entry.name}/{entry.default_model}"
    return None


def make_provider(resolved: Resolved, clock: Clock | None = None) -> Provider:
    """The wire for `resolved`, ready to be asked. Raises ConfigError for an address or key of no use."""
    if resolved.weights is not None:
        from handrail.providers.local import Local

        def wire(url: str, key: str) -> Provider:
            base = url if resolved.api == "anthropic" else f"{url}/v1"
            return make_provider(replace(resolved, base_url=base, api_key=key, weights=None), clock)

        return Local(resolved.model, resolved.weights, wire, clock=clock)
    url, key, headers = resolved.base_url, resolved.api_key, resolved.headers
    try:
        if resolved.api == "anthropic":
            from handrail.providers.messages import Anthropic

            return Anthropic(resolved.model, base_url=url, api_key=key, clock=clock, headers=headers)
        if resolved.api == "openai-responses":
            from handrail.providers.responses import OpenAIResponses

            return OpenAIResponses(resolved.model, base_url=url, api_key=key, clock=clock, headers=headers)
        from handrail.providers.chat import OpenAIChat

        return OpenAIChat(
            resolved.model, base_url=url, api_key=key, quirks=resolved.quirks, clock=clock, headers=headers
        )
    except ValueError as error:
        raise ConfigError(str(error)) from None


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A server on this machine as it answered: its models as `provider/name`, or why it did not answer."""

    provider: str
    base_url: str
    models: tuple[str, ...] = ()
    problem: str | None = None


async def list_local(
    entries: Sequence[ProviderEntry] | None = None, *, client: httpx.AsyncClient | None = None
) -> list[LocalServer]:
    """Ask the local servers, all at once, for their models. Takes at most LOCAL_S seconds each."""
    import httpx

    asked = [e for e in (entries if entries is not None else built_in().values()) if e.local and e.base_url]
    async with httpx.AsyncClient(trust_env=False, timeout=LOCAL_S) as own:
        return await asyncio.gather(*(_ask(client or own, entry) for entry in asked))


async def _ask(client: httpx.AsyncClient, entry: ProviderEntry) -> LocalServer:
    import httpx

    url = str(entry.base_url).rstrip("/")
    try:
        response = await client.get(f"{url}/models")
        response.raise_for_status()
        rows = response.json()["data"]
        names = tuple(f"{entry.name}/{row['id']}" for row in rows)
    except httpx.TransportError:
        return LocalServer(entry.name, url, problem="no server answers here")
    except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
        return LocalServer(entry.name, url, problem=f"what answers here lists no models: {error}")
    return LocalServer(entry.name, url, names)
