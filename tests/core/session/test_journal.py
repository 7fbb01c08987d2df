"""The journal file: what is written stays, what is cut is repaired, two never write one (rules J1 to J3)."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from handrail.clock import EPOCH, ManualClock, VirtualClock
from handrail.events import Event, MessageDelta, MessageFinished, Notice, ToolFinished, TurnStarted
from handrail.messages import AssistantMessage, Text, ToolCall
from handrail.session import journal as journal_module
from handrail.session.journal import (
    Journal,
    JournalBroken,
    JournalDamaged,
    JournalLocked,
    read_journal,
)
from handrail.session.records import encode, iter_records

pytestmark = pytest.mark.attack

CLOCK = ManualClock()

EVENTS: list[Event] = [
    TurnStarted(at=EPOCH, turn=1),
    MessageFinished(at=EPOCH + 1, turn=1, message=AssistantMessage((Text('say {"v":1,"n":0}\n\u2028 é'),))),
    ToolFinished(at=EPOCH + 2, turn=1, call_id="1", name="read", text="\x1b[31m red \r\n"),
    Notice(at=EPOCH + 3, text="x" * 300),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s" / "journal.jsonl"


def made(path: Path, events: list[Event] = EVENTS) -> Path:
    with Journal.create(path, session="s1", meta={"cwd": "/x"}, clock=CLOCK) as journal:
        for event in events:
            journal.append(event)
    return path


def each_record_has_its_own_line(path: Path) -> bool:
    data = path.read_bytes()
    return data.endswith(b"\n") and all(
        r.offset == 0 or data[r.offset - 1 : r.offset] == b"\n" for r in read_journal(path).records
    )


def events_of(path: Path) -> list[Event]:
    return list(read_journal(path).events())


def test_J1_what_was_appended_is_read_back(path: Path) -> None:
    contents = read_journal(made(path))
    assert list(contents.events()) == EVENTS
    assert contents.header is not None
    assert (contents.header.session, contents.header.at, contents.header.meta) == ("s1", EPOCH, {"cwd": "/x"})
    assert (contents.damage, contents.torn_tail, contents.set_aside) == ((), None, ())
    assert [r.n for r in contents.records] == [0, 1, 2, 3, 4]
    data = path.read_bytes()
    for record in contents.records:
        assert json.loads(data[record.offset : record.offset + record.length])["n"] == record.n
    assert [r.n for r in iter_records(path)] == [0, 1, 2, 3, 4]


def test_J1_every_line_is_json_that_other_programs_can_read(path: Path) -> None:
    lines = [json.loads(line) for line in made(path).read_bytes().split(b"\n") if line]
    assert [line["kind"] for line in lines] == ["header", *(e.type for e in EVENTS)]
    assert lines[1]["data"]["type"] == "turn_started"


def test_J1_no_byte_is_changed_by_going_on(path: Path) -> None:
    before = made(path).read_bytes()
    with Journal.open(path, CLOCK) as journal:
        assert journal.session == "s1"
        assert list(journal.contents.events()) == EVENTS
        journal.append(Notice(text="more"))
    assert path.read_bytes().startswith(before)
    assert events_of(path) == [*EVENTS, Notice(text="more")]


def test_J1_an_existing_file_is_never_made_anew(path: Path) -> None:
    before = made(path).read_bytes()
    with pytest.raises(FileExistsError):
        Journal.create(path, session="s2", meta={}, clock=CLOCK)
    assert path.read_bytes() == before
    Journal.open(path, CLOCK).close()  # and the lock was given back


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o277, 0o777])
def test_J5_files_are_0600_and_folders_0700_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    path = tmp_path / "a" / "b" / "journal.jsonl"
    old = os.umask(umask)
    try:
        made(path)
    finally:
        os.umask(old)
    files = [p for p in (tmp_path / "a").rglob("*") if p.is_file()]
    assert len(files) == 2
    assert {stat.S_IMODE(p.stat().st_mode) for p in files} == {0o600}
    assert {stat.S_IMODE(p.stat().st_mode) for p in (tmp_path / "a", tmp_path / "a" / "b")} == {0o700}


class Syncs:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count, self.fault = 0, 0
        self.meanwhile: Callable[[], object] = lambda: None
        self._real = os.fsync
        monkeypatch.setattr(journal_module.os, "fsync", self)

    def __call__(self, fd: int) -> None:
        self.count += 1
        if self.fault:
            raise OSError(self.fault, os.strerror(self.fault))
        self._real(fd)
        self.meanwhile()


async def test_J1_commit_syncs_once_for_all_who_wait(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs = Syncs(monkeypatch)
    with Journal.create(path, session="s", meta={}, clock=VirtualClock()) as journal:
        syncs.count = 0
        await journal.commit()
        assert syncs.count == 0  # the header is on disk already

        async def one(n: int) -> None:
            journal.append(Notice(text=str(n)))
            await journal.commit()

        await asyncio.gather(*(one(n) for n in range(20)))
        assert 1 <= syncs.count <= 2
        await journal.commit()
        assert syncs.count <= 2


async def test_J1_what_is_appended_during_a_commit_waits_for_the_next(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    syncs = Syncs(monkeypatch)
    with Journal.create(path, session="s", meta={}, clock=VirtualClock()) as journal:
        journal.append(Notice(text="1"))
        syncs.meanwhile = lambda: journal.append(Notice(text="2"))
        await journal.commit()
        syncs.count, syncs.meanwhile = 0, lambda: None
        await journal.commit()
        assert syncs.count == 1


async def test_J6_a_sync_that_fails_is_said_and_holds(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs = Syncs(monkeypatch)
    journal = Journal.create(path, session="s", meta={}, clock=VirtualClock())
    journal.append(Notice(text="1"))
    syncs.fault = 5
    with pytest.raises(JournalBroken, match="cannot be synced"):
        await journal.commit()
    syncs.fault = 0
    with pytest.raises(JournalBroken):
        await journal.commit()
    with pytest.raises(JournalBroken, match="open it again"):
        journal.append(Notice(text="2"))
    journal.close()
    with Journal.open(path, CLOCK) as again:
        again.append(Notice(text="3"))
    assert [e.text for e in events_of(path) if isinstance(e, Notice)] == ["1", "3"]


async def test_a_closed_journal_says_so(path: Path) -> None:
    journal = Journal.create(path, session="s", meta={}, clock=CLOCK)
    journal.close()
    journal.close()
    with pytest.raises(JournalBroken, match="it is closed"):
        journal.append(Notice(text="1"))


def test_J2_cut_at_every_byte_every_whole_record_is_there(tmp_path: Path) -> None:
    data = made(tmp_path / "whole.jsonl").read_bytes()
    whole = read_journal(tmp_path / "whole.jsonl").records
    path = tmp_path / "cut.jsonl"
    for cut in range(whole[0].length, len(data) + 1):
        path.write_bytes(data[:cut])
        expected = [r.n for r in whole if r.offset + r.length <= cut]
        assert [r.n for r in read_journal(path).records] == expected
        torn = cut - sum(r.length + 1 for r in whole[: len(expected)])

        journal = Journal.open(path, CLOCK)
        journal.append(Notice(text="after"))
        journal.close()
        assert path.read_bytes().startswith(data[:cut])
        assert each_record_has_its_own_line(path)
        contents = read_journal(path)
        assert not contents.damage and contents.torn_tail is None
        assert [r.n for r in contents.records] == list(range(len(contents.records)))
        kinds = [r.kind for r in contents.records[len(expected) :]]
        if torn > 0:  # something stood behind the last whole record
            assert kinds == ["tail_repaired", "notice"]
            repair = contents.records[len(expected)].fields
            assert (repair["offset"], repair["length"]) == (cut - torn, torn)
            assert [d.length for d in contents.set_aside] == [torn]
            assert f"byte {cut - torn}" in journal.notices[0]
        else:
            assert kinds == ["notice"]
            assert journal.notices == ()


def test_J2_a_cut_in_the_header_is_refused_not_guessed(path: Path) -> None:
    data = made(path).read_bytes()
    path.write_bytes(data[:20])
    with pytest.raises(JournalDamaged, match="header is missing"):
        Journal.open(path, CLOCK)
    path.write_bytes(b"")
    with pytest.raises(JournalDamaged, match="header is missing"):
        Journal.open(path, CLOCK)
    assert path.read_bytes() == b""


def test_J2_a_killed_repair_is_repaired(tmp_path: Path) -> None:
    path = made(tmp_path / "j.jsonl")
    torn = path.read_bytes()[:-30]
    path.write_bytes(torn)
    Journal.open(path, CLOCK).close()
    repaired = path.read_bytes()
    for cut in range(len(torn), len(repaired)):
        path.write_bytes(repaired[:cut])
        with Journal.open(path, CLOCK) as journal:
            journal.append(Notice(text="after"))
        contents = read_journal(path)
        assert not contents.damage
        assert [r.kind for r in contents.records] == [
            "header",
            *(e.type for e in EVENTS[:-1]),
            "tail_repaired",
            "notice",
        ]


def test_J2_garbage_behind_the_last_record_is_set_aside(path: Path) -> None:
    good = made(path).read_bytes()
    path.write_bytes(good + b"\0\0\0\n" + b"hello\n" + b"\xff" * 9)
    assert (tail := read_journal(path).torn_tail) is not None
    assert (tail.offset, tail.length, tail.line) == (len(good), 19, 6)
    with Journal.open(path, CLOCK) as journal:
        journal.append(Notice(text="after"))
    contents = read_journal(path)
    assert not contents.damage
    assert len(contents.set_aside) == 3
    assert list(contents.events()) == [*EVENTS, Notice(text="after")]


@pytest.mark.parametrize(
    ("change", "what", "line"),
    [
        (lambda lines: [*lines[:2], b"# a remark", *lines[2:]], "this is not a record", 3),
        (lambda lines: [*lines[:2], lines[2][:-9], *lines[3:]], "the record is cut off", 3),
        (
            lambda lines: [*lines[:2], lines[2].replace(b"red", b"ted"), *lines[3:]],
            "does not fit its checksum",
            3,
        ),
        (lambda lines: [*lines[:2], *lines[3:]], "records 2 to 2 are missing", 3),
        (lambda lines: [*lines[:3], lines[1], *lines[3:]], "record 1 occurs here a second time", 4),
        (lambda lines: [*lines[:2], lines[2][:50] + lines[3], *lines[4:]], "the record is cut off", 3),
        (lambda lines: [*lines[:2], lines[2].replace(b'"n":2', b'"n":9'), *lines[3:]], "checksum", 3),
    ],
)
def test_J2_damage_in_the_middle_is_reported_with_its_place(
    path: Path, change: object, what: str, line: int
) -> None:
    head = made(path).read_bytes().split(b"\n")[0]
    lines = [head, *(encode(n, "notice", b'{"text":"red %d"}' % n)[:-1] for n in range(1, 5))]
    changed = b"\n".join(change(lines)) + b"\n"  # type: ignore[operator]
    path.write_bytes(changed)
    contents = read_journal(path)
    (damage,) = contents.damage
    assert what in damage.what
    assert damage.line == line
    assert {r.n for r in contents.records} >= {0, 1, 4}
    with pytest.raises(JournalDamaged, match=f"line {line}, byte {damage.offset}") as caught:
        Journal.open(path, CLOCK)
    assert caught.value.places == (damage,)
    assert path.read_bytes() == changed
    with Journal.open(path, CLOCK, accept_damage=True) as journal:
        journal.append(Notice(text="on"))
    assert events_of(path)[-1] == Notice(text="on")


def test_J2_glued_records_are_read_one_by_one(path: Path) -> None:
    lines = made(path).read_bytes().splitlines()
    path.write_bytes(b"\n".join([lines[0], lines[1] + lines[2], lines[3] + lines[4]]) + b"\n")
    contents = read_journal(path)
    assert list(contents.events()) == EVENTS
    assert not contents.damage


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_J2_random_damage_is_never_taken_for_a_record(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "j.jsonl"
    if not path.exists():
        made(path)
        (tmp_path / "whole").write_bytes(path.read_bytes())
    whole = (tmp_path / "whole").read_bytes()
    path.write_bytes(whole)
    records = read_journal(path).records
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, min(len(whole), start + 400)))
    rubbish = data.draw(st.binary(max_size=30) | st.sampled_from([b"\n", b'{"v":1,"n":', whole[:200]]))
    path.write_bytes(whole[:start] + rubbish + whole[end:])
    read = read_journal(path)
    originals = {(r.n, r.kind, r.data) for r in records}
    assert {(r.n, r.kind, r.data) for r in read.records} <= originals
    before = {r.n for r in records if r.offset + r.length < start}
    assert {r.n for r in read.records} >= before


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """A disk that is full as soon as a file has `size` bytes: writes are cut there, as on a real one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on the size of files")
def test_J6_a_full_disk_at_any_byte_loses_nothing_and_glues_nothing(tmp_path: Path) -> None:
    wanted = EVENTS[2]
    for extra in range(330):
        path = tmp_path / f"{extra}.jsonl"
        journal = Journal.create(path, session="s", meta={}, clock=CLOCK)
        journal.append(EVENTS[0])
        with largest_file(path.stat().st_size + extra):
            written = True
            for _ in range(2):  # the second try fails too, and leaves more rubbish behind
                try:
                    journal.append(wanted)
                except JournalBroken as error:
                    assert "free some disk space" in str(error)
                    written = False
                else:
                    written = True
                    break
        if not written:
            journal.append(wanted)
        journal.append(EVENTS[3])
        journal.close()
        contents = read_journal(path)
        assert list(contents.events()) == [EVENTS[0], wanted, EVENTS[3]]
        assert each_record_has_its_own_line(path)
        assert not contents.damage and contents.torn_tail is None
        Journal.open(path, CLOCK).close()


