"""JSON Schema for submissions: check the schema, prepare it for the model, validate data (rules S1, S2).

jsonschema and referencing are imported on first use, so that a run without a schema starts faster.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from handrail.errors import ConfigError
from handrail.events import FieldError
from handrail.messages import deeper_than
from handrail.output._keywords import PATTERNS, found_in, is_multiple, is_pattern

if TYPE_CHECKING:
    from jsonschema import FormatChecker

VALUE = "value"
"""The single property that wraps a root that is not a plain object (rule S1)."""

DEEPEST = 250
"""Levels of nesting that a schema may have."""

NOT_ALLOWED = "Extra fields are not allowed"

_NOT_AT_THE_ROOT = frozenset({"oneOf", "anyOf", "allOf", "enum", "not"})
_HOISTED = ("$defs", "definitions")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_DATA = ("const", "enum", "default", "examples")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_NAMED = ("properties", "patternProperties", "dependentSchemas", "dependencies", *_HOISTED)


class OutputError(ConfigError, ValueError):
    """The output type or schema cannot be used. The message says what is wrong, where, and what to do."""


def is_plain_object(schema: Mapping[str, Any]) -> bool:
    """Whether the root says `type: object` and nothing that providers refuse there, so that it needs no wrapping."""
    return schema.get("type") == "object" and _NOT_AT_THE_ROOT.isdisjoint(schema)


def shown(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema as the model gets it: an object at the root, wrapped in `VALUE` if necessary (rule S1)."""
    plain = {k: v for k, v in schema.items() if k != "$schema"}
    if is_plain_object(plain):
        return plain
    hoisted = {k: plain.pop(k) for k in _HOISTED if k in plain}
    plain.pop("$id", None)  # with its own id, the inner schema's `#/…` would not reach what is hoisted
    return {
        "type": "object",
        "properties": {VALUE: _moved(plain)},
        "required": [VALUE],
        "additionalProperties": False,
        **{k: {name: _moved(s) for name, s in defs.items()} for k, defs in hoisted.items()},
    }


def _moved(schema: Any) -> Any:
    """`schema` with its references adjusted to its place under `VALUE`."""
    if isinstance(schema, list):
        return [_moved(s) for s in schema]
    if not isinstance(schema, dict) or not str(schema.get("$id", "#")).startswith("#"):
        return schema  # below its own `$id`, a reference is relative to that
    moved: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _REFERENCES and isinstance(value, str):
            target = _moved_reference(value)
            moved["$ref" if target != value else key] = target
        elif key in _NAMED and isinstance(value, dict):
            moved[key] = {name: _moved(s) for name, s in value.items()}
        else:
            moved[key] = value if key in _DATA else _moved(value)
    return moved


def _moved_reference(ref: str) -> str:
    if ref == "#":
        return f"#/properties/{VALUE}"
    if ref.startswith("#/") and unquote(ref[2:].partition("/")[0]) not in _HOISTED:
        return f"#/properties/{VALUE}/{ref[2:]}"
    return ref


