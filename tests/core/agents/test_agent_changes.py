"""What an agent changed in files: seen by us, whatever it tells, and taken back exactly."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from foreign import Foreign, foreign

from handrail import events as ev
from handrail.clock import RealClock
from handrail.session.changes import changes, undo

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    (place / "notes.txt").write_text("one\ntwo\nthree\n")
    return place


def listed(at: Foreign) -> list[str]:
    return [f"{c.path} +{c.added} -{c.removed}" for c in changes(at.events)]


async def test_what_a_command_changed_is_on_record_and_undone(folder: Path) -> None:
    at = foreign(folder, approve="all")
    await at.session.run("command sed -i s/two/2/ notes.txt; echo new > b.txt")
    assert sorted(listed(at)) == ["b.txt +1 -0", "notes.txt +1 -1"]
    assert sorted(undo(changes(at.events), [], folder, RealClock())) == ["b.txt", "notes.txt"]
    assert (folder / "notes.txt").read_text() == "one\ntwo\nthree\n"
    assert not (folder / "b.txt").exists()


async def test_what_the_agent_told_exactly_is_not_told_again(folder: Path) -> None:
    at = foreign(folder, approve="all")
    await at.session.run("edit")
    assert listed(at) == ["a.txt +1 -0"]
    assert [e.name for e in at.of(ev.ToolFinished)] == ["edit"]


async def test_the_persons_repository_is_not_touched(folder: Path) -> None:
    def git(*args: str) -> str:
        done = subprocess.run(
            ["git", "-c", "user.name=x", "-c", "user.email=x@x", *args],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    git("init", "-q")
    (folder / ".gitignore").write_text("*.log\n")
    git("add", "notes.txt")
    git("commit", "-qm", "first")
    before = git("status", "--porcelain=v1"), sorted(p.name for p in (folder / ".git" / "objects").iterdir())
    at = foreign(folder, approve="all")
    await at.session.run("command echo x >> notes.txt; echo y > debug.log; git stash list")
    assert listed(at) == ["notes.txt +1 -0"]
    git("checkout", "-q", "notes.txt")
    assert (
        git("status", "--porcelain=v1"),
        sorted(p.name for p in (folder / ".git" / "objects").iterdir()),
    ) == before


async def test_what_is_no_text_or_is_gone_is_named(folder: Path) -> None:
    at = foreign(folder, approve="all")
    await at.session.run("command rm notes.txt; head -c 9 /dev/zero > z.bin")
    assert listed(at) == []
    (notice,) = [e.text for e in at.of(ev.Notice) if "also changed" in e.text]
    assert "notes.txt (removed)" in notice
    assert "z.bin (changed)" in notice


async def test_without_git_it_is_said_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/no/such/place")
    at = foreign(folder, approve="all")
    await at.session.run("hello")
    assert [e.text for e in at.of(ev.Notice) if "git is not installed" in e.text]
    assert at.events[-1].outcome == "completed"  # type: ignore[union-attr]
