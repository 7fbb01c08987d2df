"""Lengths of time in text, each form alone (rules U1, U2)."""

from __future__ import annotations

import pytest

from handrail.recovery.moments.durations import LONGEST_S, parse_length, read_length

DAY, HOUR, MINUTE = 86_400, 3600, 60


@pytest.mark.parametrize(
    ("text", "seconds", "rounded"),
    [
        ("42 min", 42 * MINUTE, False),
        ("~42 min", 42 * MINUTE, True),
        ("~0 min", 0, True),
        ("0 min", 0, False),
        ("about 5 hours", 5 * HOUR, True),
        ("approximately 3 minutes", 3 * MINUTE, True),
        ("less than 1 minute", MINUTE, True),
        ("5-10 minutes", 10 * MINUTE, True),
        ("2 to 3 hours", 3 * HOUR, True),
        ("an hour", HOUR, True),
        ("4 days 20 hours 9 minutes", 4 * DAY + 20 * HOUR + 9 * MINUTE, False),
        ("1 day, 2 hours", DAY + 2 * HOUR, False),
        ("2 hours and 5 minutes", 2 * HOUR + 5 * MINUTE, False),
        ("18h31m10s", 18 * HOUR + 31 * MINUTE + 10, False),
        ("9m38.016s", 9 * MINUTE + 38.016, False),
        ("1h30m", HOUR + 30 * MINUTE, False),
        ("2h 5m", 2 * HOUR + 5 * MINUTE, False),
        ("6hr 29min", 6 * HOUR + 29 * MINUTE, False),
        ("350ms", 0.35, False),
        ("1.5s", 1.5, False),
        ("6m0s", 360, False),
        ("24h0m0s", DAY, False),
        ("1,234 seconds", 1234, False),
        ("86400 seconds", DAY, False),
        ("58 hours", 58 * HOUR, False),
        ("16 days", 16 * DAY, False),
        ("2 weeks", 14 * DAY, False),
        ("00:20:05", 20 * MINUTE + 5, False),
        ("30 秒", 30, False),
        ("5分钟", 5 * MINUTE, False),
        ("约 3 小时", 3 * HOUR, True),
    ],
)
def test_U1_a_length_and_whether_it_is_rounded(text: str, seconds: float, rounded: bool) -> None:
    length = read_length(text)
    assert length is not None
    assert length.seconds == pytest.approx(seconds)
    assert length.rounded is rounded


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "a few minutes",
        "42",
        "minutes",
        "3 apples",
        "5 mines",
        "in 5 min",
        "-5 min",
        "999999999 days",
        "x9m",
    ],
)
def test_U2_what_is_no_length_is_none(text: str) -> None:
    assert read_length(text) is None


def test_U1_units_that_do_not_fall_are_two_lengths() -> None:
    length = read_length("1 min 2 min")
    assert length is not None and length.seconds == 60


def test_U2_the_longest_length_is_a_limit() -> None:
    days = int(LONGEST_S / DAY)
    assert read_length(f"{days} days") is not None
    assert read_length(f"{days + 1} days") is None


@pytest.mark.parametrize(
    ("text", "seconds"), [("34.07s", 34.07), (" 6m0s ", 360), ("1s", 1), ("soon", None), ("1s later", None)]
)
def test_U1_a_whole_text_that_is_a_length(text: str, seconds: float | None) -> None:
    assert parse_length(text) == (None if seconds is None else pytest.approx(seconds))
