"""Answers to forms, as people write them."""

from __future__ import annotations

from typing import Any

import pytest

from handrail.events.parts import FormField
from handrail.forms import FormError, described, read_answer

NAME = FormField("name", required=True, label="Your name", help="as in your passport")
AGE = FormField("age", "integer", minimum=0, maximum=150)
SURE = FormField("sure", "boolean", default=False)
HERO = FormField("hero", "choice", options=(("hero-1", "Superman"), ("hero-2", "Lantern")))
FISH = FormField(
    "fish", "choices", options=(("f1", "Tuna"), ("f2", "Salmon"), ("f3", "Trout")), minimum=1, maximum=2
)
FORM = (NAME, AGE, SURE, HERO, FISH)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('{"name": "Ada", "age": 36}', {"name": "Ada", "age": 36, "sure": False}),
        ("name=Ada age=36 sure=yes", {"name": "Ada", "age": 36, "sure": True}),
        ("name='Ada Lovelace' hero=superman", {"name": "Ada Lovelace", "hero": "hero-1", "sure": False}),
        ("name=Ada Lovelace\nfish=Tuna, f3", {"name": "Ada Lovelace", "fish": ["f1", "f3"], "sure": False}),
        ('{"name": "A", "fish": ["salmon", "f2"], "age": ""}', {"name": "A", "fish": ["f2"], "sure": False}),
    ],
)
def test_an_answer_is_read_as_json_or_pairs(text: str, values: dict[str, Any]) -> None:
    assert read_answer(FORM, text) == values


@pytest.mark.parametrize(
    ("text", "errors"),
    [
        ("", {"name": "is required: text"}),
        ("name=Ada age=151", {"age": "'151' does not fit: a whole number, 0 to 150"}),
        ("name=Ada age=3.5", {"age": "'3.5' does not fit: a whole number, 0 to 150"}),
        ('{"name": "A", "age": true}', {"age": "'true' does not fit: a whole number, 0 to 150"}),
        ("name=Ada shoe=4", {"shoe": "there is no such field; the fields are name, age, sure, hero, fish"}),
        ("name=Ada sure=perhaps", {"sure": "'perhaps' does not fit: yes or no"}),
        (
            "name=A fish=f1,f2,f3",
            {"fish": "'f1,f2,f3' does not fit: some of f1 (Tuna), f2"},
        ),
        ("yes", {"": "'yes' is no name=value"}),
    ],
)
def test_what_does_not_fit_is_named_field_by_field(text: str, errors: dict[str, str]) -> None:
    with pytest.raises(FormError) as raised:
        read_answer(FORM, text)
    found = {error.path: error.message for error in raised.value.errors}
    assert found.keys() == errors.keys()
    for path, words in errors.items():
        assert found[path].startswith(words)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("text", "two words = three", "two words = three"),
        ("number", "2.5", 2.5),
        ("date", "2026-07-28", "2026-07-28"),
        ("date-time", "2026-07-28T09:30:00+02:00", "2026-07-28T09:30:00+02:00"),
        ("email", "ada@example.com", "ada@example.com"),
        ("uri", "https://example.com/x?y=1", "https://example.com/x?y=1"),
        ("boolean", "y", True),
        ("integer", "v=7", 7),
    ],
)
def test_a_form_with_one_field_takes_the_bare_value(kind: Any, text: str, value: Any) -> None:
    assert read_answer((FormField("v", kind, required=True),), text) == {"v": value}


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("number", "1e999"),
        ("date", "28.7.2026"),
        ("date-time", "soon"),
        ("email", "ada"),
        ("uri", "example"),
        ("number", "NaN"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused(kind: Any, text: str) -> None:
    with pytest.raises(FormError):
        read_answer((FormField("v", kind),), text)


def test_a_form_is_described_line_by_line() -> None:
    assert described((NAME, SURE)) == [
        "name: text (required) · Your name · as in your passport",
        "sure: yes or no (optional, default no)",
    ]
