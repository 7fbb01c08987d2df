"""A session's folder that came from elsewhere, or that somebody changes under a run (rules H7, J2, J6)."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import shutil
import socket
import tempfile
from pathlib import Path
from typing import Any

import pytest
from runs import call, make, says

from handrail import events as ev
from handrail.clock import VirtualClock
from handrail.errors import ConfigError
from handrail.session import control
from handrail.session.control import ADDRESS, SOCKET, Control, NotReachable
from handrail.session.journal import Journal, JournalBroken, JournalLocked
from handrail.session.lock import holder
from handrail.session.store import JOURNAL, Store
from handrail.session.writer import JournalWriter

pytestmark = [
    pytest.mark.attack,
    pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes and Unix sockets"),
]
CLOCK = VirtualClock()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "state")


def made(store: Store) -> Path:
    """The journal of a new session."""
    with Store.create(store, CLOCK) as journal:
        return journal.path


def asking() -> list[Any]:
    return [says("", call("ask_human", kind="login", needed="x")), says("Done.")]


@pytest.mark.parametrize("where", ["folder", "temporary", "socket"])
async def test_H7_a_control_file_deletes_nothing_of_ours(
    where: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """It names a folder that looks like a run's own; only a socket and an empty folder are ever removed."""
    folder = tmp_path / "s"
    folder.mkdir()
    precious = Path(tempfile.mkdtemp(prefix="handrail-", dir=tmp_path if where == "folder" else None))
    request.addfinalizer(lambda: shutil.rmtree(precious))
    (precious / "thesis.txt").write_text("years of work")
    path = precious / SOCKET
    if where == "socket":
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(path))
    else:
        path.write_text("a file that is named like a socket")
    (folder / ADDRESS).write_text(json.dumps({"token": "x", "path": str(path)}))
    session, _, _ = make(asking())
    session.listen(Control(session, folder))
    await session.run("Go.")
    assert (precious / "thesis.txt").read_text() == "years of work"
    assert path.exists() == (where != "socket")


@pytest.mark.parametrize("said", ["../elsewhere.sock", "/run/docker.sock", "", "\0"])
def test_H7_a_control_file_does_not_choose_whom_we_speak_to(said: str, tmp_path: Path) -> None:
    heard = socket.create_server(("127.0.0.1", 0))
    heard.settimeout(0.2)
    (tmp_path / ADDRESS).write_text(json.dumps({"token": "x", "path": said, "port": heard.getsockname()[1]}))
    with pytest.raises(NotReachable), heard:
        control.call(tmp_path, "stop")


@pytest.mark.parametrize("name", [ADDRESS, JOURNAL, "journal.lock"])
def test_H7_a_pipe_hangs_nothing(name: str, store: Store) -> None:
    path = made(store)
    (path.parent / name).unlink(missing_ok=True)
    os.mkfifo(path.parent / name)
    with pytest.raises(NotReachable):
        control.call(path.parent, "status")
    (summary,) = store.list()
    assert summary.state == ("unreadable" if name == JOURNAL else "interrupted")
    if name != ADDRESS:
        with pytest.raises(JournalBroken, match="not a regular file"):
            store.open(path.parent.name, CLOCK)


@pytest.mark.parametrize("name", [JOURNAL, "journal.lock"])
def test_H7_a_link_is_not_followed(name: str, store: Store, tmp_path: Path) -> None:
    path = made(store)
    outside = tmp_path / "outside"
    outside.write_bytes(path.read_bytes() if name == JOURNAL else b"precious")
    before = outside.read_bytes()
    (path.parent / name).unlink()
    (path.parent / name).symlink_to(outside)
    with pytest.raises(JournalBroken, match="not a regular file"):
        store.open(path.parent.name, CLOCK)
    assert outside.read_bytes() == before


def test_H7_a_link_to_a_folder_is_no_session(store: Store, tmp_path: Path) -> None:
    path = made(store)
    moved = path.parent.rename(tmp_path / "moved")
    path.parent.symlink_to(moved)
    assert store.list() == []


