"""H7: what runs is what was shown. The files change while a card stands, or while the batch runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from runs import Played, Spy, call, make, play, says

from handrail import events as ev
from handrail.providers.scripted import ScriptedReply
from handrail.session import Session
from handrail.tools import builtin_tools

pytestmark = [
    pytest.mark.attack,
    pytest.mark.skipif(os.name != "posix", reason="symlinks and directory handles"),
]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (tmp_path / "outside").mkdir()
    return folder


async def asked(
    work: Path, *calls: object, meanwhile: Callable[[], object], answers: tuple[str, ...], mode: str = "ask"
) -> Played:
    """Play one batch. `meanwhile` happens while the first card stands; `answers` are given to the cards in order."""
    left = list(answers)

    def person(session: Session, event: ev.Event) -> None:
        if isinstance(event, ev.ApprovalRequested):
            if len(left) == len(answers):
                meanwhile()
            session.approve(event.id, left.pop(0))

    replies = [says("", *calls), says("done")]  # type: ignore[arg-type]
    return await play(
        replies,
        tools=builtin_tools(),
        cwd=work,
        approve=mode,
        on=person,
        attended=True,
    )


async def test_H7_work_that_a_person_saves_while_the_card_stands_is_not_overwritten(work: Path) -> None:
    file = work / "a.txt"
    file.write_text("old\n")
    played = await asked(
        work,
        call("write", path="a.txt", content="new\n"),
        meanwhile=lambda: file.write_text("the person's work\n"),
        answers=("once", "deny"),
    )
    assert file.read_text() == "the person's work\n"
    first, second = played.of(ev.ApprovalRequested)
    assert "-old" in first.diff
    assert "-the person's work" in second.diff
    assert "changed" in second.why


async def test_H7_what_the_person_allows_after_seeing_the_new_diff_is_written(work: Path) -> None:
    file = work / "a.txt"
    file.write_text("old\n")
    await asked(
        work,
        call("write", path="a.txt", content="new\n"),
        meanwhile=lambda: file.write_text("other\n"),
        answers=("once", "once"),
    )
    assert file.read_text() == "new\n"


async def test_H7_a_change_elsewhere_in_the_file_survives_without_another_question(work: Path) -> None:
    file = work / "a.txt"
    file.write_text("one\n" + "\n" * 20 + "two\n")
    played = await asked(
        work,
        call("edit", path="a.txt", old="two", new="2"),
        meanwhile=lambda: file.write_text("zero\none\n" + "\n" * 20 + "two\n"),
        answers=("once",),
    )
    assert file.read_text() == "zero\none\n" + "\n" * 20 + "2\n"
    assert len(played.of(ev.ApprovalRequested)) == 1


async def test_H7_replace_all_changes_no_more_places_than_the_diff_showed(work: Path) -> None:
    file = work / "a.txt"
    file.write_text("x = 1\n")
    await asked(
        work,
        call("edit", path="a.txt", old="x", new="y", replace_all=True),
        meanwhile=lambda: file.write_text("x = 1\nx = 2\nx = 3\n"),
        answers=("once", "deny"),
    )
    assert file.read_text() == "x = 1\nx = 2\nx = 3\n"


async def test_H7_a_new_file_does_not_replace_one_that_was_made_meanwhile(work: Path) -> None:
    file = work / "new.txt"
    played = await asked(
        work,
        call("write", path="new.txt", content="model\n"),
        meanwhile=lambda: file.write_text("person\n"),
        answers=("once", "deny"),
    )
    assert file.read_text() == "person\n"
    assert "-person" in played.of(ev.ApprovalRequested)[1].diff


async def test_H7_a_folder_that_becomes_a_symlink_takes_no_approved_write(work: Path) -> None:
    (work / "src").mkdir()
    outside = work.parent / "outside"

    def swap() -> None:
        (work / "src").rename(work / "old")
        (work / "src").symlink_to(outside)

    played = await asked(
        work,
        call("write", path="src/a.txt", content="x\n"),
        meanwhile=swap,
        answers=("once", "deny"),
    )
    assert list(outside.iterdir()) == []
    assert str(outside) in played.of(ev.ApprovalRequested)[1].why


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read", {"path": "src/a.txt"}),
        ("grep", {"pattern": "secret", "path": "src"}),
        ("find", {"pattern": "*", "path": "src"}),
        ("ls", {"path": "src"}),
    ],
)
async def test_H7_reads_of_the_same_batch_do_not_leave_the_folder(
    work: Path, tool: str, arguments: dict[str, str]
) -> None:
    (work / "src").mkdir()
    (work / "src" / "a.txt").write_text("mine\n")
    outside = work.parent / "outside"
    (outside / "a.txt").write_text("secret\n")
    (outside / "b.txt").write_text("secret\n")

    def swap() -> None:
        (work / "src").rename(work / "old")
        (work / "src").symlink_to(outside)

    played = await asked(
        work,
        call("write", path="note.txt", content="x\n"),
        call(tool, **arguments),
        meanwhile=swap,
        answers=("once", "deny"),
    )
    assert played.results(1)[1] == "denied by the person."
    assert str(outside) in played.of(ev.ApprovalRequested)[1].why


async def test_H7_in_mode_edits_a_running_call_cannot_redirect_the_next_write(work: Path) -> None:
    (work / "src").mkdir()
    outside = work.parent / "outside"

    async def swap(args: object, ctx: object) -> str:
        (work / "src").rename(work / "old")
        (work / "src").symlink_to(outside)
        return "swapped"

    replies = [
        says("", call("swap"), call("write", path="src/a.txt", content="x\n")),
        says("done"),
    ]
    tools = [Spy("swap", swap, sequential=True), *builtin_tools()]
    played = await play(replies, tools=tools, cwd=work, approve="edits", attended=False)
    assert list(outside.iterdir()) == []
    assert "outside the working folder" in played.results(1)[1]


async def test_H7_two_edits_of_one_file_in_a_batch_need_one_approval_each(work: Path) -> None:
    file = work / "a.txt"
    file.write_text("one\n" + "\n" * 9 + "two\n")
    played = await asked(
        work,
        call("edit", path="a.txt", old="one", new="1\n1"),
        call("edit", path="a.txt", old="two", new="2"),
        meanwhile=lambda: None,
        answers=("once", "once"),
    )
    assert file.read_text() == "1\n1\n" + "\n" * 9 + "2\n"
    assert len(played.of(ev.ApprovalRequested)) == 2


async def test_H7_a_file_that_becomes_a_hard_link_is_shown_again(work: Path) -> None:
    file, other = work / "a.txt", work.parent / "outside" / "precious"
    file.write_text("old\n")
    other.write_text("old\n")

    def swap() -> None:
        file.unlink()
        os.link(other, file)

    played = await asked(
        work, call("write", path="a.txt", content="new\n"), meanwhile=swap, answers=("once", "deny")
    )
    assert other.read_text() == "old\n"
    assert "hard links" in played.of(ev.ApprovalRequested)[1].detail


async def test_L6_at_most_sixteen_calls_run_at_once(work: Path) -> None:
    running = most = 0

    async def count(args: object, ctx: object) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await ctx.clock.sleep(1)  # type: ignore[attr-defined]
        running -= 1
        return "ok"

    played = await play(
        [says("", *(call("count") for _ in range(100))), says("done")], tools=[Spy("count", count)]
    )
    assert most == 16
    assert played.results(1) == ["ok"] * 100


@pytest.mark.parametrize("changed", [True, False])
async def test_H7_an_approval_from_before_a_restart_holds_only_for_what_was_shown(
    work: Path, changed: bool
) -> None:
    file = work / "a.txt"
    file.write_text("old\n")

    def session(*replies: ScriptedReply) -> tuple[Session, list[ev.Event]]:
        made, _, events = make(replies, tools=builtin_tools(), cwd=work, approve="ask", attended=True)
        return made, events

    first, events = session(says("", call("write", path="a.txt", content="new\n")), says("done"))
    first.listen(lambda e: isinstance(e, ev.ApprovalRequested) and first.approve(e.id, "once"))
    await first.run("Go.")
    end = next(n for n, e in enumerate(events) if isinstance(e, ev.ApprovalAnswered))
    file.write_text("the person's\n" if changed else "old\n")

    second, later = session(says("done"))
    second.load(events[: end + 1])
    second.listen(lambda e: isinstance(e, ev.ApprovalRequested) and second.approve(e.id, "deny"))
    await second.resume()
    assert file.read_text() == ("the person's\n" if changed else "new\n")
    assert any(isinstance(e, ev.ApprovalRequested) for e in later) == changed
