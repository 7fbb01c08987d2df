"""Moments as people and machines write them, each form alone (rule U2)."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from handrail.recovery.moments.wallclock import parse_epoch, parse_stamp, read_moment

NEW_YORK = ZoneInfo("America/New_York")
NOW = datetime(2026, 3, 3, 15, 0, tzinfo=UTC).timestamp()  # Tuesday, 10:00 in New York


def named(text: str, now: float = NOW, local: ZoneInfo = NEW_YORK) -> str | None:
    moment = read_moment(text, 0, now=now, local=local)
    return None if moment is None else datetime.fromtimestamp(moment.at, UTC).strftime("%Y-%m-%d %H:%M:%S")


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("3pm", "2026-03-03 20:00:00"),
        ("3 PM", "2026-03-03 20:00:00"),
        ("3:45 p.m.", "2026-03-03 20:45:00"),
        ("15:45", "2026-03-03 20:45:00"),
        ("12am", "2026-03-04 05:00:00"),
        ("12pm", "2026-03-03 17:00:00"),
        ("noon", "2026-03-03 17:00:00"),
        ("midnight UTC", "2026-03-04 00:00:00"),
        ("5am", "2026-03-04 10:00:00"),  # past: tomorrow
        ("9:59am", "2026-03-03 14:59:00"),  # past by a minute: not tomorrow
        ("9:58am", "2026-03-04 14:58:00"),  # past by two minutes: tomorrow
        ("3pm (Etc/GMT+5)", "2026-03-03 20:00:00"),  # the sign is POSIX's: UTC-5
        ("3pm (Etc/GMT-3)", "2026-03-04 12:00:00"),
        ("3pm (UTC+8)", "2026-03-04 07:00:00"),
        ("3pm (GMT-3)", "2026-03-03 18:00:00"),
        ("3pm +0530", "2026-03-04 09:30:00"),
        ("3pm (Asia/Kolkata)", "2026-03-04 09:30:00"),
        ("3pm Europe/Berlin", "2026-03-04 14:00:00"),
        ("3pm PT", "2026-03-03 23:00:00"),
        ("3pm (PDT)", "2026-03-03 22:00:00"),
        ("5pm (Central European Time)", "2026-03-03 16:00:00"),
        ("3pm Pacific Time", "2026-03-03 23:00:00"),
        ("Mar 5 at 12am (Australia/Melbourne)", "2026-03-04 13:00:00"),
        ("Mar 5, 4pm", "2026-03-05 21:00:00"),
        ("5 March 2026 16:00", "2026-03-05 21:00:00"),
        ("March 5th, 2026 4:06 PM", "2026-03-05 21:06:00"),
        ("2026-04-01 at 00:00 UTC", "2026-04-01 00:00:00"),
        ("2026-03-03 21:30:00", "2026-03-04 02:30:00"),
        ("2026-03-03T21:30:00Z", "2026-03-03 21:30:00"),
        ("2026-03-03T21:30:00.123456+02:00", "2026-03-03 19:30:00"),
        ("2026/03/04 09:00", "2026-03-04 14:00:00"),
        ("2026-03-04 09:00:00 +0800 CST", "2026-03-04 01:00:00"),
        ("3/5/2026, 4:00:00 PM", "2026-03-05 21:00:00"),
        ("Tue, 03 Mar 2026 16:30:00 GMT", "2026-03-03 16:30:00"),
        ("Thu 9:00 AM", "2026-03-05 14:00:00"),
        ("Tuesday 9am", "2026-03-10 13:00:00"),  # past today: next week, summer time by then
        ("tomorrow at 9am", "2026-03-04 14:00:00"),
        ("today at 6pm", "2026-03-03 23:00:00"),
        ("明天 9:00", "2026-03-04 14:00:00"),
    ],
)
def test_U2_moments_of_people(text: str, utc: str) -> None:
    assert named(text) == utc


@pytest.mark.parametrize(
    "text",
    [
        "",
        "3",
        "soon",
        "13pm",
        "0am",
        "25:00",
        "10:75",
        "3pm (Mars/Olympus)",
        "3pm IST",  # three countries say so
        "June 31",
        "2026-02-30 10:00",
        "2025-03-03 10:00",  # long past
        "Mar 1 at 9am",  # stale, and not next year's
        "9999-01-01 00:00 UTC",  # absurd
        "0000-01-01 00:00",
        "tomorrow",
    ],
)
def test_U2_unreadable_stale_or_absurd_is_none(text: str) -> None:
    assert named(text) is None


def test_U2_a_day_without_a_time_is_its_beginning_and_rounded() -> None:
    moment = read_moment("March 9", 0, now=NOW, local=NEW_YORK)
    assert moment is not None and moment.precision == "rounded"
    assert named("March 9") == "2026-03-09 04:00:00"


def test_U2_a_date_without_a_year_is_in_the_nearest_one() -> None:
    december = datetime(2026, 12, 30, 12, tzinfo=UTC).timestamp()
    assert named("Jan 2 at 9am", december) == "2027-01-02 14:00:00"
    assert named("Nov 2 at 9am", december) is None


def test_U2_an_hour_that_daylight_saving_skips_is_the_later_instant() -> None:
    eve = datetime(2026, 3, 8, 5, 30, tzinfo=UTC).timestamp()  # 00:30; at 02:00 clocks jump to 03:00
    assert named("2:30am", eve) == "2026-03-08 07:30:00"  # 03:30 summer time
    assert named("3:30am", eve) == "2026-03-08 07:30:00"


def test_U2_an_hour_that_comes_twice_is_its_first_coming() -> None:
    eve = datetime(2026, 11, 1, 4, tzinfo=UTC).timestamp()  # midnight; at 02:00 clocks fall back to 01:00
    assert named("1:30am", eve) == "2026-11-01 05:30:00"


def test_U2_tomorrow_has_its_own_offset() -> None:
    eve = datetime(2026, 3, 7, 22, tzinfo=UTC).timestamp()  # 17:00, winter
    assert named("4pm", eve) == "2026-03-08 20:00:00"  # 23 hours on: summer


@pytest.mark.parametrize(
    ("value", "at"),
    [
        (NOW + 60, NOW + 60),
        ((NOW + 60) * 1000, NOW + 60),
        (NOW - 60, NOW - 60),
        (NOW - 7200, None),
        (0.0, None),
        (9.2e18, None),
        (float("nan"), None),
        (float("inf"), None),
    ],
)
def test_U2_epochs_in_seconds_and_milliseconds(value: float, at: float | None) -> None:
    assert parse_epoch(value, now=NOW) == (None if at is None else pytest.approx(at))


@pytest.mark.parametrize(
    ("text", "wait"),
    [
        ("2026-03-03T15:00:45Z", 45),
        ("2026-03-03T15:00:45", 45),  # a machine without a zone means UTC
        ("Tue, 03 Mar 2026 15:02:00 GMT", 120),
        ("soon", None),
        ("2026-13-01T00:00:00Z", None),
    ],
)
def test_U2_stamps_of_machines(text: str, wait: float | None) -> None:
    read = parse_stamp(text, now=NOW)
    assert read == (None if wait is None else (NOW + wait, "second"))


def test_U2_without_a_zone_handed_in_the_machines_own_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        moment = read_moment("9am", 0, now=NOW, local=None)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert moment is not None
    assert datetime.fromtimestamp(moment.at, UTC).hour == 0


def test_U2_cst_is_chinas_where_the_rest_is_chinese() -> None:
    assert named("2026-03-04 09:00 CST") == "2026-03-04 15:00:00"
    assert named("2026-03-04 09:00 CST", local=ZoneInfo("Asia/Shanghai")) == "2026-03-04 01:00:00"
