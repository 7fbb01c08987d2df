"""Answers by a type that pydantic can describe (rules S1, S2)."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import json
import typing
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, TypeVar

import pydantic
import pytest
from typing_extensions import TypedDict

from handrail.messages import ToolCall
from handrail.output.types import InvalidSubmission, OutputError, make_output
from handrail.providers._calls import parse_call

T = TypeVar("T")


def call(arguments: Any) -> ToolCall:
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return parse_call("1", "submit", raw)


def errors_of(type_: Any, arguments: Any) -> dict[str, str]:
    with pytest.raises(InvalidSubmission) as caught:
        make_output(type_).validate(call(arguments))
    assert caught.value.errors
    return {e.path: e.message for e in caught.value.errors}


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Verdict(pydantic.BaseModel):
    flaky: bool
    cause: str
    runs: int = 0


class Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    answer: int


class Node(pydantic.BaseModel):
    name: str
    children: list[Node] = []


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


@pydantic.dataclasses.dataclass
class Checked:
    x: int


class Row(TypedDict):
    key: str
    count: int


class Box(pydantic.BaseModel, Generic[T]):
    item: T


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(pydantic.BaseModel):
    kind: Literal["dog"]
    tricks: list[str]


Pet = Annotated[Cat | Dog, pydantic.Field(discriminator="kind")]


@pytest.mark.parametrize(
    ("type_", "sent", "value"),
    [
        (Verdict, {"flaky": True, "cause": "race"}, Verdict(flaky=True, cause="race")),
        (Point, {"x": 1, "y": 2}, Point(1, 2)),
        (Checked, {"x": 1}, Checked(1)),
        (Row, {"key": "a", "count": 1}, {"key": "a", "count": 1}),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (Box[int], {"item": 3}, Box[int](item=3)),
    ],
)
def test_S1_an_object_type_is_the_parameters_themselves(type_: Any, sent: Any, value: Any) -> None:
    output = make_output(type_)
    assert not output.wrapped
    assert output.parameters["type"] == "object"
    assert output.validate(call(sent)) == value


@pytest.mark.parametrize(
    ("type_", "sent", "value"),
    [
        (int, 5, 5),
        (list[int], [1, 2], [1, 2]),
        (Literal["a", "b"], "b", "b"),
        (int | str, "x", "x"),
        (int | None, None, None),
        (Colour, "red", Colour.RED),
        (dt.date, "2026-07-14", dt.date(2026, 7, 14)),
        (Annotated[int, pydantic.Field(gt=3)], 4, 4),
        (tuple[int, str], [1, "a"], (1, "a")),
        (Cat | Dog, {"kind": "cat", "lives": 9}, Cat(kind="cat", lives=9)),
        (Pet, {"kind": "dog", "tricks": []}, Dog(kind="dog", tricks=[])),
        (list[Point], [{"x": 1}], [Point(1)]),
        (list[Row], [{"key": "a", "count": 1, "more": 2}], [{"key": "a", "count": 1}]),
        (None, None, None),
        (Node, {"name": "a", "children": [{"name": "b"}]}, Node(name="a", children=[Node(name="b")])),
    ],
)
def test_S1_another_root_is_wrapped_and_unwrapped(type_: Any, sent: Any, value: Any) -> None:
    output = make_output(type_)
    assert output.wrapped
    assert output.parameters["type"] == "object"
    assert list(output.parameters["properties"]) == output.parameters["required"] == ["value"]
    assert output.validate(call({"value": sent})) == value


def test_S1_definitions_stand_at_the_root_where_their_references_point() -> None:
    parameters = make_output(Node).parameters
    assert parameters["properties"]["value"] == {"$ref": "#/$defs/Node"}
    assert parameters["$defs"]["Node"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}


def test_S1_a_wrapped_answer_allows_nothing_beside_it() -> None:
    assert errors_of(list[int], {"value": [1], "why": "x"}) == {"why": "Extra fields are not allowed"}
    assert errors_of(list[int], {"values": [1]}) == {
        "value": "Field required",
        "values": "Extra fields are not allowed",
    }
    assert errors_of(int | None, {}) == {"value": "Field required"}


def test_S2_the_value_may_hide_behind_an_escaped_key() -> None:
    assert make_output(list[int]).validate(call(r' {"\u0076alue" : [1, 2] } ')) == [1, 2]


@pytest.mark.parametrize(
    ("type_", "sent"),
    [
        (int, "5"),
        (int, 5.0),
        (int, True),
        (int, None),
        (float, "1.5"),
        (bool, 1),
        (bool, "true"),
        (str, 5),
        (list[int], "[1]"),
        (dt.date, 5),
        (Colour, "green"),
        (Verdict | None, {"flaky": "yes", "cause": "x"}),
    ],
)
def test_S2_nothing_is_coerced(type_: Any, sent: Any) -> None:
    assert errors_of(type_, {"value": sent})


def test_S2_strictness_reaches_fields_and_a_lax_model() -> None:
    class Lax(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(strict=False)
        answer: int

    found = errors_of(Lax, {"answer": "5"})
    assert found == {"answer": 'Input should be a valid integer, not "5"'}


def test_S2_numbers_keep_every_digit_that_was_written() -> None:
    exact = "0.12345678901234567890123"
    assert make_output(Decimal).validate(call({"value": exact})) == Decimal(exact)
    big = 10**300 + 1
    assert make_output(int).validate(call({"value": big})) == big


def test_S2_extra_keys_as_the_model_says() -> None:
    sent = {"flaky": True, "cause": "x", "mood": "fine"}
    assert make_output(Verdict).validate(call(sent)) == Verdict(flaky=True, cause="x")
    assert errors_of(Strict, {"answer": 1, "mood": 2}) == {"mood": "Extra inputs are not permitted"}


def test_S2_errors_name_the_place_in_what_was_sent() -> None:
    found = errors_of(list[Verdict], {"value": [{"flaky": True, "cause": "x"}, {"flaky": 1}]})
    assert found == {
        "value.1.flaky": "Input should be a valid boolean, not 1",
        "value.1.cause": "Field required",
    }


def test_S2_members_of_a_union_are_said_in_words_not_in_the_path() -> None:
    found = errors_of(Cat | Dog, {"value": {"kind": "cat"}})
    assert found["value.lives"] == "As Cat: Field required"
    assert found["value.tricks"] == "As Dog: Field required"


def test_S2_json_in_a_string_is_pointed_out() -> None:
    found = errors_of(list[int], {"value": "[1]"})
    assert "not a string that holds JSON" in found["value"]


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ('{"answer": 1', "not valid JSON"),
        ("", ""),
        ("[1]", "must be an object, not an array of 1"),
        ("null", "must be an object, not null"),
        ("5", "must be an object, not 5"),
        (r'"{\"answer\": 1}"', "send the object itself, not a string that holds JSON"),
        ('{"answer": NaN}', "NaN is not JSON"),
        ('{"answer": -Infinity}', "-Infinity is not JSON"),
        ('{"answer": 1e999}', "1e999 is too large"),
        ('{"answer": ' + "1" * 5000 + "}", "5000 digits is too large"),
        ('{"answer": 1, "answer": 2}', 'the key "answer" occurs twice'),
        ('{"answer": ' + "[" * 5000 + "]" * 5000 + "}", "nested"),
        ('{"answer": ' + "[" * 200 + "]" * 200 + "}", "nested more than 150 levels"),
        ('{"answer": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested"),
    ],
)
def test_S2_arguments_that_cannot_be_read_are_an_invalid_submission(raw: str, words: str) -> None:
    found = errors_of(Strict, raw)
    if words:
        assert words in found[""]
    assert all(len(m) < 500 for m in found.values())


def test_S2_the_error_of_a_call_counts_even_when_its_text_parses() -> None:
    broken = ToolCall("1", "submit", {}, '{"answer": 1}', error="cut by the provider")
    with pytest.raises(InvalidSubmission, match="cut by the provider"):
        make_output(Strict).validate(broken)


def test_S2_what_counts_is_the_raw_text_not_the_parsed_arguments() -> None:
    assert make_output(Strict).validate(ToolCall("1", "submit", {"answer": 1}, '{"answer": 2}')) == Strict(
        answer=2
    )


class Boom(Exception):
    def __str__(self) -> str:
        raise RuntimeError("even this")


def deeper(n: int) -> int:
    return deeper(n + 1)


@pytest.mark.parametrize(
    ("raised", "words"),
    [
        (lambda: KeyError("gone"), "KeyError: 'gone'"),
        (lambda: TypeError("no"), "TypeError: no"),
        (lambda: Boom(), "Boom"),
        (lambda: ValueError("must be odd"), "must be odd"),
        (lambda: AssertionError("must be odd"), "must be odd"),
        (lambda: MemoryError(), "MemoryError"),
        (lambda: ValueError("x" * 5000), "xxx"),
        (lambda: ValueError("\ud800"), "UnicodeEncodeError"),
    ],
)
def test_S2_a_validator_that_raises_is_an_invalid_submission(
    raised: Callable[[], Exception], words: str
) -> None:
    class Odd(pydantic.BaseModel):
        answer: int

        @pydantic.field_validator("answer")
        @classmethod
        def check(cls, value: int) -> int:
            raise raised()

    (message,) = errors_of(Odd, {"answer": 2}).values()
    assert words in message
    assert len(message) < 400
    assert not message.startswith(("Value error", "Assertion failed"))


def test_S2_a_validator_without_end_is_an_invalid_submission() -> None:
    def check(value: int) -> int:
        return deeper(value)

    endless = Annotated[int, pydantic.AfterValidator(check)]
    assert "RecursionError" in errors_of(endless, {"value": 2})["value"]


def test_S2_many_errors_are_counted_not_listed() -> None:
    found = errors_of(list[int], {"value": ["x"] * 1000})
    assert len(found) == 21
    assert found[""] == "and 980 more errors"


def test_S2_huge_values_are_not_echoed() -> None:
    found = errors_of(Strict, {"answer": "y" * 100_000, "k" * 100_000: 1})
    assert all(len(path) <= 300 and len(message) <= 300 for path, message in found.items())


def test_L11_lone_surrogates_and_nul_are_replaced() -> None:
    output = make_output(list[str])
    raw = r'{"value": ["a\ud800b", "\ud83d\ude00", "\u0000", "\\ud800", "\uDFFF\uD83D"]}'
    assert output.validate(call(raw)) == ["a�b", "😀", "�", "\\ud800", "��"]


@pytest.mark.parametrize(
    ("type_", "value", "plain"),
    [
        (Verdict, Verdict(flaky=True, cause="x"), {"flaky": True, "cause": "x", "runs": 0}),
        (dt.date, dt.date(2026, 1, 2), "2026-01-02"),
        (list[Point], [Point(1)], [{"x": 1, "y": 0}]),
        (Colour, Colour.RED, "red"),
        (float, float("nan"), None),
        (int, 10**300, 10**300),
        (set[int], {1}, [1]),
    ],
)
def test_to_json_is_plain_data(type_: Any, value: Any, plain: Any) -> None:
    assert make_output(type_).to_json(value) == plain


def test_to_json_writes_what_was_sent_under_its_alias() -> None:
    class Named(pydantic.BaseModel):
        answer: int = pydantic.Field(alias="theAnswer")

    output = make_output(Named)
    assert output.to_json(output.validate(call({"theAnswer": 1}))) == {"theAnswer": 1}


def test_to_json_of_what_json_cannot_hold_is_text() -> None:
    class Odd:
        def __str__(self) -> str:
            return "odd \ud800"

    made = Annotated[int, pydantic.AfterValidator(lambda value: Odd())]
    output = make_output(made)
    assert output.to_json(output.validate(call({"value": 1}))) == "odd �"


def test_to_json_survives_a_value_without_words() -> None:
    made = Annotated[int, pydantic.AfterValidator(lambda value: Boom())]
    output = make_output(made)
    assert output.to_json(output.validate(call({"value": 1}))) == "Boom"


class Old(typing.TypedDict):
    key: str


def test_a_typed_dict_of_typing_is_refused_with_what_to_import() -> None:
    import sys

    if sys.version_info >= (3, 12):
        assert make_output(Old).validate(call({"key": "a"})) == {"key": "a"}
        return
    with pytest.raises(OutputError, match="Import TypedDict from typing_extensions"):
        make_output(Old)
    with pytest.raises(ValueError, match="typing_extensions"):
        make_output(list[Old])


@pytest.mark.parametrize("type_", [Callable[[], int], object(), 5, "Nowhere", type("Z", (), {})])
def test_a_type_that_nobody_can_describe_is_refused_in_one_sentence(type_: Any) -> None:
    with pytest.raises(OutputError) as caught:
        make_output(type_)
    words = str(caught.value)
    assert "cannot be the type of an answer" in words
    assert "\n" not in words and len(words) < 400


def test_a_default_that_json_cannot_hold_makes_no_noise() -> None:
    class Odd(pydantic.BaseModel):
        answer: int
        when: Any = object()

    assert "answer" in make_output(Odd).parameters["properties"]
