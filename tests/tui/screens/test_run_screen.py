"""The run screen: events in, keys out."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from typing import Any

import pytest
from ports import FakeSession
from stories import Story, batch_done, flaky, second_attempt
from textual.events import Key
from textual.pilot import Pilot

from handrail import events as ev
from handrail.events import QueuedMessage
from handrail.messages import Text
from handrail_tui.app import HandrailApp
from handrail_tui.program import UiPrefs
from handrail_tui.screens.decisions import DecisionsScreen
from handrail_tui.screens.help import HelpScreen
from handrail_tui.screens.run import RunScreen
from handrail_tui.widgets.transcript import Transcript

OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def start(session: FakeSession) -> HandrailApp:
    return HandrailApp(session, lambda: session.run("a task"))


def screen_text(app: HandrailApp) -> str:
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


def screen_of(app: HandrailApp) -> RunScreen:
    return app.run_screen


async def settle(pilot: Pilot[Any]) -> None:
    """Let what was asked to be drawn be drawn."""
    await pilot.pause(0.12)


async def test_a_run_is_on_the_screen() -> None:
    session = FakeSession()
    app = start(session)
    async with app.run_test(size=(122, 40)) as pilot:
        session.play(second_attempt(batch_done(flaky())).events)
        await settle(pilot)
        text = screen_text(app)
    for words in (
        "Fix the flaky checkout test.",
        "anthropic/claude-opus-5-5",
        "RUNNING",
        "turn 5 of 12",
        "1 of 3 rejected",
        "thought for",
        "pytest -q tests/checkout",
        "attempt 2 of 4, connection lost after 1.2k characters",
        "the words so far were kept",
        "retry 1 of 3, in 2 s",
        "add a regression test too",
        "context 42%",
    ):
        assert words in text


@pytest.mark.parametrize("size", [(80, 24), (40, 20), (20, 8)])
async def test_a_small_terminal_shows_the_newest_words_and_the_state(size: tuple[int, int]) -> None:
    session = FakeSession()
    app = start(session)
    async with app.run_test(size=size) as pilot:
        session.play(second_attempt(batch_done(flaky())).events)
        await settle(pilot)
        text = screen_text(app)
    assert "RUNNING" in text
    assert "cache" in text


async def test_L9_esc_stops_at_once_and_keeps_what_is_typed() -> None:
    session = FakeSession()
    app = start(session)
    async with app.run_test(size=(122, 40)) as pilot:
        session.play(Story().start().request(1).says("on it").events)
        await pilot.press("a", "b", "escape")
        await settle(pilot)
        assert session.told[-1] == ("stop",)
        assert "STOPPING" in screen_text(app)
        assert screen_of(app).composer.text == "ab"
        await pilot.press("escape")
        assert session.told.count(("stop",)) == 1


async def test_an_idle_session_takes_the_next_prompt() -> None:
    session = FakeSession()
    app = HandrailApp(session)
    async with app.run_test(size=(122, 40)) as pilot:
        await pilot.press(*"go", "enter")
        await settle(pilot)
        assert session.told == [("run", "go")]


async def test_H5_an_approval_is_answered_from_its_card() -> None:
    session = FakeSession()
    app = start(session)
    async with app.run_test(size=(122, 40)) as pilot:
        story = Story().start().request(1).batch(("bash", "rm x"))
        story.add(
            ev.ApprovalRequested, id="a1", call_id="c1.0", tool="bash", title="rm x", pattern="bash: rm x"
        )
        session.play(story.events)
        await pilot.pause(0.6)  # no card takes a key within half a second of appearing
        assert "ASKS YOU" in screen_text(app)
        await pilot.press("tab", "y")
        await settle(pilot)
    assert ("approve", "a1", "once", "") in session.told


def at_its_last_turn() -> Story:
    """A run that its bound on turns has ended."""
    story = Story().start().request(12).reply(Text("more to do"))
    story.add(ev.RunFinished, outcome="turn-limit", bound="max_turns", requests=12, turns=12)
    return story


async def test_finish_at_a_bound_puts_the_card_away_and_the_program_stays() -> None:
    session = FakeSession()
    app = start(session)
    async with app.run_test(size=(122, 40)) as pilot:
        session.play(at_its_last_turn().events)
        await pilot.pause(0.6)
        assert app.screen.query("BoundCard")
        await pilot.press("tab", "f")
        await settle(pilot)
        assert not app.screen.query("BoundCard")
        assert app.is_running and not app._exit
        assert screen_of(app).composer.text == ""


async def test_J7_quitting_suspends_the_run_and_leaves_when_it_has_ended() -> None:
    session = FakeSession()
    app = start(session)
    async with app.run_test(size=(122, 40)) as pilot:
        session.play(Story().start().request(1).events)
        await settle(pilot)
        await pilot.press("ctrl+q")
        assert session.told[-1] == ("suspend", None)
        assert app.is_running
        session.emit(ev.RunInterrupted(session="7f3a"))
        await settle(pilot)
    assert isinstance(app.return_value, ev.RunInterrupted)


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="no such signals here")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
async def test_J7_a_signal_suspends_the_run_and_leaves(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handrail_tui.program._detach_terminal", lambda: None)
    session = FakeSession()
    app = start(session)
    async with app.run_test(size=(122, 40)) as pilot:
        session.play(Story().start().request(1).events)
        await settle(pilot)
        os.kill(os.getpid(), getattr(signal, name))
        await settle(pilot)
        assert session.told[-1] == ("suspend", name)
        session.emit(ev.RunInterrupted(signal=name, session="7f3a"))
        await settle(pilot)
    assert isinstance(app.return_value, ev.RunInterrupted)


async def test_ctrl_c_does_not_throw_unsent_words_away() -> None:
    session = FakeSession()
    app = HandrailApp(session)
    async with app.run_test(size=(122, 40)) as pilot:
        await pilot.press(*"words", "ctrl+c")
        await settle(pilot)
        assert app.is_running
        assert "not sent" in screen_text(app)
        await pilot.press("ctrl+c")
        await settle(pilot)
        assert not app.is_running


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("/bounds +5", ("raise", {"max_turns": 5})),
        ("/compact", ("compact",)),
    ],
)
async def test_a_slash_command_reaches_the_session(typed: str, told: tuple[object, ...]) -> None:
    session = FakeSession()
    app = start(session)
    async with app.run_test(size=(122, 40)) as pilot:
        session.play(Story().start().request(1).events)
        await settle(pilot)
        screen_of(app).composer.input.load(typed)
        await pilot.press("escape", "enter") if typed == "/compact" else await pilot.press("enter")
        await settle(pilot)
    assert told in session.told


async def test_the_inspector_shows_the_evidence_and_the_checkpoint() -> None:
    session = FakeSession()
    app = start(session)
    async with app.run_test(size=(122, 40)) as pilot:
        session.play(second_attempt(batch_done(flaky())).events)
        await settle(pilot)
        await pilot.press("ctrl+r")
        await settle(pilot)
        assert isinstance(app.screen, DecisionsScreen)
        text = screen_text(app)
        for words in ("peer closed connection", "retries", "0  →  1", "The previous reply broke."):
            assert words in text
        await pilot.press("escape")
        assert isinstance(app.screen, RunScreen)


async def test_help_names_the_keys_as_they_are_bound() -> None:
    session = FakeSession()
    app = HandrailApp(session, lambda: session.run("x"), prefs=UiPrefs(keys={"run.decisions": "ctrl+g"}))
    async with app.run_test(size=(122, 60)) as pilot:
        await settle(pilot)
        assert "ctrl+g decisions" in screen_text(app)
        await pilot.press("f1")
        await settle(pilot)
        assert isinstance(app.screen, HelpScreen)
        text = screen_text(app)
        for words in ("ctrl+g", "/bounds", "page up", "alt+enter"):
            assert words in text


async def test_a_question_mark_alone_opens_help() -> None:
    session = FakeSession()
    app = start(session)
    async with app.run_test(size=(122, 40)) as pilot:
        await pilot.press("question_mark")
        await pilot.pause(0.5)
        assert isinstance(app.screen, HelpScreen)


async def test_letters_typed_over_the_transcript_go_to_the_composer() -> None:
    session = FakeSession()
    app = start(session)
    async with app.run_test(size=(122, 40)) as pilot:
        session.play(flaky().events)
        await settle(pilot)
        screen_of(app).transcript.focus()
        await pilot.press(*"just")
        assert screen_of(app).composer.text == "just"


async def test_J4_what_happened_before_stands_above_and_is_not_answered_again() -> None:
    session = FakeSession()
    app = HandrailApp(session)
    async with app.run_test(size=(122, 40)) as pilot:
        past = batch_done(flaky()).add(ev.QueueChanged, returned=(QueuedMessage("1", "old words"),))
        screen_of(app).recall(past.add(ev.RunInterrupted, signal="SIGHUP").events)
        await settle(pilot)
        assert "The failure is a race" in screen_text(app)
        assert screen_of(app).composer.text == ""


async def test_ctrl_c_copies_what_is_marked_with_the_mouse() -> None:
    session = FakeSession()
    app = start(session)
    async with app.run_test(size=(122, 40)) as pilot:
        session.play(flaky().events)
        await settle(pilot)
        await pilot.mouse_down(Transcript, offset=(4, 2))
        await pilot.hover(Transcript, offset=(24, 2))
        await pilot.mouse_up(Transcript, offset=(24, 2))
        await pilot.press("ctrl+c")
        assert "Fix the flaky" in app.clipboard
        assert ("stop",) not in session.told


async def test_what_was_not_sent_is_told_after_leaving() -> None:
    session = FakeSession()
    app = HandrailApp(session)
    async with app.run_test(size=(122, 40)) as pilot:
        await pilot.press(*"words", "ctrl+q")
        await settle(pilot)
    assert screen_of(app).unsent == "words"


# Under load -------------------------------------------------------------------------------------------------


async def test_a_key_is_answered_while_thousands_of_deltas_stream() -> None:
    session = FakeSession()
    app = start(session)
    async with app.run_test(size=(122, 40)) as pilot:
        session.play(Story().start().request(1).events)
        typed = asyncio.Event()
        sent = 0

        async def stream() -> None:
            nonlocal sent
            while not typed.is_set() or sent < 5_000:
                line = f"word{sent} " + "\n" * (sent % 9 == 0)
                session.emit(ev.MessageDelta(at=session.clock.now(), turn=1, text=line))
                sent += 1
                if sent % 10 == 0:
                    await asyncio.sleep(0)

        task = asyncio.create_task(stream())
        # Not through the pilot: it would wait for a rest that does not come.
        for number, key in enumerate("abcdefghij", 1):
            app.post_message(Key(key, key))
            async with asyncio.timeout(10):
                while len(screen_of(app).composer.text) < number:  # noqa: ASYNC110
                    await asyncio.sleep(0.005)
        assert not task.done()
        assert screen_of(app).composer.text == "abcdefghij"
        typed.set()
        await task
        session.emit(ev.MessageDelta(turn=1, text="the last word"))
        for _ in range(200):
            await pilot.pause(0.05)
            if "the last word" in screen_text(app):
                break
        else:
            pytest.fail("the end of the stream is not on the screen")


async def test_twenty_megabytes_of_output_leave_the_keys_answered() -> None:
    session = FakeSession()
    app = start(session)
    async with app.run_test(size=(122, 40)) as pilot:
        session.play(Story().start().request(1).batch(("bash", "yes")).tool(0, "bash").events)
        line = "y" * 79 + "\n"

        async def flood() -> None:
            for _ in range(320):
                session.emit(ev.ToolProgress(at=session.clock.now(), turn=1, call_id="c1.0", text=line * 820))
                await asyncio.sleep(0)
            session.emit(
                ev.ToolFinished(turn=1, call_id="c1.0", name="bash", text=line * 262_144, seconds=1.0)
            )

        task = asyncio.create_task(flood())
        await pilot.press(*"still here")
        await task
        await pilot.pause(0.2)
        assert screen_of(app).composer.text == "still here"
        assert "262k lines" in screen_text(app)


@pytest.mark.parametrize("width", [120, 80, 60, 40])
async def test_where_there_is_little_room_help_and_the_way_out_stay_in_sight(width: int) -> None:
    session = FakeSession()
    app = start(session)
    async with app.run_test(size=(width, 30)) as pilot:
        story = flaky().add(ev.RunFinished, outcome="completed", requests=1, turns=1)
        session.play(story.events)
        await settle(pilot)
        last = screen_text(app).splitlines()[-1]
        assert "? help" in last and "ctrl+q quit" in last
