"""Journals that a later version wrote (rule J2)."""

from __future__ import annotations

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


def made(path: Path) -> Path:
    with Journal.create(path, session="s", meta={}, clock=CLOCK) as journal:
        journal.append(EVENTS[0])
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
