"""Moments as a person types them to postpone a wait (rule U8)."""

from __future__ import annotations

from datetime import datetime

import pytest

from handrail_tui.controller.later import moment

NOW = datetime(2026, 3, 2, 14, 20).timestamp()
UNTIL = NOW + 600


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("+15m", UNTIL + 900),
        ("+15", UNTIL + 900),
        (" + 1h30m ", UNTIL + 5400),
        ("2h", NOW + 7200),
        ("90", NOW + 5400),
        ("14:30", NOW + 600),
        ("14:20", NOW + 86_400),
        ("9:05", datetime(2026, 3, 3, 9, 5).timestamp()),
        ("23:59:30", datetime(2026, 3, 2, 23, 59, 30).timestamp()),
    ],
)
def test_U8_moments_that_people_type(text: str, expected: float) -> None:
    assert moment(text, now=NOW, until=UNTIL) == expected


@pytest.mark.parametrize(
    "text", ["", "+", "0", "later", "25:00", "12:99", "-5m", "+14:30", "400d", "1e9", "٣h", "m"]
)
def test_U8_what_is_no_moment_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match=r"write \+15m, 2h or 14:30"):
        moment(text, now=NOW, until=UNTIL)
