"""Settings: one typed model, filled from files, the environment and flags, in that order.

An error names the file, the line and the nearest valid key. A project's own file may set the looks of a run and lower
its limits; all else (the model, tools, keys, approvals, servers, commands, higher limits) only counts once the folder
is trusted.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args, get_origin

import platformdirs
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from handrail.errors import ConfigError, did_you_mean
from handrail.policy import Approve, Bounds, Effort, RecoveryPolicy, parse_duration
from handrail.server_settings import ServerName, ServerSettings
from handrail.toml import line_of, read_toml, short_path
from handrail.trust import is_trusted, up_to_root

Api: TypeAlias = Literal["openai-chat", "openai-responses", "anthropic"]
Names: TypeAlias = Annotated[tuple[str, ...], Field(strict=False)]

PROJECT_FILE: Final = ".handrail.toml"
NEEDS_TRUST: Final = frozenset(
    {
        *("api", "approve", "base_url", "calls_at_once", "effort", "hooks", "keys", "mcp", "model", "models"),
        *("providers", "sandbox", "servers", "system", "tools"),
    }
)
_ALLOWANCES: Final = (
    *(
        "checkpoint_max_chars",
        "compaction",
        "enabled",
        "hard_cap",
        "max_guided_waits",
        "max_polls",
        "max_resumes",
    ),
    *("max_wait_s", "poll_s", "poll_window_s", "retries", "stream_retries", "tool_tail"),
)
MAY_LOWER: Final = frozenset(
    {
        *(("bounds", name) for name in Bounds.model_fields),
        *(("recovery", name) for name in _ALLOWANCES),
        ("max_output",),
    }
)
"""Limits that a project which is not trusted may lower, or switch off where they are allowances. It raises none."""

NEVER_FROM_A_PROJECT: Final = frozenset({"trusted"})


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class PriceSettings(_Settings):
    """US dollars per million tokens."""

    input: Annotated[float, Field(ge=0)]
    output: Annotated[float, Field(ge=0)]
    cache_read: Annotated[float, Field(ge=0)] = 0.0
    cache_write: Annotated[float, Field(ge=0)] = 0.0


class ModelSettings(_Settings):
    """A person's own data about a model. Sizes are in tokens."""

    window: Annotated[int, Field(gt=0)] | None = None
    max_output: Annotated[int, Field(gt=0)] | None = None
    price: PriceSettings | None = None
    images: bool | None = None


class ProviderSettings(_Settings):
    """A user-defined provider, or changes to a built-in one.

    `key` is the key itself, a command that prints it when it begins with `!`, or an entry of the system's keyring when
    it begins with `keyring:`; `key_env` names a variable.
    """

    base_url: str | None = None
    api: Api | None = None
    key: str | None = None
    key_env: str | None = None
    default_model: str | None = None
    headers: dict[str, str] = Field(default_factory=dict)


class Hooks(_Settings):
    """Shell commands to execute when a run needs a person, waits, or ends."""

    on_needs_you: str | None = None
    on_wait: str | None = None
    on_finish: str | None = None


class Settings(_Settings):
    """Everything that can be set. Each field has a default, so that an empty file is valid.

    `sandbox` holds commands in the working folder: on (without a network), network (with one), off.
    `calls_at_once` is how many calls of a reply run at the same time (default 16).
    `models` is keyed by `provider/name`; `keys` maps the id of an action to the keys for it, comma-separated;
    `system` is a file that replaces the system prompt; `trusted` lists folders whose instructions count. `mcp` holds
    MCP servers by name; `servers` names those to start, None for all that are enabled.
    """

    model: str | None = None
    api: Api | None = None
    base_url: str | None = None
    max_output: Annotated[int, Field(gt=0)] | None = None
    effort: Effort | None = None
    approve: Approve | None = None
    sandbox: Literal["off", "on", "network"] | None = None
    tools: Names | None = None
    calls_at_once: Annotated[int, Field(gt=0)] | None = None
    system: str | None = None
    theme: str | None = None
    bounds: Bounds = Field(default_factory=Bounds)
    recovery: RecoveryPolicy = Field(default_factory=RecoveryPolicy)
    hooks: Hooks = Field(default_factory=Hooks)
    keys: dict[str, str] = Field(default_factory=dict)
    providers: dict[str, ProviderSettings] = Field(default_factory=dict)
    models: dict[str, ModelSettings] = Field(default_factory=dict)
    trusted: Names = ()
    mcp: dict[ServerName, ServerSettings] = Field(default_factory=dict)
    servers: Names | None = None


# Variables of the environment ---------------------------------------------------------------------------

OTHERS: Final = frozenset({"HANDRAIL_API_KEY", "HANDRAIL_DEBUG"})
"""Variables of Handrail that are not settings."""

