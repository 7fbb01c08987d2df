"""Journals that hold what is not theirs: records of a later version, another journal (rule J2)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from handrail.clock import EPOCH, ManualClock
from handrail.events import Event, TurnStarted
from handrail.session.journal import Journal, JournalTooNew, read_journal
from handrail.session.records import encode

CLOCK = ManualClock()
EVENTS: list[Event] = [TurnStarted(at=EPOCH, turn=1)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.jsonl"


def made(path: Path, events: Sequence[Event] = EVENTS) -> Path:
    with Journal.create(path, session="s", meta={}, clock=CLOCK) as journal:
        for event in events:
            journal.append(event)
    return path


def test_a_newer_journal_is_refused_politely(path: Path) -> None:
    data = made(path).read_bytes().replace(b'{"v":1,', b'{"v":7,')
    path.write_bytes(data)
    assert read_journal(path).version == 7
    with pytest.raises(JournalTooNew, match=r"version 7; this one knows 1.*Update handrail") as caught:
        Journal.open(path, CLOCK)
    assert caught.value.version == 7
    assert path.read_bytes() == data


def test_an_event_of_a_later_version_is_kept_and_left_out(path: Path) -> None:
    made(path)
    line = encode(2, "telepathy", b'{"type":"telepathy","at":"2026-01-05T12:00:00.000Z"}')
    path.write_bytes(path.read_bytes() + line)
    contents = read_journal(path)
    assert [r.kind for r in contents.records] == ["header", "turn_started", "telepathy"]
    assert list(contents.events()) == EVENTS
    assert not contents.damage


@pytest.mark.parametrize("longer", [0, 5])
def test_J2_a_second_journal_that_was_appended_is_reported_and_not_read(path: Path, longer: int) -> None:
    other = made(
        path.with_name("other.jsonl"), [TurnStarted(at=EPOCH, turn=n + 7) for n in range(1 + longer)]
    )
    whole = made(path).read_bytes()
    path.write_bytes(whole + other.read_bytes())
    contents = read_journal(path)
    assert list(contents.events()) == EVENTS
    assert contents.torn_tail is not None and contents.torn_tail.offset == len(whole)
    assert "another journal" in str(contents.torn_tail)
    with Journal.open(path, CLOCK) as journal:
        journal.append(TurnStarted(at=EPOCH, turn=2))
    again = read_journal(path)
    assert [event.turn for event in again.events()] == [1, 2] and not again.damage
    assert again.set_aside and path.read_bytes().startswith(whole + other.read_bytes())