def test_H7_a_header_does_not_choose_which_session_is_deleted(store: Store) -> None:
    """The list and the delete command name a session by its folder, whatever the header says."""
    victim = made(store)
    forged = store.root / "0forged00000" / JOURNAL
    Journal.create(forged, session=victim.parent.name, meta={}, clock=CLOCK).close()
    assert {s.id for s in store.list()} == {victim.parent.name, "0forged00000"}


def test_J2_a_removed_lock_file_lets_no_second_writer_in(store: Store) -> None:
    with store.create(CLOCK) as journal:
        journal.path.with_suffix(".lock").unlink()
        assert holder(journal.path.with_suffix(".lock")) is not None
        with pytest.raises(JournalLocked):
            store.open(journal.session, CLOCK)
        journal.path.with_suffix(".lock").unlink(missing_ok=True)
        with pytest.raises(JournalLocked):
            store.delete(journal.session)
    store.open(journal.session, CLOCK).close()


@pytest.mark.parametrize("how", ["deleted", "replaced", "folder"])
async def test_J6_a_journal_that_is_gone_holds_the_run(how: str, store: Store, tmp_path: Path) -> None:
    clock = VirtualClock()
    record = JournalWriter(store.create(clock), clock)
    path = record.journal.path
    session, provider, events = make([says("", call("lookup")), says("Done.")], clock=clock, record=record)

    def attack(event: ev.Event) -> None:
        if isinstance(event, ev.MessageStarted):
            if how == "folder":
                path.parent.rename(tmp_path / "gone")
            else:
                path.rename(tmp_path / "gone")
            if how == "replaced":
                path.write_bytes(b"")
            clock.call_later(60, session.stop)

    session.listen(attack)
    finished = await session.run("Go.")
    record.close()
    assert (finished.outcome, len(provider.requests)) == ("cancelled", 1), "no request follows"
    assert any(isinstance(e, ev.Notice) and "deleted or replaced" in e.text for e in events)


async def test_J6_a_journal_that_comes_back_lets_the_run_continue(store: Store, tmp_path: Path) -> None:
    clock = VirtualClock()
    record = JournalWriter(store.create(clock), clock)
    path = record.journal.path
    session, _, events = make([says("Done.", takes_s=3)], clock=clock, record=record)

    def attack(event: ev.Event) -> None:
        if isinstance(event, ev.MessageStarted):
            path.rename(tmp_path / "gone")
            clock.call_later(60, lambda: (tmp_path / "gone").rename(path))

    session.listen(attack)
    assert (await session.run("Go.")).outcome == "completed"
    record.close()
    stored = list(store.read(record.journal.session).events())
    assert stored == [e for e in events if not isinstance(e, ev.MessageDelta)]


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.EIO])
def test_J6_a_state_folder_that_refuses_is_said_in_words(
    number: int, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = made(store)

    def refuse(*args: object, **more: object) -> Any:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "open", refuse)
    for attempt in (
        lambda: store.open(path.parent.name, CLOCK),
        lambda: store.create(CLOCK),
        lambda: store.read(path.parent.name),
        lambda: store.fork(path.parent.name, CLOCK),
        lambda: store.delete(path.parent.name),
    ):
        with pytest.raises(ConfigError, match=os.strerror(number)):
            attempt()
    assert [s.state for s in store.list()] == ["unreadable"]


async def test_H4_many_connections_do_not_keep_a_person_out(tmp_path: Path) -> None:
    session, _, _ = make(asking(), attended=True)
    session.listen(Control(session, tmp_path))
    opened: list[asyncio.StreamWriter] = []

    async def flood(event: ev.HumanRequested) -> None:
        path = str(tmp_path / SOCKET)
        opened.extend([(await asyncio.open_unix_connection(path))[1] for _ in range(400)])
        await asyncio.to_thread(control.call, tmp_path, "answer", how="resolved")

    tasks = []
    session.listen(
        lambda e: tasks.append(asyncio.ensure_future(flood(e))) if isinstance(e, ev.HumanRequested) else None
    )
    assert (await session.run("Go.")).outcome == "completed"
    for writer in opened:
        writer.close()
    await asyncio.gather(*tasks)