_TABLES: Final = ("bounds", "recovery")
_TRUE: Final = frozenset({"1", "true", "yes", "on"})
_FALSE: Final = frozenset({"0", "false", "no", "off"})


def variable(path: tuple[str, ...]) -> str:
    """`HANDRAIL_MODEL` for model, `HANDRAIL_MAX_TURNS` for bounds.max_turns, `HANDRAIL_MAX_WAIT` for
    recovery.max_wait_s, `HANDRAIL_RECOVERY` for recovery.enabled."""
    name = "recovery" if path == ("recovery", "enabled") else path[-1].removesuffix("_s")
    return f"HANDRAIL_{name.upper()}"


def variables(settings: type[BaseModel]) -> dict[str, tuple[str, ...]]:
    """Each variable and the key that it sets. Tables with free keys have no variables."""
    return {variable(path): path for path, _ in _fields(settings)}


def from_environment(env: Mapping[str, str], settings: type[BaseModel]) -> dict[str, Any]:
    """The settings in the variables of `env`, nested by key. Empty variables are ignored.

    Raises ConfigError for a name that looks like a misspelt setting; other names are ignored.
    """
    fields = {variable(path): (path, annotation) for path, annotation in _fields(settings)}
    data: dict[str, Any] = {}
    for name in sorted(name for name in env if name.startswith("HANDRAIL_") and env[name] != ""):
        if name in fields:
            (*tables, key), annotation = fields[name]
            inner = data
            for table in tables:
                inner = inner.setdefault(table, {})
            inner[key] = _value(env[name], annotation)
        elif name not in OTHERS and (near := difflib.get_close_matches(name, fields, n=1, cutoff=0.85)):
            raise ConfigError(f"{name}: there is no such variable. Did you mean {near[0]}?")
    return data


