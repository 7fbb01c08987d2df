"""JSON Schema means its keywords, not Python's (rules S1, S2)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from handrail.messages import ToolCall
from handrail.output.types import InvalidSubmission, OutputError, make_output


def submitted(schema: dict[str, Any], value: Any) -> Any:
    """What a submission of `value` becomes; a list of errors where it is refused."""
    output = make_output(schema)
    document = {"value": value} if output.wrapped else value
    try:
        return output.validate(ToolCall("c", "submit", raw=json.dumps(document)))
    except InvalidSubmission as error:
        return [f"{e.path}: {e.message}" for e in error.errors]


def field(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": schema}, "required": ["x"]}


FORMS = [{"required": ["a"]}, {"required": ["b"]}]


@pytest.mark.parametrize(
    "more",
    [
        {"oneOf": FORMS},
        {"anyOf": FORMS},
        {"allOf": FORMS[:1]},
        {"enum": [{"a": 1}]},
        {"not": {"required": ["b"]}},
    ],
)
def test_S1_an_object_with_what_providers_refuse_at_the_root_is_wrapped(more: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, **more}
    output = make_output(schema)
    assert output.wrapped
    assert set(output.parameters) == {"type", "properties", "required", "additionalProperties"}
    assert submitted(schema, {"a": 1}) == {"a": 1}
    assert (
        submitted(schema, {"b": 1, "c": 2} if "allOf" in more or "enum" in more or "not" in more else {})[0]
        != 1
    )


def test_S1_such_keywords_below_the_root_wrap_nothing() -> None:
    assert not make_output(field({"anyOf": [{"type": "integer"}, {"type": "null"}]})).wrapped


def test_S1_references_to_the_root_survive_the_wrapping() -> None:
    schema = {
        "type": "object",
        "properties": {"next": {"$ref": "#"}, "n": {"$ref": "#/$defs/n"}},
        "anyOf": [{"required": ["n"]}],
        "$defs": {"n": {"type": "integer"}},
    }
    assert submitted(schema, {"n": 1, "next": {"n": 2}}) == {"n": 1, "next": {"n": 2}}
    assert submitted(schema, {"n": 1, "next": {"n": "2"}}) != {"n": 1, "next": {"n": "2"}}


@pytest.mark.parametrize(
    ("step", "value", "fits"),
    [
        (0.01, 19.99, True),
        (0.01, 0.07, True),
        (0.01, 1.005, False),
        (0.1, 0.3, True),
        (0.1, 1e300, True),
        (1e-8, 12_391_239_123, True),
        (0.05, 100.15, True),
        (0.05, 100.12, False),
        (2.5, 7.5, True),
        (3, 9, True),
        (3, 10, False),
        (0.01, -19.99, True),
    ],
)
def test_S2_multiples_are_counted_in_decimals(step: float, value: float, fits: bool) -> None:
    answer = submitted(field({"type": "number", "multipleOf": step}), {"x": value})
    assert answer == ({"x": value} if fits else [f"x: {value!r} is not a multiple of {step}"])


@pytest.mark.parametrize("value", ['{"a": 1}', " [1, 2]"])
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "array"},
        {"anyOf": [{"type": "object"}, {"type": "null"}]},
        {"$ref": "#/$defs/o"},
    ],
)
def test_S2_a_string_that_holds_json_is_said_to_be_one(schema: dict[str, Any], value: str) -> None:
    whole = {**field(schema), "$defs": {"o": {"type": "object"}}}
    [error] = submitted(whole, {"x": value})
    assert error.startswith("x: ") and "send JSON itself, not a string that holds JSON" in error


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        (r"^(?<year>\d{4})-(?<month>\d{2})$", "2026-07", True),
        (r"^(?<year>\d{4})-(?<month>\d{2})$", "2026-7", False),
        (r"^(?<q>['\"]).*\k<q>$", "'a'", True),
        (r"^\d+$", "42", True),
        (r"^\d+$", "٤٢", False),
        (r"^\p{L}+$", "Grüße", True),
        (r"^[\w\-.]+$", "a-b.c", True),
        (r"^a$", "a\n", False),
        (r"^\u0041\/$", "A/", True),
        (r"^(?P<python>a)(?P=python)$", "aa", True),
        (r"^(?i)python$", "PYTHON", None),
    ],
)
def test_S2_patterns_are_those_of_ecmascript_and_pythons_where_only_it_reads_them(
    pattern: str, text: str, fits: bool | None
) -> None:
    if fits is None:
        with pytest.raises(OutputError, match="not valid"):
            make_output(field({"type": "string", "pattern": pattern}))
        return
    answer = submitted(field({"type": "string", "pattern": pattern}), {"x": text})
    assert (answer == {"x": text}) is fits


def test_S2_names_are_matched_by_the_same_patterns() -> None:
    schema = {
        "type": "object",
        "patternProperties": {r"^(?<kind>n)_": {"type": "integer"}},
        "additionalProperties": False,
    }
    assert submitted(schema, {"n_a": 1}) == {"n_a": 1}
    assert submitted(schema, {"n_a": "1"}) == ["n_a: \"1\" is not of type 'integer'"]
    assert submitted(schema, {"m_a": 1}) == ["m_a: Extra fields are not allowed"]


def test_S2_a_pattern_that_is_none_is_refused_at_the_call() -> None:
    with pytest.raises(OutputError, match="not valid"):
        make_output(field({"type": "string", "pattern": "("}))
