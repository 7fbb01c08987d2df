"""Known keys never stand in text, whole, escaped or in pieces (rule J5)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.events import MessageFinished, RunStarted, ToolFinished
from handrail.mask import MASK, Masker, is_key_name, key_values
from handrail.messages import AssistantMessage, Failure, Text, ToolCall

pytestmark = pytest.mark.attack

KEY = 'sk-ab/cd"ef\\gh-é'


def test_J5_a_value_is_masked_wherever_it_stands() -> None:
    masker = Masker([KEY])
    assert masker.mask(f"a {KEY} b {KEY}") == f"a {MASK} b {MASK}"
    assert masker.mask("nothing here") == "nothing here"


@pytest.mark.parametrize("escaped", [json.dumps(KEY), json.dumps(KEY, ensure_ascii=False)])
def test_J5_a_value_escaped_as_in_json_is_masked(escaped: str) -> None:
    assert Masker([KEY]).mask(f'{{"k": {escaped}}}') == f'{{"k": "{MASK}"}}'
    slashed = escaped.replace("/", "\\/")
    assert Masker([KEY]).mask(slashed) == f'"{MASK}"'


def test_J5_the_longer_of_two_values_goes_whole() -> None:
    masker = Masker(["12345678", "123456789abc"])
    assert masker.mask("123456789abc 12345678 123456789ab") == f"{MASK} {MASK} {MASK}9ab"


def test_J5_short_values_and_none_change_nothing() -> None:
    masker = Masker(["test", "", "1234567"])
    assert not masker
    assert masker.mask("test 1234567") == "test 1234567"
    stream = masker.stream()
    assert stream.feed("tes") + stream.flush() == "tes"


def test_J5_whole_events_are_masked() -> None:
    masker = Masker(["secret-key-1"])
    event = MessageFinished(
        turn=3,
        message=AssistantMessage(
            (
                Text("a secret-key-1"),
                ToolCall("1", "bash", {"c": ["secret-key-1"]}, '{"c":["secret-key-1"]}'),
            ),
            "error",
            failure=Failure("bad key secret-key-1", headers={"x": "secret-key-1"}),
        ),
    )
    masked = masker.masked(event)
    assert "secret-key-1" not in repr(masked)
    assert repr(masked).count(MASK) == 5
    assert (type(masked), masked.turn, masked.message.stop_reason) == (MessageFinished, 3, "error")
    plain = RunStarted(prompt="x", tools=("read",), recovery={"a": [1, None]})
    assert masker.masked(plain) is plain
    untouched = ToolFinished(call_id="1", name="x", text="secret-key-1")
    assert Masker([]).masked(untouched) is untouched


def test_J5_a_value_split_across_pieces_is_masked() -> None:
    stream = Masker(["secret-key-1"]).stream()
    assert stream.feed("a sec") == "a "
    assert stream.feed("ret-ke") == ""
    assert stream.feed("y-1 b s") == f"{MASK} b "
    assert stream.feed("o") == "so"
    assert stream.feed(" secret-key") == " "
    assert stream.flush() == "secret-key"
    assert stream.flush() == ""


def test_J5_a_value_that_begins_a_longer_one_waits_for_the_rest() -> None:
    stream = Masker(["12345678", "123456789abc"]).stream()
    assert stream.feed("12345678") == ""
    assert stream.feed("9abc") + stream.feed("12345678") + stream.flush() == MASK * 2


VALUES = st.lists(st.text("ab", min_size=8, max_size=12), min_size=1, max_size=4)
PIECES = st.lists(st.text("ab", max_size=15), max_size=12)


@given(VALUES, PIECES, st.booleans())
def test_J5_pieces_joined_are_what_masking_the_whole_gives(
    values: list[str], pieces: list[str], plant: bool
) -> None:
    if plant:
        pieces = [*pieces, values[0][:5], values[0][5:], "a"]
    masker = Masker(values)
    stream = masker.stream()
    shown = "".join(stream.feed(piece) for piece in pieces) + stream.flush()
    assert shown == masker.mask("".join(pieces))
    assert not any(value in shown for value in values)
    if plant:
        assert MASK in shown


@pytest.mark.parametrize(
    ("name", "holds"),
    [
        ("OPENAI_API_KEY", True),
        ("ANTHROPIC_AUTH_TOKEN", True),
        ("HANDRAIL_API_KEY", True),
        ("some_apikey", True),
        ("GITHUB_TOKEN", True),
        ("AWS_SECRET_ACCESS_KEY", True),
        ("MAX_TOKENS", False),
        ("OPENAI_BASE_URL", False),
        ("MONKEY", False),
        ("PATH", False),
    ],
)
def test_J5_variables_that_hold_keys_are_known_by_name(name: str, holds: bool) -> None:
    assert is_key_name(name) is holds
    assert key_values({name: " sk-123456 "}) == (["sk-123456"] if holds else [])


def test_J5_values_too_short_to_mask_are_no_values() -> None:
    assert key_values({"OPENAI_API_KEY": "x", "GROQ_API_KEY": ""}) == []
