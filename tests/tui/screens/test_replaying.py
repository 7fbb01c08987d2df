"""A stored run plays itself: its timing, long gaps shortened, forwards and backwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ports import FakeSession
from stories import Story, batch_done, flaky, second_attempt
from textual.pilot import Pilot

from handrail import events as ev
from handrail.clock import EPOCH
from handrail.messages import Text, Thinking
from handrail_tui.program import Program
from handrail_tui.screens.demos import DemosScreen
from handrail_tui.screens.replay import ReplayScreen
from handrail_tui.screens.run import RunScreen
from handrail_tui.sessions.demo import builtin_demos
from handrail_tui.sessions.replay import LONGEST_S, Replay, Track, streamed
from handrail_tui.view.state import ViewState


class Hands:
    """The machine's clock, turned by hand."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def story() -> Story:
    return second_attempt(batch_done(flaky()))


def told(view: ViewState) -> str:
    return repr([type(item).__name__ for item in view.items]) + repr(view.meters) + view.phase


def test_a_gap_of_hours_takes_seconds_and_the_clock_shows_the_hours() -> None:
    events = Story().start().request(1).pause(7_200).says("late").events
    track = Track(events)
    assert track.length < 0.4 + LONGEST_S + 0.1
    assert track.moment(track.length) == EPOCH + 0.4 + 7_200
    middle = track.moment(0.4 + LONGEST_S / 2)
    assert middle == pytest.approx(EPOCH + 0.4 + 3_600, abs=1)


def test_moments_never_run_backwards_even_where_a_stored_clock_did() -> None:
    events = Story().start().pause(5).request(1).pause(-60).says("a clock that was set back").events
    track = Track(events)
    moments = [track.moment(track.length * n / 50) for n in range(51)]
    assert moments == sorted(moments)
    assert track.upto(track.length) == len(events)


def test_nothing_to_play_is_at_its_end() -> None:
    replay = Replay([])
    replay.seek(3.0)
    assert replay.at_end and replay.track.turn_at(0.0) == 0


def test_seeking_there_and_back_tells_the_same_story() -> None:
    events = story().events
    replay, view = Replay(events), ViewState()
    replay.on_rewind = view.clear
    replay.listen(view.apply)
    replay.seek(replay.track.length)
    once = told(view)
    replay.seek(replay.track.turns[1])
    assert view.meters.turn == 2 and len(view.items) < 5
    replay.seek(replay.track.length)
    assert told(view) == once
    assert replay.clock.now() == events[-1].at


def test_turns_are_found_one_after_the_other() -> None:
    track = Track(story().events)
    position, seen = 0.0, []
    for _ in range(len(track.turns)):
        position = track.beside(position, 1)
        seen.append(track.turn_at(position))
    assert seen == [2, 3, 4, 5, 5]
    assert track.beside(track.length, 1) == track.length
    assert track.beside(0.0, -1) == 0.0


def test_a_reply_that_was_kept_whole_streams_again() -> None:
    events = Story().start().request(1).pause(2.0).reply(Thinking("hm " * 40), Text("word " * 40)).events
    again = list(streamed(events))
    pieces = [e for e in again if isinstance(e, ev.MessageDelta)]
    assert "".join(p.text for p in pieces if p.kind == "text") == "word " * 40
    began, ended = EPOCH + 0.4, EPOCH + 2.4
    assert all(began < p.at <= ended for p in pieces) and len(pieces) > 8
    assert list(streamed(again)) == again, "what streams already is left as it is"


async def test_playing_pausing_and_speed_follow_the_hands_clock() -> None:
    hands = Hands()
    replay = Replay(story().events, hands)
    replay.play()
    hands.now += 1.0
    replay.pause()
    assert replay.position == 1.0 and not replay.playing
    hands.now += 50
    replay.play()
    replay.faster(1)
    hands.now += 1.0
    replay.pause()
    assert replay.position == 3.0 and replay.speed == 2.0
    replay.close()


def text_of(app: Program) -> str:
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


async def settle(pilot: Pilot[Any]) -> None:
    await pilot.pause(0.12)


async def test_the_keys_of_a_replay() -> None:
    screen = ReplayScreen(story().events)
    app = Program(screen)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        assert screen.replay.playing and "REPLAY" in text_of(app)
        await pilot.press("space", "right", "right", "+")
        await settle(pilot)
        text = text_of(app)
        assert "PAUSED" in text and "2×" in text and "turn 3 of 5" in text
        assert "batch of 3" not in text
        await pilot.press(*["right"] * 3)
        await settle(pilot)
        assert "batch of 3" in text_of(app)
        await pilot.press(*["left"] * 3)
        await settle(pilot)
        assert "batch of 3" not in text_of(app)
        await pilot.press("x", "a", "enter")
        assert screen.composer.text == "", "nothing can be said to what is over"


async def test_a_card_of_the_past_cannot_be_answered() -> None:
    asked = story().add(ev.HumanRequested, id="h1", kind="captcha", needed="Solve it [/]").events
    screen = ReplayScreen(asked, plays=False)
    app = Program(screen)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.8)
        assert "Solve it [/]" in text_of(app)
        await pilot.press("tab", "c", "enter")
        await settle(pilot)
        assert "Solve it [/]" in text_of(app) and screen.view.questions


async def test_the_gallery_plays_and_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    from handrail_tui import navigation
    from handrail_tui.controller.destinations import OpenDemo, SessionDestination
    from handrail_tui.navigation import OpenScreen

    played: list[tuple[str, float]] = []

    def play(destination: SessionDestination) -> OpenScreen:
        assert isinstance(destination, OpenDemo)
        played.append((destination.file.stem, destination.speed))
        return OpenScreen(lambda: RunScreen(FakeSession(), returns=True))

    monkeypatch.setattr(navigation, "open_session", play)
    app = Program(DemosScreen(builtin_demos()))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("down", "+", "+", "-", "enter")
        await pilot.pause(0.1)
        assert played == [("02-only-you", 2.0)]
        await pilot.press("ctrl+o")
        await pilot.pause()
        assert isinstance(app.screen, DemosScreen)


async def test_a_demo_plays_from_the_gallery_for_real() -> None:
    app = Program(DemosScreen(builtin_demos(), 8.0))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("enter")
        for _ in range(60):
            await pilot.pause(0.05)
            if "turn 1" in text_of(app):
                break
        assert "Fix the flaky checkout test" in text_of(app)
        folder = Path(app.seen.view.header.cwd) if app.seen else Path("/")
        assert folder.is_dir()
        await pilot.press("ctrl+o", "ctrl+o")
        for _ in range(60):
            await pilot.pause(0.05)
            if isinstance(app.screen, DemosScreen):
                break
        assert isinstance(app.screen, DemosScreen) and not folder.exists()