def test_J6_an_event_that_json_cannot_hold_is_refused_whole(path: Path) -> None:
    deep: dict[str, object] = {}
    for _ in range(2000):
        deep = {"a": deep}
    with Journal.create(path, session="s", meta={}, clock=CLOCK) as journal:
        size = path.stat().st_size
        with pytest.raises(ValueError, match="message_finished cannot be stored"):
            journal.append(MessageFinished(message=AssistantMessage((ToolCall("1", "x", deep),))))
        assert path.stat().st_size == size


def test_J3_pieces_are_told_from_events(path: Path) -> None:
    piece = MessageDelta(at=EPOCH, turn=1, kind="tool_call", text='{"a', index=0, name="read")
    with Journal.create(path, session="s", meta={}, clock=CLOCK) as journal:
        journal.append_piece(piece)
        journal.append(EVENTS[0])
    contents = read_journal(path)
    assert list(contents.events()) == [EVENTS[0]]
    assert [r.event for r in contents.records if r.kind == "piece"] == [piece]


def test_J2_two_never_write_one_session(path: Path) -> None:
    made(path)
    journal = Journal.open(path, CLOCK)
    with pytest.raises(JournalLocked, match=str(os.getpid())) as caught:
        Journal.open(path, CLOCK)
    assert caught.value.pid == os.getpid()
    assert caught.value.host
    assert events_of(path) == EVENTS  # reading needs no lock
    journal.close()
    Journal.open(path, CLOCK).close()


HOLD = """
import sys
from pathlib import Path
from handrail.clock import ManualClock
from handrail.session.journal import Journal
journal = Journal.open(Path(sys.argv[1]), ManualClock())
print("held", flush=True)
sys.stdin.read()
"""


def test_J2_the_lock_dies_with_its_owner(path: Path) -> None:
    made(path)
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None and owner.stdout.readline() == "held\n"
        with pytest.raises(JournalLocked) as caught:
            Journal.open(path, CLOCK)
        assert caught.value.pid == owner.pid
        owner.kill()
        owner.wait()
        Journal.open(path, CLOCK).close()


def test_what_cannot_be_opened_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="There is no journal"):
        Journal.open(tmp_path / "none.jsonl", CLOCK)
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalBroken, match="cannot be made"):
        Journal.create(tmp_path / "file" / "j.jsonl", session="s", meta={}, clock=CLOCK)
    folder = tmp_path / "folder.jsonl"
    folder.mkdir()
    with pytest.raises(JournalBroken, match="cannot be opened"):
        Journal.open(folder, CLOCK)
