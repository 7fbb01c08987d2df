"""Answers by a JSON Schema (rules S1, S2)."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.messages import ToolCall
from handrail.output.types import InvalidSubmission, Output, OutputError, make_output
from handrail.providers._calls import parse_call


def call(arguments: Any) -> ToolCall:
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return parse_call("1", "submit", raw)


def errors_of(schema: Any, arguments: Any) -> dict[str, str]:
    with pytest.raises(InvalidSubmission) as caught:
        make_output(schema).validate(call(arguments))
    return {e.path: e.message for e in caught.value.errors}


def accepts(output: Output[Any], arguments: Any) -> bool:
    try:
        output.validate(call(arguments))
    except InvalidSubmission:
        return False
    return True


def field(**schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}, "required": ["a"]}


ANSWER = {
    "type": "object",
    "required": ["answer"],
    "properties": {"answer": {"type": "integer"}},
    "additionalProperties": False,
}


def test_S1_an_object_schema_is_shown_as_it_is() -> None:
    output = make_output(ANSWER)
    assert not output.wrapped
    assert output.parameters == ANSWER
    assert output.validate(call({"answer": 42})) == {"answer": 42}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"type": "integer"}},
        {"type": ["object", "null"]},
        {"$ref": "#/$defs/A", "$defs": {"A": ANSWER}},
        {"properties": {"answer": {}}},
        {"anyOf": [{"type": "object"}]},
        {},
    ],
)
def test_S1_a_root_that_does_not_say_object_is_wrapped(schema: dict[str, Any]) -> None:
    output = make_output(schema)
    assert output.wrapped
    assert output.parameters["type"] == "object"
    assert output.parameters["additionalProperties"] is False
    jsonschema.Draft202012Validator.check_schema(output.parameters)


def test_S1_a_list_is_unwrapped() -> None:
    output = make_output({"type": "array", "items": {"type": "integer"}})
    assert output.validate(call({"value": [1, 2]})) == [1, 2]
    assert errors_of({"type": "array", "items": {"type": "integer"}}, {"value": [1, "2"]}) == {
        "value.1": "\"2\" is not of type 'integer'"
    }
    assert errors_of({"type": "array"}, {"value": [], "why": 1}) == {"why": "Extra fields are not allowed"}
    assert errors_of({"type": "array"}, [1]).keys() == {""}


TREES = [
    # A tree that names itself: by the root, an anchor, a definition, a place below the root; three dialects.
    {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#"}}]},
    {"$anchor": "tree", "anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#tree"}}]},
    {
        "$ref": "#/$defs/tree",
        "$defs": {"tree": {"anyOf": [{"type": "integer"}, {"items": {"$ref": "#"}, "type": "array"}]}},
    },
    {
        "anyOf": [
            {"type": "integer"},
            {"type": "array", "items": {"anyOf": [{"$ref": "#/anyOf/0"}, {"$ref": "#"}]}},
        ]
    },
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$ref": "#/definitions/tree",
        "definitions": {
            "tree": {
                "anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#/definitions/tree"}}]
            }
        },
    },
    {
        "$schema": "https://json-schema.org/draft/2019-09/schema",
        "$id": "https://example.com/tree",
        "anyOf": [{"type": "integer"}, {"type": "array", "items": {"$recursiveRef": "#"}}],
    },
]


@pytest.mark.parametrize("schema", TREES)
@pytest.mark.parametrize(
    ("value", "valid"), [([1, [2, [3]]], True), ([1, ["x"]], False), (5, True), ("x", False)]
)
def test_S1_a_recursive_schema_means_the_same_when_wrapped(schema: Any, value: Any, valid: bool) -> None:
    output = make_output(schema)
    assert output.wrapped
    assert accepts(output, {"value": value}) is valid
    # What the model is shown says the same as what it is judged by.
    assert jsonschema.Draft202012Validator(output.parameters).is_valid({"value": value}) is valid


def test_S1_a_property_may_have_the_name_of_a_keyword() -> None:
    schema = {
        "properties": {"default": {"$ref": "#"}, "enum": {"type": "integer"}},
        "additionalProperties": False,
    }
    shown = make_output(schema).parameters
    for value, valid in [({"default": {"enum": 1}}, True), ({"default": {"enum": "x"}}, False)]:
        assert accepts(make_output(schema), {"value": value}) is valid
        assert jsonschema.Draft202012Validator(shown).is_valid({"value": value}) is valid


def test_S1_a_recursive_object_is_not_wrapped() -> None:
    schema = {"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": False}
    output = make_output(schema)
    assert output.parameters == schema
    assert accepts(output, {"next": {"next": {}}})
    assert not accepts(output, {"next": {"nxt": {}}})


def test_S1_names_and_data_that_look_like_references_stay() -> None:
    schema = {
        "properties": {
            "$ref": {"const": {"$ref": "#"}},
            "b": {"enum": [{"$ref": "#/x"}], "default": {"$ref": "#"}},
        }
    }
    assert make_output(schema).parameters["properties"]["value"] == schema


@pytest.mark.parametrize(
    ("schema", "sent", "path"),
    [
        ({"type": "integer"}, "5", "a"),
        ({"type": "integer"}, 5.0, "a"),
        ({"type": "integer"}, True, "a"),
        ({"type": "integer"}, None, "a"),
        ({"type": "number"}, True, "a"),
        ({"type": "boolean"}, 1, "a"),
        ({"type": "string", "format": "date"}, "2026-13-01", "a"),
        ({"type": "string", "format": "date-time"}, "yesterday", "a"),
        ({"type": "string", "format": "uri"}, "not a uri", "a"),
        ({"type": "string", "format": "email"}, "nobody", "a"),
        ({"type": "string", "format": "ipv4"}, "300.1.1.1", "a"),
        ({"type": "string", "format": "uuid"}, "x", "a"),
        ({"type": "string", "format": "duration"}, "1 hour", "a"),
        ({"type": "string", "format": "json-pointer"}, "a/b", "a"),
        ({"type": "string", "format": "hostname"}, "-x-", "a"),
        ({"type": "string", "pattern": "^a+$"}, "b", "a"),
        ({"const": 1}, True, "a"),
        ({"enum": [0]}, False, "a"),
        ({"type": "array", "items": {"type": "object", "required": ["b"]}}, [{"b": 1}, {}], "a.1.b"),
        ({"type": "object", "additionalProperties": False}, {"x": 1}, "a.x"),
        (
            {"type": "object", "patternProperties": {"^x": {}}, "additionalProperties": False},
            {"x": 1, "y": 1},
            "a.y",
        ),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "x", "a"),
        ({"minimum": 3}, 2, "a"),
    ],
)
def test_S2_each_field_that_does_not_fit_is_named(schema: Any, sent: Any, path: str) -> None:
    full = {"type": "object", "properties": {"a": schema}}
    assert list(errors_of(full, {"a": sent})) == [path]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer", "$schema": "http://json-schema.org/draft-04/schema#"},
        {"type": "integer", "$schema": "https://json-schema.org/draft-07/schema"},
        {"type": "integer", "$schema": "https://json-schema.org/draft/2020-12/schema"},
    ],
)
def test_S2_no_dialect_takes_a_float_for_an_integer(schema: dict[str, Any]) -> None:
    assert accepts(make_output(schema), {"value": 5})
    assert not accepts(make_output(schema), '{"value": 5.0}')
    assert "$schema" not in json.dumps(make_output(schema).parameters)


def test_S2_the_dialect_that_the_schema_names_is_kept() -> None:
    old = {"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 3, "exclusiveMinimum": True}
    assert accepts(make_output(old), {"value": 4})
    assert not accepts(make_output(old), {"value": 3})


def test_S2_a_field_that_is_forbidden_is_said() -> None:
    schema = {"type": "object", "properties": {"a": False}}
    assert errors_of(schema, {"a": 1}) == {"": "The schema does not allow this value: 1"}


@pytest.mark.parametrize(
    ("format", "good", "bad"),
    [
        ("iri", "https://bücher.example/straße?ü=ä", "https://a b"),
        ("iri-reference", "/straße#ü", "\\\\straße"),
        ("uri-reference", "/a#b", "/straße"),
        ("time", "12:00:00Z", "noon"),
        ("idn-hostname", "bücher.example", "-bücher"),
        ("ipv6", "::1", "12345::"),
        ("regex", "a+", "("),
        ("relative-json-pointer", "1/a", "x"),
        ("uri-template", "/a/{b}", "/a/{b"),
    ],
)
def test_S2_formats_are_checked(format: str, good: str, bad: str) -> None:
    output = make_output(field(type="string", format=format))
    assert accepts(output, {"a": good})
    assert not accepts(output, {"a": bad})


def test_S2_required_fields_are_named_one_by_one() -> None:
    schema = {"type": "object", "required": ["a", "b", "c"]}
    assert errors_of(schema, {"b": 1}) == {"a": "Field required", "c": "Field required"}


def test_S2_the_nearest_form_of_a_union_is_said() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"anyOf": [{"type": "integer"}, {"type": "object", "required": ["size"]}]}},
    }
    message = errors_of(schema, {"a": {}})["a"]
    assert message.startswith("Fits none of the allowed forms. Nearest: a")
    assert "size" in message or "integer" in message


def test_S2_huge_values_are_not_echoed() -> None:
    schema = {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 1}
    found = errors_of(schema, {"k" * 5000: "v" * 50_000, "b": ["w" * 50_000]})
    assert all(len(path) <= 300 and len(message) <= 300 for path, message in found.items())


def test_S2_a_check_that_raises_is_an_invalid_submission() -> None:
    endless = {"type": "object", "properties": {"a": {"allOf": [{"$ref": "#/properties/a"}]}}}
    assert "RecursionError" in errors_of(endless, {"a": 1})[""]


def test_S2_big_numbers_are_judged_and_kept() -> None:
    output = make_output(field(type="integer", minimum=10**400))
    assert output.validate(call({"a": 10**400})) == {"a": 10**400}
    assert not accepts(output, {"a": 10**399})
    accepts(make_output(field(multipleOf=0.5)), {"a": 10**400})


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "integr"}, "not valid at type"),
        ({"properties": {"a": {"required": "b"}}}, "not valid at properties.a.required"),
        ({"pattern": "("}, "not valid at pattern"),
        ({"$ref": "https://example.com/schema.json"}, "outside it"),
        ({"properties": {"a": {"items": {"$ref": "other.json#/a"}}}}, "outside it"),
        ({"$ref": "#/$defs/nope", "$defs": {}}, 'refers to "#/$defs/nope", which is not in it'),
        ({"$ref": "#nope"}, "which is not in it"),
        ({"$ref": "#/x/y", "x": {"y": {"$ref": "file:///etc/passwd"}}}, "outside it"),
        ({"$schema": "https://example.com/dialect"}, "not known here"),
        ({"$schema": 5}, "not known here"),
        ({"default": {1, 2}}, "a value that JSON cannot represent"),
        ({"const": float("nan")}, "a value that JSON cannot represent"),
    ],
)
def test_S2_a_schema_that_cannot_be_used_is_refused_at_the_call(schema: Any, words: str) -> None:
    with pytest.raises(OutputError) as caught:
        make_output(schema)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 500


def test_a_schema_nested_without_end_is_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(400):
        deep = {"properties": {"a": deep}}
    with pytest.raises(OutputError, match="too deeply"):
        make_output(deep)


def test_a_schema_changed_later_changes_nothing() -> None:
    schema: dict[str, Any] = field(type="integer")
    output = make_output(MappingProxyType(schema))
    schema["properties"]["a"]["type"] = "string"
    assert accepts(output, {"a": 1})


# Random schemas of a small grammar, each with a way to draw values that fit it.

WORDS = st.text("abc", max_size=3)
ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | WORDS | st.sampled_from([0.5, -2.25]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
LEAVES: st.SearchStrategy[tuple[dict[str, Any], st.SearchStrategy[Any]]] = st.one_of(
    st.integers(-5, 5).map(lambda low: ({"type": "integer", "minimum": low}, st.integers(low, 9))),
    st.just(({"type": "string"}, WORDS)),
    st.integers(0, 2).map(lambda n: ({"type": "string", "maxLength": n}, st.text("ab", max_size=n))),
    st.just(({"type": "boolean"}, st.booleans())),
    st.just(({"type": "null"}, st.none())),
    st.lists(ANY, min_size=1, max_size=3).map(lambda values: ({"enum": values}, st.sampled_from(values))),
    st.just(({}, ANY)),
)


def _lists(inner: Any) -> Any:
    return inner.map(lambda pair: ({"type": "array", "items": pair[0]}, st.lists(pair[1], max_size=3)))


def _unions(inner: Any) -> Any:
    return st.lists(inner, min_size=1, max_size=3).map(
        lambda pairs: ({"anyOf": [s for s, _ in pairs]}, st.one_of([v for _, v in pairs]))
    )


def _objects(inner: Any) -> Any:
    def made(drawn: tuple[dict[str, Any], bool]) -> tuple[dict[str, Any], Any]:
        fields, closed = drawn
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {k: s for k, (s, _) in fields.items()},
            "required": [k for k in fields if k != "c"],
        }
        if closed:
            schema["additionalProperties"] = False
        needed = {k: v for k, (_, v) in fields.items() if k != "c"}
        return schema, st.fixed_dictionaries(needed)

    return st.tuples(st.dictionaries(st.sampled_from("abc"), inner, max_size=3), st.booleans()).map(made)


SCHEMAS = st.recursive(LEAVES, lambda i: _lists(i) | _unions(i) | _objects(i), max_leaves=6)


@st.composite
def judged(draw: st.DrawFn) -> tuple[dict[str, Any], Any]:
    schema, values = draw(SCHEMAS)
    return schema, draw(values)


def mutated(draw: st.DrawFn, value: Any) -> Any:
    """`value` with one thing in it replaced, added or taken away."""
    if isinstance(value, dict) and value and draw(st.booleans()):
        key = draw(st.sampled_from(sorted(value)))
        rest = {k: v for k, v in value.items() if k != key}
        return rest if draw(st.booleans()) else {**rest, key: mutated(draw, value[key])}
    if isinstance(value, list) and value and draw(st.booleans()):
        at = draw(st.integers(0, len(value) - 1))
        return [*value[:at], mutated(draw, value[at]), *value[at + 1 :]]
    if isinstance(value, dict) and draw(st.booleans()):
        return {**value, "zz": draw(ANY)}
    return draw(ANY)


def sent_as(output: Output[Any], value: Any) -> Any:
    return {"value": value} if output.wrapped else value


@given(judged())
def test_S2_what_fits_a_random_schema_is_accepted_unchanged(pair: tuple[dict[str, Any], Any]) -> None:
    schema, value = pair
    output = make_output(schema)
    assert output.validate(call(sent_as(output, value))) == value


@given(st.data(), judged())
def test_S2_a_mutated_value_is_judged_as_jsonschema_judges_it(
    data: st.DataObject, pair: tuple[dict[str, Any], Any]
) -> None:
    schema, value = pair
    changed = data.draw(st.composite(lambda draw: mutated(draw, value))())
    output = make_output(schema)
    expected = jsonschema.Draft202012Validator(schema).is_valid(changed)
    if not output.wrapped and not isinstance(changed, dict):
        expected = False
    assert accepts(output, json.dumps(sent_as(output, changed))) is expected