class SchemaValidator:
    """Validates parsed JSON against a JSON Schema of any draft, 2020-12 if it names none (rule S2).

    Formats are checked, 5.0 is not an integer, nothing is ever fetched. Raises OutputError for a schema that is
    invalid, or has a reference that leads outside it or nowhere.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        from jsonschema import validators
        from referencing import Registry

        extend: Any = validators.extend
        self.schema = _plain(schema)
        kind = _validator_class(self.schema)
        self._check(kind)
        types = kind.TYPE_CHECKER.redefine("integer", _is_integer)
        strict = extend(kind, {"multipleOf": is_multiple, **PATTERNS}, type_checker=types)
        self._validator = strict(self.schema, registry=Registry(), format_checker=_formats(kind))

    def errors(self, value: Any, at: tuple[str, ...] = ()) -> Iterator[FieldError]:
        """The errors of `value`, which is at the path `at`; none when it is valid.

        May raise whatever a format or pattern check raises.
        """
        for error in self._validator.iter_errors(value):
            yield from _described(error, at)

    def _check(self, kind: Any) -> None:
        from jsonschema.exceptions import SchemaError

        if deeper_than(self.schema, DEEPEST):
            raise OutputError(f"The JSON Schema is nested too deeply: more than {DEEPEST} levels.")
        try:
            kind.check_schema(self.schema, format_checker=_formats(kind))
            _check_references(self.schema, kind)
        except SchemaError as error:
            where = dotted(error.absolute_path) or "the root"
            raise OutputError(f"The JSON Schema is not valid at {where}: {_words(error)}.") from None
        except RecursionError:
            raise OutputError("The JSON Schema is nested too deeply to be checked.") from None


def _plain(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A copy in plain JSON types, so that it cannot be changed from outside."""
    try:
        copy: dict[str, Any] = json.loads(json.dumps(dict(schema), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise OutputError(f"The JSON Schema contains a value that JSON cannot represent: {error}.") from None
    return copy


def _validator_class(schema: Mapping[str, Any]) -> Any:
    from jsonschema import Draft202012Validator, validators

    find: Any = validators.validator_for
    named = schema.get("$schema")
    if named is None:
        return Draft202012Validator
    spellings = (named, str(named).replace("https:", "http:", 1), str(named).replace("http:", "https:", 1))
    for spelling in spellings if isinstance(named, str) else ():
        if (kind := find({"$schema": spelling}, default=None)) is not None:
            return kind
    raise OutputError(
        f"The JSON Schema says $schema: {brief(named)}, a dialect that is not known here. "
        "Use https://json-schema.org/draft/2020-12/schema, or leave $schema out."
    )


def _is_integer(checker: object, instance: object) -> bool:
    return isinstance(instance, int) and not isinstance(instance, bool)


def _formats(kind: Any) -> FormatChecker:
    """The formats of the dialect, iri and iri-reference among them.

    For these two, jsonschema needs a package that takes a second to import. An IRI is a URI once its non-ASCII
    characters are escaped.
    """
    from jsonschema import Draft202012Validator, FormatChecker

    checker = FormatChecker(())
    checker.checkers.update(kind.FORMAT_CHECKER.checkers)
    known = Draft202012Validator.FORMAT_CHECKER.checkers
    for iri, uri in (("iri", "uri"), ("iri-reference", "uri-reference")):
        checker.checkers.setdefault(iri, (_escaped(known[uri][0]), known[uri][1]))
    checker.checkers["regex"] = (is_pattern, ())
    return checker


def _escaped(check: Callable[[Any], bool]) -> Callable[[object], bool]:
    return lambda value: check(_NOT_ASCII.sub("%AA", value) if isinstance(value, str) else value)


def _check_references(schema: dict[str, Any], kind: Any) -> None:
    """Check that every reference is local and has a target (rule S2)."""
    from referencing import Registry
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import specification_with

    specification = specification_with(kind.META_SCHEMA["$schema"])
    root = specification.create_resource(schema)
    todo = [(root, Registry().resolver_with_root(root))]
    seen: set[int] = set()
    while todo:
        resource, resolver = todo.pop()
        if id(resource.contents) in seen or not isinstance(resource.contents, dict):
            continue
        seen.add(id(resource.contents))
        for ref in (r for k in _REFERENCES if isinstance(r := resource.contents.get(k), str)):
            if not ref.startswith("#"):
                raise OutputError(
                    f"The JSON Schema refers to {brief(ref)}, which is outside it. Nothing is fetched: "
                    "copy that schema into $defs and refer to it as #/$defs/NAME."
                )
            try:
                found = resolver.lookup(ref)
            except Unresolvable:
                raise OutputError(f"The JSON Schema refers to {brief(ref)}, which is not in it.") from None
            todo.append((specification.create_resource(found.contents), found.resolver))
        todo += [(sub, resolver.in_subresource(sub)) for sub in resource.subresources()]


def _described(error: Any, at: tuple[str, ...]) -> Iterator[FieldError]:
    """An error of jsonschema as field errors, each at the place that must be changed."""
    path = (*at, *error.absolute_path)
    if error.validator == "required":
        missing = [name for name in error.validator_value if name not in error.instance]
        yield from (FieldError(dotted((*path, name)), "Field required") for name in missing)
    elif error.validator == "additionalProperties" and error.validator_value is False:
        yield from (FieldError(dotted((*path, name)), NOT_ALLOWED) for name in _extras(error))
    elif error.validator in ("anyOf", "oneOf") and error.context:
        yield FieldError(dotted(path), _no_form_fits(error, at) + json_hint(error.instance))
    else:
        yield FieldError(dotted(path), _words(error) + json_hint(error.instance))


def _extras(error: Any) -> list[str]:
    known, patterns = error.schema.get("properties", {}), error.schema.get("patternProperties", {})
    return [k for k in error.instance if k not in known and not any(found_in(p, k) for p in patterns)]


def _no_form_fits(error: Any, at: tuple[str, ...]) -> str:
    from jsonschema.exceptions import best_match

    nearest: Any = best_match([error])
    where = dotted((*at, *nearest.absolute_path))
    return shorten(
        f"Fits none of the allowed forms. Nearest: {where + ': ' if where else ''}{_words(nearest)}"
    )


def _words(error: Any) -> str:
    """jsonschema's own message, with long values shortened."""
    if error.validator is None:  # the schema `false`; jsonschema gives no path to it
        return f"The schema does not allow this value: {brief(error.instance)}"
    return shorten(error.message.replace(repr(error.instance), brief(error.instance)))


def dotted(path: Iterable[str | int]) -> str:
    """`items.0.name`."""
    return shorten(".".join(str(part) for part in path))


def json_hint(value: object) -> str:
    """What to say of a string that holds JSON where something else is expected."""
    holds = isinstance(value, str) and value.lstrip().startswith(("{", "["))
    return " (send JSON itself, not a string that holds JSON)" if holds else ""


def brief(value: Any) -> str:
    """A value in a few characters, as JSON writes it."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return f"an array of {len(value)}"
    return shorten(json.dumps(value, ensure_ascii=False, default=repr), 60)


def shorten(text: str, limit: int = 300) -> str:
    """`text`, cut in its middle so that it has at most `limit` characters."""
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    return f"{text[:head]} … {text[len(text) - (limit - head - 3) :]}"
