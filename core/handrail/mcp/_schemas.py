"""A server's tool list, mended: one bad tool must not cost the others (docs/mcp.md).

Works on the JSON of the wire, before the SDK's own models refuse a whole list for one entry of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from handrail.messages import clean
from handrail.tools.output import one_line

if TYPE_CHECKING:
    import mcp_types as types

MAX_DESCRIPTION: Final = 4_000
"""Characters of a description that a model gets."""

MAX_SCHEMA: Final = 65_536
"""Characters of a schema that a model gets."""

_PROPERTY: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_NOT_AT_THE_ROOT: Final = ("anyOf", "oneOf", "allOf", "not", "enum", "const", "if", "then", "else")
"""Keywords that providers refuse at the root of a tool's parameters. The server still checks them."""

_HINTS: Final = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


class LeftOut(ValueError):
    """Why a tool cannot be offered."""


def mended_tools(raw: Any) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The tools that can be offered, and for each one left out, why (by its name)."""
    kept: dict[str, dict[str, Any]] = {}
    left_out: dict[str, str] = {}
    for number, entry in enumerate(raw if isinstance(raw, list) else ()):
        name = entry.get("name") if isinstance(entry, dict) else None
        shown = (
            one_line(clean(name), 80) if isinstance(name, str) and name.strip() else f"number {number + 1}"
        )
        try:
            if not isinstance(name, str) or not name.strip():
                raise LeftOut("it has no name")
            if name in kept:
                raise LeftOut("another tool has this name")
            kept[name] = _tool(name, entry)
        except LeftOut as error:
            left_out[shown] = str(error)
    return list(kept.values()), left_out


def _tool(name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry with what we use of it, each part of the type that the protocol asks for."""
    tool: dict[str, Any] = {"name": name, "inputSchema": mended_schema(entry.get("inputSchema"))}
    for key in ("title", "description"):
        if isinstance(value := entry.get(key), str):
            tool[key] = value
    if isinstance(given := entry.get("annotations"), dict):
        hints = {key: given[key] for key in _HINTS if isinstance(given.get(key), bool)}
        if isinstance(given.get("title"), str):
            hints["title"] = given["title"]
        tool["annotations"] = hints
    return tool


def mended_schema(raw: Any) -> dict[str, Any]:
    """Parameters that every provider takes: an object with named properties. Raises LeftOut."""
    schema = _resolved(dict(raw)) if isinstance(raw, dict) else {}
    schema = {key: value for key, value in schema.items() if key not in _NOT_AT_THE_ROOT and key != "$schema"}
    kind = schema.get("type", "object")
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        raise LeftOut(f"its arguments are no object but {one_line(str(kind), 40)}")
    given = schema.get("properties")
    properties = given if isinstance(given, dict) else {}
    named = schema.get("required")
    required = [n for n in named if isinstance(n, str)] if isinstance(named, list) else []
    for name in required:
        if name in properties and _PROPERTY.fullmatch(name) is None:
            raise LeftOut(f"no provider takes its argument's name {one_line(clean(name), 40)!r}")
    kept = {n: p for n, p in properties.items() if _PROPERTY.fullmatch(n) and isinstance(p, dict | bool)}
    mended: dict[str, Any] = {**schema, "type": "object", "properties": kept}
    mended.pop("required", None)
    if wanted := [n for n in required if n in kept]:
        mended["required"] = wanted
    if len(repr(mended)) > MAX_SCHEMA:
        raise LeftOut(f"its schema is longer than {MAX_SCHEMA:,} characters")
    return mended


def _resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """The root with a reference of its own put in its place."""
    for _ in range(8):
        ref = schema.get("$ref")
        if not isinstance(ref, str):
            return schema
        target: Any = schema
        for part in ref.removeprefix("#").strip("/").split("/") if ref.startswith("#/") else ():
            target = target.get(part) if isinstance(target, dict) else None
        if not isinstance(target, dict) or target is schema:
            raise LeftOut(f"its schema refers to {one_line(clean(ref), 60)!r}, which is not in it")
        schema = {**{k: v for k, v in schema.items() if k != "$ref"}, **target}
    raise LeftOut("its schema refers to itself")


def description_of(tool: types.Tool, server: str) -> str:
    """What a model reads about the tool; never empty."""
    text = clean(tool.description or tool.title or "").strip()
    if len(text) > MAX_DESCRIPTION:
        text = f"{text[:MAX_DESCRIPTION]} [… {len(text) - MAX_DESCRIPTION:,} more characters]"
    return text or f"The tool {one_line(clean(tool.name), 80)} of the server {server}."


def argument_errors(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> Sequence[str]:
    """What is wrong with `arguments`, a line each. A schema that cannot be held is left to the server."""
    from jsonschema import Draft202012Validator
    from referencing import Registry

    try:
        found = list(Draft202012Validator(schema, registry=Registry()).iter_errors(arguments))
    except Exception:  # the schema is the server's: any fault in it is possible
        return ()
    return [f"{'.'.join(map(str, e.absolute_path)) or 'arguments'}: {e.message[:300]}" for e in found[:10]]
