"""`handrail changes`: files, diffs, the undo of a turn, on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from runs import call, says
from scripted_cli import ScriptedProgram

from handrail import events as ev
from handrail.clock import VirtualClock
from handrail.session.store import Store

WORK = [
    says("", call("write", path="a.txt", content="one\n")),
    says(
        "", call("edit", path="a.txt", old="one", new="two"), call("write", path="sub/b.txt", content="b\n")
    ),
    says("", call("bash", command="echo three >> c.txt")),
    says("Done."),
]


@pytest.fixture
def worked(program: ScriptedProgram) -> ScriptedProgram:
    assert program.run("--approve", "all", "Work.", replies=WORK).code == 0
    return program


def test_files_and_the_whole_diff(worked: ScriptedProgram) -> None:
    out = worked("changes").out
    assert out.splitlines()[:2] == ["a.txt (new)  +2 -1  turn 1, 2", "sub/b.txt (new)  +1 -0  turn 2"]
    assert "turn 2: a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n" in out
    rows = [json.loads(line) for line in worked("changes", worked.ids[0], "--json").out.splitlines()]
    assert [(r["turn"], r["path"], r["new"], r["added"], r["removed"]) for r in rows] == [
        (1, "a.txt", True, 1, 0),
        (2, "a.txt", False, 1, 1),
        (2, "sub/b.txt", True, 1, 0),
    ]


def test_a_turn_is_taken_back_and_the_session_knows(worked: ScriptedProgram, home: Path) -> None:
    ended = worked("changes", "--undo", "1", "--yes")
    assert ended.code == 2 and "changed later in turn 2: undo that first" in ended.err
    ended = worked("changes", "--undo", "2", "--yes")
    assert (ended.code, ended.out) == (0, "turn 2 undone: a.txt, sub/b.txt (2 files)\n")
    assert (home / "a.txt").read_text() == "one\n" and not (home / "sub" / "b.txt").exists()
    last = worked.events(worked.ids[0])[-1]
    assert (
        isinstance(last, ev.Notice)
        and last.text == "the person undid the changes of turn 2: a.txt, sub/b.txt"
    )
    assert worked("changes", "--undo", "1", "--yes").code == 0 and not (home / "a.txt").exists()
    assert (home / "c.txt").read_text() == "three\n", "what a command did is not undone"
    assert worked("resume", "--plain", "--prompt", "More.", replies=[says("Done.")]).code == 0


def test_an_undo_asks_first(worked: ScriptedProgram, home: Path) -> None:
    ended = worked("changes", "--undo", "2")
    assert ended.code == 2 and "--yes" in ended.err and (home / "a.txt").read_text() == "two\n"


def test_a_turn_without_changes_is_refused(worked: ScriptedProgram) -> None:
    ended = worked("changes", "--undo", "3", "--yes")
    assert ended.code == 2 and "turn 3 changed no files. Turns that did: 1, 2." in ended.err


def test_no_undo_under_a_running_session(worked: ScriptedProgram, home: Path) -> None:
    with Store().open(worked.ids[0], VirtualClock()):
        ended = worked("changes", "--undo", "2", "--yes")
    assert ended.code == 2 and "is being written" in ended.err and (home / "a.txt").read_text() == "two\n"


def test_nothing_changed(program: ScriptedProgram) -> None:
    program.run("Talk.", replies=[says("Done.")])
    assert "No files edited" in program("changes").out
    assert program("changes", "--json").out == ""
