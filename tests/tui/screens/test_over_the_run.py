"""What stands over or beside a run: its changes, its queue, words that are looked for."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from ports import FakeSession
from stories import Story, batch_done, flaky, second_attempt
from textual.pilot import Pilot
from textual.widgets import Input, OptionList

from handrail import events as ev
from handrail.events import QueuedMessage
from handrail.messages import Text
from handrail_tui.app import HandrailApp
from handrail_tui.screens.changes import ChangesScreen
from handrail_tui.screens.queue import QueueScreen
from handrail_tui.widgets.search_bar import SearchBar

OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
HOSTILE = "[/] [red]x[/foo] \x1b]0;owned\x07\x1b[2J evil"


def start(session: FakeSession) -> HandrailApp:
    return HandrailApp(session, lambda: session.run("a task"))


def text_of(app: HandrailApp) -> str:
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


async def settle(pilot: Pilot[Any]) -> None:
    await pilot.pause(0.12)


# Changes ----------------------------------------------------------------------------------------------------


def edited(folder: Path, *, outcome: str | None = "completed") -> Story:
    """A run that changed a file in two turns and made another."""
    story = Story().start(cwd=str(folder), output=None)
    for turn, (old, new) in enumerate([("one", "two"), ("two", "three")], 1):
        story.request(turn).reply(Text("I change it.")).batch(("edit", "a.txt"), ("write", "b.txt"))
        diff = f"--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-{old}\n+{new}\n"
        story.result(0, "edit", diff=diff, summary="+1 -1")
        if turn == 2:
            story.result(1, "write", diff="--- /dev/null\n+++ b/b.txt\n@@ -0,0 +1 @@\n+made\n")
        story.add(ev.ToolBatchFinished, votes=0, of=2, seconds=0.1).end_turn(1.0, 500, 0.01, 0.01)
    (folder / "a.txt").write_text("three\n")
    (folder / "b.txt").write_text("made\n")
    return story.add(ev.RunFinished, outcome=outcome, requests=2, turns=2) if outcome else story


async def test_changes_are_undone_exactly_after_a_question_and_the_journal_hears_of_it(
    tmp_path: Path,
) -> None:
    session = FakeSession()
    app = start(session)
    async with app.run_test(size=(122, 40)) as pilot:
        session.play(edited(tmp_path).events)
        await settle(pilot)
        await pilot.press("ctrl+g")
        await settle(pilot)
        text = text_of(app)
        assert "2 files" in text and "turn 1" in text and "- one" in text and "+ three" in text
        await pilot.press("u", "n")
        assert (tmp_path / "a.txt").read_text() == "three\n", "another key takes the question back"
        await pilot.press("u")
        assert "Undo what turn 2 changed: a.txt, b.txt?" in text_of(app)
        await pilot.press("y")
        await app.workers.wait_for_complete([w for w in app.workers if w.node is app.screen])
        await settle(pilot)
        assert (tmp_path / "a.txt").read_text() == "two\n"
        assert not (tmp_path / "b.txt").exists()
        assert session.told[-1] == ("notice", "the person undid the changes of turn 2: a.txt, b.txt")
        assert "Turn 2 is undone" in text_of(app)


async def test_an_undo_that_is_not_exact_is_refused_and_says_why(tmp_path: Path) -> None:
    session = FakeSession()
    app = start(session)
    async with app.run_test(size=(122, 40)) as pilot:
        session.play(edited(tmp_path).events)
        (tmp_path / "a.txt").write_text("somebody else\n")
        await settle(pilot)
        await pilot.press("ctrl+g", "u", "y")
        await settle(pilot)
        assert "Nothing was changed." in text_of(app)
        assert (tmp_path / "b.txt").exists() and ("notice",) not in [t[:1] for t in session.told]


async def test_nothing_is_undone_under_a_run(tmp_path: Path) -> None:
    session = FakeSession()
    app = start(session)
    async with app.run_test(size=(122, 40)) as pilot:
        session.play(edited(tmp_path, outcome=None).events)
        await settle(pilot)
        await pilot.press("ctrl+g", "u", "y")
        assert "Stop the run first" in text_of(app)
        assert (tmp_path / "b.txt").exists()


async def test_no_changes_are_said_so_and_hostile_ones_are_only_text(tmp_path: Path) -> None:
    session = FakeSession()
    app = start(session)
    async with app.run_test(size=(100, 30)) as pilot:
        story = Story().start(cwd=str(tmp_path)).request(1).reply(Text("x")).batch(("edit", HOSTILE))
        session.play(story.events)
        await settle(pilot)
        await pilot.press("ctrl+g")
        assert "No files edited yet." in text_of(app)
        await pilot.press("escape")
        diff = f"--- a/{HOSTILE}\n+++ b/{HOSTILE}\n@@ -1 +1 @@\n-{HOSTILE}\n+{HOSTILE}\n"
        session.play(story.result(0, "edit", diff=diff).events[-1:])
        await settle(pilot)
        await pilot.press("ctrl+g")
        await settle(pilot)
        assert isinstance(app.screen, ChangesScreen)
        text = text_of(app)
        assert "[/] [red]x[/foo]" in text and not OBEYED.search(text)


# The queue --------------------------------------------------------------------------------------------------


class Queued(FakeSession):
    """A session that keeps a queue, as a real one does."""

    def __init__(self) -> None:
        super().__init__()
        self.steering = [QueuedMessage("m1", "first"), QueuedMessage("m2", "second\nwith two lines")]
        self.follow_ups = [QueuedMessage("m3", HOSTILE)]

    def changed(self) -> None:
        at = self.clock.now()
        self.emit(ev.QueueChanged(at=at, steering=tuple(self.steering), follow_ups=tuple(self.follow_ups)))

    def edit_queued(self, id: str, text: str, /) -> None:
        self.steering = [QueuedMessage(id, text) if m.id == id else m for m in self.steering]
        self.changed()

    def move_queued(self, id: str, offset: int, /) -> None:
        self.steering.reverse()
        self.changed()

    def withdraw(self, id: str, /) -> QueuedMessage | None:
        found = next((m for m in [*self.steering, *self.follow_ups] if m.id == id), None)
        self.steering = [m for m in self.steering if m.id != id]
        self.follow_ups = [m for m in self.follow_ups if m.id != id]
        self.changed()
        return found


async def test_L8_the_queue_is_edited_reordered_and_withdrawn() -> None:
    session = Queued()
    app = start(session)
    async with app.run_test(size=(100, 30)) as pilot:
        session.play(Story().start().request(1).events)
        session.changed()
        app.run_screen.controller.perform("queue")
        await settle(pilot)
        text = text_of(app)
        assert "second with two lines" in text and "[/] [red]x[/foo]" in text and not OBEYED.search(text)
        await pilot.press("down", "e", *"!?", "ctrl+j", *"ok", "enter")
        assert session.steering[1].text == "second\nwith two lines!?\nok"
        await pilot.press("e", *"no", "escape")
        assert session.steering[1].text.endswith("ok"), "esc leaves it as it was"
        await pilot.press("ctrl+up")
        assert [m.id for m in session.steering] == ["m2", "m1"]
        await settle(pilot)
        assert app.screen.query_one(OptionList).highlighted == 0, "the mark goes with the message"
        await pilot.press("x")
        await settle(pilot)
        assert app.run_screen.composer.text == "second\nwith two lines!?\nok"
        assert [m.id for m in session.steering] == ["m1"]


async def test_L8_words_of_a_message_that_was_delivered_meanwhile_are_not_lost() -> None:
    session = Queued()
    app = start(session)
    async with app.run_test(size=(100, 30)) as pilot:
        session.play(Story().start().request(1).events)
        session.changed()
        app.run_screen.controller.perform("queue")
        await settle(pilot)
        await pilot.press("e", *" and more")
        session.steering = session.steering[1:]
        session.changed()
        await pilot.press("enter")
        await settle(pilot)
        assert not isinstance(app.screen, QueueScreen)
        assert app.run_screen.composer.text == "first and more"


async def test_an_empty_queue_says_so() -> None:
    session = FakeSession()
    app = start(session)
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.press(*"/queue", "enter")
        await settle(pilot)
        assert "The queue is empty." in text_of(app)
        await pilot.press("escape")
        assert app.screen is app.run_screen


# Finding words ----------------------------------------------------------------------------------------------


def found(app: HandrailApp) -> str:
    return str(app.run_screen.query_one("#search--found").render()).partition("   ")[0]


async def test_words_are_found_also_where_they_are_folded() -> None:
    session = FakeSession()
    app = start(session)
    async with app.run_test(size=(122, 30)) as pilot:
        session.play(second_attempt(batch_done(flaky())).events)
        await settle(pilot)
        assert "1 failed, 23 passed" not in app.run_screen.transcript.plain().split("turn 3")[0]
        before = app.run_screen.transcript.plain()
        await pilot.press("ctrl+f", *"REFRESH THE cache")
        await settle(pilot)
        assert found(app).startswith("1 of ") and int(found(app).split()[-1]) > 30, "thoughts are opened"
        await pilot.press("enter", "enter", "up")
        assert found(app).startswith("2 of ")
        await pilot.press("up", "up")
        last = found(app).split()
        assert last[0] == last[2], "above the first is the last"
        await pilot.press("escape")
        await settle(pilot)
        assert not app.run_screen.query_one(SearchBar).is_open
        assert app.run_screen.transcript.plain() == before, "what was opened for it is folded again"
        assert app.focused is app.run_screen.composer.input


async def test_what_is_nowhere_is_said_so_and_signs_are_only_signs() -> None:
    session = FakeSession()
    app = start(session)
    async with app.run_test(size=(122, 30)) as pilot:
        story = Story().start("a (b [/] .* c").request(1).says("more [/] of it")
        session.play(story.events)
        await settle(pilot)
        for words, count in (
            (".*", "1 of 1"),
            ("[/]", "1 of 2"),
            ("zzz", "no match"),
            ("OF", "1 of 1"),
            ("(", "1 of 1"),
        ):
            await pilot.press("ctrl+f")
            app.run_screen.query_one(SearchBar).query_one(Input).value = words
            await settle(pilot)
            assert found(app) == count, words
            await pilot.press("escape")


async def test_the_match_in_front_stays_in_sight_while_the_run_goes_on() -> None:
    session = FakeSession()
    app = start(session)
    async with app.run_test(size=(100, 24)) as pilot:
        story = Story().start().request(1).says("find the needle here\n\n")
        session.play(story.says("words\n\n" * 60).events)
        await settle(pilot)
        assert "needle" not in text_of(app)
        await pilot.press("ctrl+f", *"needle")
        await settle(pilot)
        assert "find the needle here" in text_of(app)
        session.play(story.says("later\n\n" * 20).events[-20:])
        await settle(pilot)
        assert "find the needle here" in text_of(app)


@pytest.mark.parametrize("key", ["ctrl+g", "ctrl+f"])
async def test_at_forty_columns_it_is_usable(key: str, tmp_path: Path) -> None:
    session = FakeSession()
    app = start(session)
    async with app.run_test(size=(40, 20)) as pilot:
        session.play(edited(tmp_path).events)
        await settle(pilot)
        await pilot.press(key, *"a.txt")
        await settle(pilot)
        assert "a.txt" in text_of(app)


# Shell lines of the person -----------------------------------------------------------------------------------


async def test_a_shell_line_runs_in_the_folder_of_the_run_and_is_told_as_the_persons(tmp_path: Path) -> None:
    (tmp_path / "here.txt").write_text("x")
    session = FakeSession()
    app = start(session)
    async with app.run_test(size=(100, 30)) as pilot:
        session.play(Story().start(cwd=str(tmp_path)).request(1).events)
        await settle(pilot)
        await pilot.press(*"!ls; exit 3", "enter")
        for _ in range(100):
            await pilot.pause(0.02)
            if session.told[-1][0] == "notice":
                break
    words = session.told[-1][1]
    assert words.startswith("you ran: ls; exit 3") and "here.txt" in words and "[exit 3]" in words
    assert "the model does not see it" in words
    assert not [t for t in session.told if t[0] in ("steer", "follow_up")]


async def test_one_shell_line_at_a_time_and_none_outlives_the_screen(tmp_path: Path) -> None:
    session = FakeSession()
    app = start(session)
    async with app.run_test(size=(100, 30)) as pilot:
        session.play(Story().start(cwd=str(tmp_path)).request(1).events)
        await settle(pilot)
        await pilot.press(*"!echo $$ >pid; exec sleep 60", "enter")
        await settle(pilot)
        await pilot.press(*"!ls", "enter")
        await settle(pilot)
        assert app.run_screen.composer.text == "!ls"
        assert "one shell line at a time" in text_of(app)
        pid = int((tmp_path / "pid").read_text())
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
