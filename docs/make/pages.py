"""Makes the pages of docs/ that are made from code: `python docs/make/pages.py`. A test holds them equal."""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Any, Final, get_args, get_origin, get_type_hints

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from handrail import events
from handrail.settings import NEEDS_TRUST, NEVER_FROM_A_PROJECT, Settings, variables

DOCS: Final = Path(__file__).parents[1]
_MADE: Final = "<!-- Made by `python docs/make/pages.py`. Change the code, not this page. -->"

_EVENTS_HEAD: Final = f"""\
# Events

{_MADE}

Everything that happens in a run is one event. `handrail run --json` prints one a line, as a JSON object; a listener of
a `Session` gets the same ones. The list only ever grows; `run_started.schema` names its version.

Each event has `type`, `at` (RFC 3339, UTC) and `turn` (the request it belongs to, counted from 1; null outside of one).
The last line of a run is `run_finished`, or `run_interrupted` when the program was told to end.

    handrail run --json "…" | jq -r 'select(.type == "decided") | "\\(.decision) \\(.reason): \\(.why)"'
"""
_PARTS_HEAD: Final = """
## Parts of events
"""
_SETTINGS_HEAD: Final = f"""\
# Settings

{_MADE}

Settings come from four places; each wins over the ones before it:

1. your own file (`handrail config path` says where; `handrail config edit` opens it),
2. `.handrail.toml` in the project,
3. environment variables,
4. flags of the command.

`handrail config` shows what is in force and where it was set. A wrong key or value is an error that names the file, the
line and the nearest right key. Seconds may be written as `"30m"`, `"6h"`, `"1h30m"`.

A project's file can set {{project}}.
The rest counts only once you trust the folder (`handrail config trust`), since it acts in your name:
{{trust}}.
"""


def events_page() -> str:
    """docs/events.md."""
    kinds = get_args(events.Event)
    names = [next(f.default for f in dataclasses.fields(kind) if f.name == "type") for kind in kinds]
    index = " · ".join(f"[{name}](#{name})" for name in names)
    blocks = [_EVENTS_HEAD, index, ""]
    for name, kind in zip(names, kinds, strict=True):
        blocks += [f"## {name}", "", *_class(kind, leave_out=("type", "at", "turn"))]
    blocks.append(_PARTS_HEAD)
    for part in _parts(kinds):
        blocks += [f"### {part.__name__}", "", *_class(part, leave_out=())]
    return _tidy(blocks)


def settings_page() -> str:
    """docs/settings.md."""
    by_path = {path: name for name, path in variables(Settings).items()}
    free = sorted(set(Settings.model_fields) - NEEDS_TRUST - NEVER_FROM_A_PROJECT)
    head = _SETTINGS_HEAD.format(project=_listed(free), trust=_listed(sorted(NEEDS_TRUST)))
    blocks = [head, "", "## At the top", "", _words(Settings), "", *_TABLE]
    tables: list[tuple[str, type[BaseModel]]] = []
    for name, info in Settings.model_fields.items():
        if (inner := _model_in(info.annotation)) is not None:
            tables.append((f"{name}.NAME" if get_origin(info.annotation) is dict else name, inner))
        else:
            blocks.append(_row(name, info, by_path.get((name,))))
    for name, model in tables:
        blocks += ["", f"## [{name}]", "", _words(model), "", *_TABLE]
        for key, info in model.model_fields.items():
            blocks.append(_row(key, info, by_path.get((name, key))))
    return _tidy(blocks)


_TABLE: Final = ("| key | what it may be | default | variable |", "|---|---|---|---|")


def _row(key: str, info: FieldInfo, variable: str | None) -> str:
    default = info.get_default(call_default_factory=True) if info.default_factory is None else None
    shown = "" if default is None or default is PydanticUndefined else f"`{_value(default)}`"
    kind = _type(info.annotation).removesuffix(" or null")
    if model := next((a for a in get_args(info.annotation) if _model_in(a)), None):
        kind = f"table: {', '.join(model.model_fields)}"
    return f"| `{key}` | {kind} | {shown} | {f'`{variable}`' if variable else ''} |"


def _value(value: Any) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(_value(v) for v in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _class(kind: type[Any], leave_out: tuple[str, ...]) -> Iterator[str]:
    """The words and the fields of a dataclass."""
    yield _words(kind)
    yield ""
    hints = get_type_hints(kind, include_extras=True)
    for field in dataclasses.fields(kind):
        if field.name not in leave_out:
            name = "class" if field.name == "class_" else field.name
            yield f"- `{name}`: {_type(hints[field.name])}"
    yield ""


def _words(kind: type[Any]) -> str:
    """A docstring, where somebody wrote one; rules of the design stay in the code."""
    text = inspect.cleandoc(kind.__dict__.get("__doc__") or "")
    if re.match(rf"{kind.__name__}\(", text):  # what dataclass writes where nobody did
        return ""
    text = re.sub(r"\s*\((?:rules? |house:|[A-Z]\d+\))[^)]*\)?", "", text)
    return re.sub(r"\([A-Z]\d+[;:,] ", "(", text)


def _parts(kinds: tuple[type[Any], ...]) -> list[type[Any]]:
    """The dataclasses that events are made of, each once, in the order in which they are met."""
    found: dict[type[Any], None] = {}

    def look(annotation: Any) -> None:
        for arg in get_args(annotation):
            look(arg)
        if dataclasses.is_dataclass(annotation) and isinstance(annotation, type):
            if annotation not in kinds:
                if annotation in found:
                    return
                found[annotation] = None
            for hint in get_type_hints(annotation).values():
                if annotation not in kinds or hint is not annotation:
                    look(hint)

    for kind in kinds:
        for hint in get_type_hints(kind).values():
            if hint not in kinds:
                look(hint)
    return list(found)


def _type(annotation: Any) -> str:
    """A type in words that a reader of JSON knows."""
    origin, args = get_origin(annotation), get_args(annotation)
    if annotation is type(None):
        return "null"
    if origin is UnionType or str(origin) == "typing.Union":
        return " or ".join(dict.fromkeys(_type(a) for a in args))
    if str(origin) == "typing.Literal":
        return ", ".join(f"`{a}`" for a in args)
    if origin is tuple or origin is list:
        return f"list of {_type(args[0])}"
    if origin is dict or "Mapping" in str(origin):
        return "table" if args[1] is Any else f"table of {_type(args[1])}"
    if hasattr(annotation, "__metadata__"):
        return "moment (RFC 3339, UTC)" if annotation == events.Moment else _type(args[0])
    names = {str: "text", int: "number", float: "number", bool: "true or false", Any: "anything"}
    if annotation in names:
        return names[annotation]
    name = str(annotation.__name__)
    if annotation in get_args(events.Event):
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    return f"[{name}](#{name.lower()})"


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if get_origin(annotation) is dict:
        return _model_in(get_args(annotation)[1])
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _tidy(blocks: list[str]) -> str:
    return re.sub(r"\n{3,}", "\n\n", "\n".join(blocks)).strip() + "\n"


PAGES: Final = {"events.md": events_page, "settings.md": settings_page}


def main() -> None:
    """Write the pages."""
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), "utf-8")
        sys.stdout.write(f"docs/{name}\n")


if __name__ == "__main__":
    main()