def _fields(settings: type[BaseModel]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, info in settings.model_fields.items():
        annotation = info.annotation
        if name in _TABLES:
            assert isinstance(annotation, type) and issubclass(annotation, BaseModel)
            yield from (((name, key), inner.annotation) for key, inner in annotation.model_fields.items())
        elif get_origin(annotation) is not dict and not isinstance(annotation, type):
            yield (name,), annotation


def _value(text: str, annotation: Any) -> Any:
    """A variable's text as the value a file would hold. What does not fit stays text and is refused later."""
    word = text.strip()
    kinds = str(annotation)
    if annotation is bool:
        return True if word.lower() in _TRUE else False if word.lower() in _FALSE else text
    if "tuple" in kinds:
        return [_number(part.strip()) for part in word.split(",") if part.strip()]
    if annotation in (int, float) or "int" in kinds or "float" in kinds:
        return _number(word)
    return text


def _number(word: str) -> Any:
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word


# Sources, and loading them ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SettingsSource:
    """One source of settings. `text` is a file's text, None for the environment and flags."""

    name: str
    data: dict[str, Any]
    text: str | None = None

    def place(self, path: tuple[str, ...]) -> str:
        """Where `path` was set, as the start of an error message: a file with its line, a variable, a flag."""
        if self.text is not None:
            line = line_of(self.text, path)
            return f"{self.name}:{line}: '{'.'.join(path)}'" if line else f"{self.name}: '{'.'.join(path)}'"
        name = variable(path)
        if self.name == "environment":
            return name
        return name.replace("HANDRAIL_", "--").replace("_", "-").lower()


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """The effective settings and their sources. `held_back`: keys of an untrusted project's file."""

    settings: Settings
    sources: tuple[SettingsSource, ...] = ()
    held_back: tuple[str, ...] = ()


def user_file() -> Path:
    """The user's own settings file, whether or not it exists."""
    return platformdirs.user_config_path("handrail", appauthor=False) / "config.toml"


def project_file(cwd: Path) -> Path | None:
    """`.handrail.toml` of the project: the nearest one from `cwd` up to the root of its repository."""
    return next((f for d in up_to_root(cwd) if (f := d / PROJECT_FILE).is_file()), None)


def load(
    cwd: Path, *, env: Mapping[str, str] | None = None, flags: Mapping[str, Any] | None = None
) -> LoadedSettings:
    """The settings for a run in `cwd`: from the user's file, the project's, variables, and `flags` (nested by key).

    Raises ConfigError naming each wrong key and value, with its place, of the first source that has any.
    """
    sources = [_checked(_file(user_file()))]
    held_back: tuple[str, ...] = ()
    if project := project_file(cwd):
        shared = _checked(_file(project))
        kept = {key: value for key, value in shared.data.items() if key not in NEVER_FROM_A_PROJECT}
        if not is_trusted(project.parent, also=sources[0].data.get("trusted", ())):
            kept = _harmless(kept, Settings.model_validate(sources[0].data))
        held_back = tuple(sorted(_leaves(shared.data) - _leaves(kept)))
        sources.append(SettingsSource(shared.name, kept, shared.text))
    variables = from_environment(os.environ if env is None else env, Settings)
    sources.append(_checked(SettingsSource("environment", variables)))
    sources.append(_checked(SettingsSource("command line", dict(flags or {}))))
    merged: dict[str, Any] = {}
    for source in sources:
        merged = _merge(merged, source.data)
    in_force = tuple(source for source in sources if source.data)
    return LoadedSettings(Settings.model_validate(merged), in_force, held_back)


def _harmless(project: Mapping[str, Any], own: Settings) -> dict[str, Any]:
    """What counts of an untrusted project's settings: its looks, and limits below the person's own."""
    kept: dict[str, Any] = {}
    for key, value in project.items():
        if key in _TABLES:
            table = getattr(own, key)
            lower = {
                name: amount
                for name, amount in value.items()
                if (key, name) in MAY_LOWER and _is_lower(amount, getattr(table, name))
            }
            if lower:
                kept[key] = lower
        elif (key,) in MAY_LOWER:
            if _is_lower(value, getattr(own, key)):
                kept[key] = value
        elif key not in NEEDS_TRUST:
            kept[key] = value
    return kept


def _is_lower(amount: Any, own: Any) -> bool:
    """Whether a limit is no higher than the person's own. None and "unlimited" are the highest."""
    if not isinstance(amount, int | float):
        return bool(amount == own)
    return own is None or own == "unlimited" or amount <= own


def _leaves(data: Mapping[str, Any]) -> set[str]:
    """The names of what is set; those inside the tables of limits with the name of their table."""
    return {
        name
        for key, value in data.items()
        for name in ([f"{key}.{inner}" for inner in value] if key in _TABLES else [key])
    }


def _file(path: Path) -> SettingsSource:
    if not path.exists():
        return SettingsSource(short_path(path), {}, "")
    data, text = read_toml(path)
    return SettingsSource(short_path(path), data, text)


def _checked(source: SettingsSource) -> SettingsSource:
    """`source` with durations in seconds. Each source is checked alone, so that an error can name its place."""
    source = SettingsSource(source.name, _durations(source.data), source.text)
    try:
        Settings.model_validate(source.data)
    except ValidationError as error:
        raise ConfigError("\n".join(_explain(source, error))) from error
    return source


def _explain(source: SettingsSource, error: ValidationError) -> Iterator[str]:
    """One line for each wrong key, with the errors of all members of a union."""
    wrong: dict[tuple[str, ...], list[str]] = {}
    for one in error.errors(include_url=False):
        path = _key_in(tuple(str(part) for part in one["loc"]))
        if one["type"] == "extra_forbidden":
            path = tuple(str(part) for part in one["loc"])
            words = f"there is no such setting.{did_you_mean(path[-1], _keys_of(path[:-1]))}"
        elif path[-1] in ("key", "headers") or path[0] == "mcp":  # the value may be, or hold, a secret
            words = f"{str(one['msg']).removeprefix('Value error, ')}."
        else:
            words = f"{one['msg']}, not {one['input']!r}."
        wrong.setdefault(path, []).append(words)
    for path, words_of in wrong.items():
        yield f"{source.place(path)}: {' Or: '.join(words_of)}"


def _key_in(path: tuple[str, ...]) -> tuple[str, ...]:
    """The settings key that an error's location belongs to, without indices and union members."""
    for length in range(1, len(path)):
        if not _is_table(_annotation(path[:length])):
            return path[:length]
    return path


def _keys_of(path: tuple[str, ...]) -> list[str]:
    """The allowed keys of the table at `path`; none when they are free."""
    table = _annotation(path)
    return list(table.model_fields) if _is_model(table) else []


def _annotation(path: tuple[str, ...]) -> Any:
    """The type of the setting at `path`; None if there is no such setting."""
    here: Any = Settings
    for part in path:
        if _is_model(here):
            here = here.model_fields[part].annotation if part in here.model_fields else None
        else:
            here = get_args(here)[1] if get_origin(here) is dict else None
        if isinstance(here, UnionType):
            here = next((member for member in get_args(here) if _is_model(member)), here)
    return here


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _is_table(annotation: Any) -> bool:
    return _is_model(annotation) or get_origin(annotation) is dict


def _durations(data: dict[str, Any]) -> dict[str, Any]:
    """`data` with durations such as "6h" converted to seconds where a setting is in seconds."""
    return {
        table: {key: _seconds(key, value) for key, value in inner.items()}
        if table in ("bounds", "recovery") and isinstance(inner, Mapping)
        else inner
        for table, inner in data.items()
    }


def _seconds(key: str, value: Any) -> Any:
    if not key.endswith("_s") or not isinstance(value, str):
        return value
    try:
        return parse_duration(value)
    except ValueError:
        return value


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """`above` over `below`, table by table."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = _merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged
