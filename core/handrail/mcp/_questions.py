"""A server's question (elicitation) as a form for the person, and the person's answer as the server wants it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from handrail.events.parts import FieldKind, FormField
from handrail.forms import FormError, check_values
from handrail.messages import clean
from handrail.tools.base import Form, FormAnswer

if TYPE_CHECKING:
    import mcp_types as types

MAX_FIELDS: Final = 40
MAX_WORDS: Final = 2_000
"""Characters of a question; a label and a help text get a tenth of it."""

_FORMATS: Final[Mapping[str, FieldKind]] = {
    "date": "date",
    "date-time": "date-time",
    "email": "email",
    "uri": "uri",
}


def form_of(params: types.ElicitRequestParams, server: str, resume: Mapping[str, Any] | None) -> Form:
    """The question as the person sees it. Raises ValueError for a schema that no form can show."""
    words = clean(params.message)[:MAX_WORDS].strip() or "The server asks for your consent."
    needed = f"{server} asks: {words}"
    if params.mode == "url":
        return Form(needed, kind="permission", where=clean(params.url)[:MAX_WORDS], resume=resume)
    return Form(needed, fields_of(params.requested_schema), resume=resume)


def reply_of(form: Form, answer: FormAnswer) -> types.ElicitResult:
    """The answer in the protocol's words."""
    import mcp_types as types

    if answer.action != "accept":
        return types.ElicitResult(action=answer.action)
    if form.where and not form.fields:
        return types.ElicitResult(action="accept")
    return types.ElicitResult(action="accept", content=dict(answer.values))


def fields_of(schema: Mapping[str, Any]) -> tuple[FormField, ...]:
    """The fields of a requested schema: flat properties of simple types. Raises ValueError for others."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return ()
    if len(properties) > MAX_FIELDS:
        raise ValueError(f"it asks for {len(properties)} things at once; at most {MAX_FIELDS} can be shown")
    required = schema.get("required")
    wanted = set(required) if isinstance(required, list) else set()
    return tuple(_field(name, spec, name in wanted) for name, spec in properties.items())


def _field(name: str, spec: Any, required: bool) -> FormField:
    if not isinstance(spec, Mapping):
        raise ValueError(f"its field {name!r} has no type")
    kind, options = _kind(name, spec)
    low, high = _bounds(kind, spec)
    field = FormField(
        name=clean(name),
        kind=kind,
        label=_words(spec.get("title")),
        help=_words(spec.get("description")),
        required=required,
        options=options,
        minimum=low,
        maximum=high,
    )
    return _with_default(field, spec.get("default"))


def _kind(name: str, spec: Mapping[str, Any]) -> tuple[FieldKind, tuple[tuple[str, str], ...]]:
    kind = spec.get("type")
    if isinstance(kind, list):
        kind = next((k for k in kind if k != "null"), None)
    if options := _options(spec):
        return "choice", options
    if kind == "array" and isinstance(items := spec.get("items"), Mapping):
        if options := _options(items):
            return "choices", options
        raise ValueError(f"its field {name!r} is a list without choices")
    if kind == "string":
        return _FORMATS.get(str(spec.get("format")), "text"), ()
    if kind in ("number", "integer", "boolean"):
        return kind, ()
    raise ValueError(f"its field {name!r} is of the type {str(kind)[:40]!r}")


def _options(spec: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The choices: `enum` with or without `enumNames`, or `oneOf`/`anyOf` of const and title."""
    values = spec.get("enum")
    if isinstance(values, list):
        names = spec.get("enumNames")
        labels = names if isinstance(names, list) and len(names) == len(values) else values
        return tuple((str(value), _words(label)) for value, label in zip(values, labels, strict=True))
    for key in ("oneOf", "anyOf"):
        if isinstance(each := spec.get(key), list):
            found = [e for e in each if isinstance(e, Mapping) and "const" in e]
            return tuple((str(e["const"]), _words(e.get("title")) or str(e["const"])) for e in found)
    return ()


def _bounds(kind: FieldKind, spec: Mapping[str, Any]) -> tuple[float | None, float | None]:
    names = {
        "number": ("minimum", "maximum"),
        "integer": ("minimum", "maximum"),
        "choices": ("minItems", "maxItems"),
    }
    low, high = names.get(kind, ("minLength", "maxLength"))
    return _number(spec.get(low)), _number(spec.get(high))


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _with_default(field: FormField, default: Any) -> FormField:
    """The field with its default, where that fits it."""
    from dataclasses import replace

    if default is None:
        return field
    try:
        return replace(field, default=check_values((field,), {field.name: default}).get(field.name))
    except FormError:
        return field


def _words(value: Any) -> str:
    return clean(value)[: MAX_WORDS // 10].strip() if isinstance(value, str) else ""


def key_of(form: Form) -> str:
    """What makes two questions the same: the words, the place, the fields."""
    fields = [(f.name, f.kind, f.options, f.required) for f in form.fields]
    return json.dumps([form.needed, form.where, fields], ensure_ascii=False)
