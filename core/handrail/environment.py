"""`HANDRAIL_*`: the environment variables that stand for settings."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any, Final, get_origin

from pydantic import BaseModel

from handrail.errors import ConfigError

OTHERS: Final = frozenset({"HANDRAIL_API_KEY", "HANDRAIL_DEBUG"})
"""Variables of ours that are no settings."""

_TABLES: Final = ("bounds", "recovery")
_TRUE: Final = frozenset({"1", "true", "yes", "on"})
_FALSE: Final = frozenset({"0", "false", "no", "off"})


def variable(path: tuple[str, ...]) -> str:
    """`HANDRAIL_MODEL` for model, `HANDRAIL_MAX_TURNS` for bounds.max_turns, `HANDRAIL_MAX_WAIT` for
    recovery.max_wait_s, `HANDRAIL_RECOVERY` for recovery.enabled."""
    name = "recovery" if path == ("recovery", "enabled") else path[-1].removesuffix("_s")
    return f"HANDRAIL_{name.upper()}"


def variables(settings: type[BaseModel]) -> dict[str, tuple[str, ...]]:
    """Each variable and the key that it stands for. Tables with free keys have none."""
    return {variable(path): path for path, _ in _fields(settings)}


def from_environment(env: Mapping[str, str], settings: type[BaseModel]) -> dict[str, Any]:
    """What the variables in `env` say, nested by key. An empty one says nothing.

    Raises ConfigError for a name that is nearly one of ours; other names are somebody else's.
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
    """A variable's text as the value that a file would hold; what does not fit stays text, to be refused."""
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
