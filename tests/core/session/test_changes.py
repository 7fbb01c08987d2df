"""What a run changed, and taking it back exactly or not at all."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail import events as ev
from handrail.clock import VirtualClock
from handrail.session.changes import CannotUndo, FileChange, changes, of_turn, undo
from handrail.tools.diff import unified

LINES = st.lists(
    st.sampled_from(["a", "b", "", "x" * 30, "--- a", "+++ b", "@@ -1 +1 @@", "\\ No", "é\r"]), max_size=12
)
TEXTS = st.tuples(LINES, st.booleans()).map(lambda t: "\n".join(t[0]) + ("\n" if t[1] and t[0] else ""))


def change(before: str | None, after: str, turn: int = 1, path: str = "a.txt") -> FileChange:
    diff = unified(
        (before or "").replace("\r\n", "\n"), after.replace("\r\n", "\n"), path, new=before is None
    )
    return FileChange(1, turn, path, diff.text)


def take_back(folder: Path, *undone: FileChange, later: tuple[FileChange, ...] = ()) -> list[str]:
    return undo(undone, later, folder, VirtualClock())


@given(st.lists(TEXTS, min_size=2, max_size=5))
def test_undoing_from_the_last_one_on_gives_back_each_state(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("undo")
    states = [text.replace("\r", "") for text in texts]
    steps = [(before, after) for before, after in pairwise(states) if before != after]
    made = [change(before, after, number + 1) for number, (before, after) in enumerate(steps)]
    file = folder / "a.txt"
    file.write_bytes(states[-1].encode())
    for each, (before, _) in zip(reversed(made), reversed(steps), strict=True):
        take_back(folder, each)
        assert file.read_bytes() == before.encode()


@given(TEXTS, TEXTS, TEXTS)
def test_a_file_that_is_not_what_was_left_is_never_touched_wrongly(
    tmp_path_factory: pytest.TempPathFactory, before: str, after: str, now: str
) -> None:
    """Whatever stands there now: it is refused and untouched, or the very lines of the change are turned round."""
    folder = tmp_path_factory.mktemp("undo")
    file = folder / "a.txt"
    file.write_bytes(now.encode())
    made = change(before, after)
    if not made.diff:
        return
    try:
        take_back(folder, made)
    except CannotUndo:
        assert file.read_bytes() == now.encode()
    else:
        assert change(file.read_bytes().decode(), now).added == made.added or now != after


def test_a_new_file_goes_again_and_several_files_go_together(tmp_path: Path) -> None:
    (tmp_path / "new.txt").write_text("one\ntwo\n")
    (tmp_path / "old.txt").write_text("b\n")
    done = take_back(
        tmp_path, change(None, "one\ntwo\n", path="new.txt"), change("a\n", "b\n", path="old.txt")
    )
    assert done == ["new.txt", "old.txt"]
    assert not (tmp_path / "new.txt").exists() and (tmp_path / "old.txt").read_text() == "a\n"


def test_two_changes_of_one_file_in_one_turn(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("c\n")
    take_back(tmp_path, change(None, "a\n"), change("a\n", "b\n"), change("b\n", "c\n"))
    assert not (tmp_path / "a.txt").exists()


def test_one_that_cannot_be_undone_keeps_the_others_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("b\n")
    (tmp_path / "z.txt").write_text("somebody was here\n")
    with pytest.raises(
        CannotUndo, match=r"z\.txt: what turn 1 left at line 1 no longer exists\. It has been changed"
    ):
        take_back(tmp_path, change("a\n", "b\n"), change("a\n", "b\n", path="z.txt"))
    assert (tmp_path / "a.txt").read_text() == "b\n"


def test_a_write_that_fails_puts_the_others_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("b\n")
    (tmp_path / "z.txt").write_text("b\n")
    (tmp_path / "z.txt").chmod(0o444)
    with pytest.raises(CannotUndo, match=r"z\.txt is read-only"):
        take_back(tmp_path, change("a\n", "b\n"), change("a\n", "b\n", path="z.txt"))
    assert (tmp_path / "a.txt").read_text() == "b\n"


def test_a_later_change_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("c\n")
    with pytest.raises(CannotUndo, match="It was changed later in turn 2: undo that first"):
        take_back(tmp_path, change("a\n", "b\n"), later=(change("b\n", "c\n", turn=2),))


@pytest.mark.parametrize("now", ["b\nmore\n", "more\nb\n", ""])
def test_a_new_file_with_more_in_it_stays(tmp_path: Path, now: str) -> None:
    (tmp_path / "a.txt").write_text(now)
    with pytest.raises(CannotUndo):
        take_back(tmp_path, change(None, "b\n"))
    assert (tmp_path / "a.txt").read_text() == now


def test_line_ends_permissions_and_the_mark_stay(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(b"\xef\xbb\xbfone\r\nTWO\r\n")
    file.chmod(0o750)
    take_back(tmp_path, change("one\ntwo\n", "one\nTWO\n"))
    assert file.read_bytes() == b"\xef\xbb\xbfone\r\ntwo\r\n"
    assert file.stat().st_mode & 0o777 == 0o750


@pytest.mark.parametrize(
    ("before", "data", "words"),
    [
        ("key = [masked]\n", b"b\n", "a secret"),
        ("a\ufffd\n", b"b\n", "it was a secret, or not text"),
        ("a\r\nx\n", b"b\r\nx\n", "mixed line ends"),
        ("a\n", b"\0\1\2", "is no text"),
    ],
)
def test_J5_what_the_record_does_not_hold_is_not_made_up(
    tmp_path: Path, before: str, data: bytes, words: str
) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(data)
    after = data.decode("utf-8", "replace")
    with pytest.raises(CannotUndo, match=words):
        take_back(tmp_path, change(before, after))
    assert file.read_bytes() == data


def test_a_diff_that_was_cut_is_refused(tmp_path: Path) -> None:
    before, after = "a\n" * 60_000, "b\n" * 60_000
    (tmp_path / "a.txt").write_text(after)
    with pytest.raises(CannotUndo, match="too long to be stored"):
        take_back(tmp_path, change(before, after))


def test_a_path_that_leads_elsewhere_now_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (tmp_path / "outside.txt").write_text("b\n")
    (folder / "a.txt").symlink_to(tmp_path / "outside.txt")
    with pytest.raises(CannotUndo, match="leads out of the working folder"):
        take_back(folder, change("a\n", "b\n"))
    assert (tmp_path / "outside.txt").read_text() == "b\n"


def test_a_file_that_is_gone_is_said(tmp_path: Path) -> None:
    with pytest.raises(CannotUndo, match="no longer exists"):
        take_back(tmp_path, change("a\n", "b\n"))


def finished(turn: int, path: str, **more: object) -> ev.ToolFinished:
    return ev.ToolFinished(
        call_id="c",
        name="edit",
        turn=turn,
        diff=unified("a\n", "b\n", path).text,
        **more,  # type: ignore[arg-type]
    )


def test_changes_are_read_from_the_record_run_by_run() -> None:
    events = [
        ev.RunStarted(prompt="one"),
        finished(1, "a.txt"),
        finished(2, "/tmp/b.txt"),
        finished(2, "failed.txt", is_error=True),
        ev.ToolFinished(call_id="c", name="bash", turn=2, text="ok"),
        ev.RunStarted(prompt="one", resumed=True),
        finished(3, "a b/c.txt"),
        ev.RunStarted(prompt="two"),
        finished(1, "d.txt"),
    ]
    found = changes(events)
    assert [(c.run, c.turn, c.path) for c in found] == [
        (1, 1, "a.txt"),
        (1, 2, "/tmp/b.txt"),
        (1, 3, "a b/c.txt"),
        (2, 1, "d.txt"),
    ]
    assert [(c.added, c.removed, c.new) for c in found] == [(1, 1, False)] * 4
    assert [c.path for c in of_turn(found, 1)] == ["d.txt"], "the last run that has such a turn"
    assert [c.path for c in of_turn(found, 2)] == ["/tmp/b.txt"] and of_turn(found, 9) == []
