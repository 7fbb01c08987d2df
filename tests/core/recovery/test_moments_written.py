"""Moments are written in many styles and zones and read back; what is no moment is no guidance (rules U1, U2)."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from handrail.messages import Failure
from handrail.recovery.classify import classify
from handrail.recovery.moments.guidance import Guidance

NOW = datetime(2026, 7, 14, 10, 0, 7, tzinfo=UTC)
LOCAL = ZoneInfo("America/New_York")
ZONES = ["UTC", "Europe/Berlin", "America/Los_Angeles", "Asia/Kolkata", "Asia/Tokyo", "Etc/GMT+5"]


def guide(text: str, headers: dict[str, str] | None = None) -> Guidance | None:
    failure = Failure(text, status=429, headers=headers or {})
    return classify(failure, now=NOW.timestamp(), local_zone=LOCAL).guidance


def nth(day: int) -> str:
    return f"{day}{'th' if 10 < day < 14 else {1: 'st', 2: 'nd', 3: 'rd'}.get(day % 10, 'th')}"


def h12(at: datetime) -> str:
    return f"{at.hour % 12 or 12}:{at:%M} {at:%p}"


def offset(at: datetime) -> str:
    return f"{at:%z}"[:3] + ":" + f"{at:%z}"[3:]


# Each writes a moment (in its zone, whose name it may use) to the minute.
STYLES: list[Callable[[datetime, str], str]] = [
    lambda t, z: f"resets at {h12(t)} on {t:%B} {t.day} ({z})",
    lambda t, z: f"resets at: {t:%b} {t.day}, {h12(t)} ({z})",
    lambda t, z: (
        f"Resets {t:%H:%M} {z} on {t.day} {t:%B}" if "/" in z else f"Resets {t:%H:%M} on {t.day} {t:%B} ({z})"
    ),
    lambda t, z: f"try again at {h12(t).lower().replace(' ', '')} ({z}), {t:%B} {nth(t.day)}",
    lambda t, z: f"try again on {t:%A}, {t:%B} {nth(t.day)}, {t.year} at {h12(t)} ({z})",
    lambda t, z: f"try again after {t.day}-{t:%b}-{t.year} {t:%H:%M} {offset(t)}",
    lambda t, z: f"available again at {t:%Y-%m-%d %H:%M} {z}",
    lambda t, z: f"The quota will reset on {t:%m/%d/%Y} at {h12(t)} ({z})",
    lambda t, z: f"limit will reset: {t:%Y/%m/%d} at {t:%H:%M} ({z})",
    lambda t, z: f"blocked until {t:%d.%m.%Y}, {t:%H:%M} ({z})",
    lambda t, z: f"resets at {t:%Y-%m-%dT%H:%M}{offset(t)}",
    lambda t, z: f"resets at {t:%Y-%m-%dT%H:%M:00}{t:%z}",
    lambda t, z: f"until {format_datetime(t)}",
    lambda t, z: f"resets at {h12(t)} (UTC{offset(t)}) on {t:%b} {t.day}",
    lambda t, z: f"resets at {t:%H:%M} GMT{offset(t)}, {t.day} {t:%b} {t.year}",
    lambda t, z: f"resets at ({z}) {t:%H:%M} on {t:%b} {t.day}",
    lambda t, z: f"access returns; retry at {int(t.timestamp())}",
    lambda t, z: f"resets at {t.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
    lambda t, z: f"resets at {h12(t.astimezone(LOCAL))} your local time on {t.astimezone(LOCAL):%B %d}",
    lambda t, z: f"resets at {h12(t.astimezone(UTC))} UTC on the {nth(t.astimezone(UTC).day)}",
    lambda t, z: json.dumps({"error": {"message": "usage limit", "resets_at": t.isoformat()}}),
    lambda t, z: json.dumps(
        {"error": {"message": "usage limit", "next_reset_time": int(t.timestamp() * 1000)}}
    ),
    lambda t, z: json.dumps({"message": "usage limit", "limit_reset_at": str(int(t.timestamp()))}),
    lambda t, z: json.dumps({"message": "usage limit", "retry_at": format_datetime(t)}),
    lambda t, z: json.dumps(
        {"message": "usage limit", "reset_date": f"{t:%b} {t.day}, {t.year} {h12(t)} ({z})"}
    ),
]


@given(
    st.integers(3, 28 * 24 * 60).map(lambda minutes: NOW.replace(second=0) + timedelta(minutes=minutes)),
    st.sampled_from(ZONES),
    st.sampled_from(range(len(STYLES))),
)
def test_U1_moments_in_many_styles_and_zones_are_read_back(at: datetime, zone: str, style: int) -> None:
    written = STYLES[style](at.astimezone(ZoneInfo(zone)), zone)
    found = guide(written if written.startswith("{") else f"usage limit reached. {written}.")
    assert found is not None, written
    assert found.at == pytest.approx(at.timestamp(), abs=1), written


@pytest.mark.parametrize("style", range(len(STYLES)))
@pytest.mark.parametrize("zone", ZONES)
def test_U1_each_style_in_each_zone(style: int, zone: str) -> None:
    at = datetime(2026, 7, 25, 13, 30, tzinfo=UTC)
    written = STYLES[style](at.astimezone(ZoneInfo(zone)), zone)
    found = guide(written if written.startswith("{") else f"usage limit reached. {written}.")
    assert found is not None and found.at == pytest.approx(at.timestamp(), abs=1), written


SOON: list[Callable[[datetime], str]] = [
    lambda t: f"resets {t:%H:%M} UTC",
    lambda t: f"resets at {h12(t)} (UTC)",
    lambda t: f"resets {'tomorrow' if t.date() > NOW.date() else 'today'} at {h12(t)} UTC",
    lambda t: f"resets at {h12(t)} UTC {'tomorrow' if t.date() > NOW.date() else 'today'}",
    lambda t: f"resets {t:%A} {h12(t)} UTC",
    lambda t: f"resets {h12(t)} UTC on {t:%a}",
    lambda t: f"try again at {t:%H%M} UTC",
]


@given(st.integers(3, 23 * 60), st.sampled_from(SOON))
def test_U1_clock_times_within_a_day(minutes: int, style: Callable[[datetime], str]) -> None:
    at = NOW.replace(second=0) + timedelta(minutes=minutes)
    found = guide(f"usage limit reached. {style(at)}")
    assert found is not None, style(at)
    assert (found.at, found.due()) == (at.timestamp(), at.timestamp() + 65)


ONES = (
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)
TENS = {20: "twenty", 30: "thirty", 40: "forty", 50: "fifty"}
SPOKEN = (
    dict(enumerate(ONES)) | TENS | {t + n: f"{w}-{ONES[n]}" for t, w in TENS.items() for n in range(1, 10)}
)


LENGTHS: list[Callable[[int, int, int], str]] = [
    lambda h, m, s: f"Time until reset: {h:02}:{m:02}:{s:02}",
    lambda h, m, s: f"Resets in: {h:02}:{m:02}:{s:02}",
    lambda h, m, s: f"try again in {h}h{m}m{s}s",
    lambda h, m, s: f"try again in {h} hours, {m} minutes and {s} seconds",
    lambda h, m, s: f"retry after PT{h}H{m}M{s}S",
    lambda h, m, s: f"{h} hours {m} minutes {s} seconds until reset",
    lambda h, m, s: f"wait {h} hrs {m} mins {s} secs",
    lambda h, m, s: json.dumps({"message": "usage limit", "reset_in": f"{h}h {m}m {s}s"}),
    lambda h, m, s: json.dumps({"message": "usage limit", "retry_after_seconds": h * 3600 + m * 60 + s}),
]


@given(st.integers(1, 99), st.integers(1, 59), st.integers(1, 59), st.sampled_from(LENGTHS))
def test_U1_lengths_in_many_styles_are_read_back(
    h: int, m: int, s: int, style: Callable[[int, int, int], str]
) -> None:
    found = guide(f"usage limit. {style(h, m, s)}" if style(h, m, s)[0] != "{" else style(h, m, s))
    assert found is not None, style(h, m, s)
    assert found.wait_s == h * 3600 + m * 60 + s


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("one hour", 3600),
        ("two hours", 7200),
        ("an hour", 3600),
        ("half an hour", 1800),
        ("a half hour", 1800),
        ("an hour and a half", 5400),
        ("one and a half hours", 5400),
        ("two and a half hours", 9000),
        ("1½ hours", 5400),
        ("a quarter of an hour", 900),
        ("three quarters of an hour", 2700),
        ("a couple of hours", 7200),
        ("twenty-four hours", 86_400),
        ("forty five minutes", 2700),
        ("half a day", 43_200),
        ("three days and two hours", 266_400),
    ],
)
def test_U1_lengths_in_words(words: str, seconds: float) -> None:
    for text in (f"Try again in {words}.", f"Please wait {words}", f"It resets in {words}"):
        found = guide(f"usage limit. {text}")
        assert found is not None and found.wait_s == seconds, text


@pytest.mark.parametrize("n", SPOKEN)
def test_U1_numbers_in_words(n: int) -> None:
    found = guide(f"usage limit. Try again in {SPOKEN[n]} minutes")
    assert found is not None and found.wait_s == n * 60


@pytest.mark.parametrize(
    "words",
    [
        "resets at 9:00 AM (Europe/Atlantis)",
        "resets at 9:00 AM (Atlantis)",
        "resets at 9:00 AM server time",
        "resets at 9:00 AM XKT",
        "resets at 9:00 AM on 31 June",
        "resets at 9:00 AM on 45 July",
        "resets at 9:00 AM next week",
        "resets on 07/08/2026 at 12:00",
        "resets 03:20:11",
        "try again in a few hours",
        "try again in several minutes",
        "try again in some time",
        "try again after the 3rd attempt",
        "retry 3/5",
        "retrying 10:22:33 GET /v1",
        "access 12:30:45 10.0.0.1",
        "available 3h",
        "limits reset every 5 hours",
        "refreshes monthly",
        "marketing 5pm",
        "version 1.2.2026",
        "resets in 03:20",
    ],
)
def test_U1_what_cannot_be_read_whole_is_no_guidance(words: str) -> None:
    assert guide(f"usage limit: {words}") is None


HARMLESS = """the model request error limit tokens of at on in 2026-07-15 10:22:33 3pm 09:00 UTC 42 5 minutes hours 30s
    1h Monday July 25 gpt-5 INFO DEBUG worker status=429 id=17 quota plan usage 1784023200 [ ] { } : , " ms 12:30 GET
    /v1/messages line 7 col 12 took 350ms size 5 MB after seconds days Jul 14"""
WORDS = st.sampled_from(HARMLESS.split())


@given(st.lists(WORDS, max_size=40))
@example(["at", "3pm", "UTC"])
def test_U1_text_without_a_word_for_coming_back_invents_no_wait(words: list[str]) -> None:
    assert guide("usage limit " + " ".join(words)) is None


KEYS = st.sampled_from(
    ["id", "code", "count", "size", "created", "time", "took", "limit", "used", "at", "day", "last_reset"]
)
VALUES: Any = st.one_of(
    st.integers(0, 2_000_000_000),
    st.sampled_from(["3h", "12:30", "2026-07-15T00:00:00Z", "Jul 25", "5 minutes"]),
)


@given(st.dictionaries(KEYS, VALUES, max_size=8))
def test_U1_fields_that_name_no_return_invent_no_wait(fields: dict[str, Any]) -> None:
    assert guide(json.dumps({"error": {"message": "usage limit reached", **fields}})) is None


@given(st.text("0123456789:-/. apmUTCJulMonday,()+", max_size=40))
def test_U1_no_text_breaks_the_reader_or_waits_for_ever(text: str) -> None:
    found = guide(f"usage limit, resets at {text}")
    assert found is None or 0 <= found.wait_s <= 400 * 86_400
