"""What a person can do to a run, without a screen."""

from __future__ import annotations

from typing import Any

import pytest
from display import Stage, settle
from stories import Story

from handrail import events as ev
from handrail.errors import ConfigError
from handrail.events import Event, QueuedMessage
from handrail.messages import Text
from handrail_tui.controller import cards
from handrail_tui.controller.destinations import (
    OpenChanges,
    OpenDecisions,
    OpenHelp,
    OpenModels,
    OpenQueue,
    OpenThemes,
)


def begun() -> list[Event]:
    return Story().start().request(1).says("on it").events


def ended(outcome: str = "completed", **more: Any) -> list[Event]:
    story = Story().start().request(12).reply(Text("more to do"))
    return story.add(ev.RunFinished, outcome=outcome, requests=12, turns=12, **more).events


# Text -------------------------------------------------------------------------------------------------------


async def test_L8_text_steers_a_run_follows_it_up_or_begins_one() -> None:
    stage = Stage()
    stage.controller.submit("go", "prompt")
    await settle()
    stage.controller.submit("left", "steer")
    stage.controller.submit("then", "follow_up")
    assert stage.session.told == [("run", "go"), ("steer", "left"), ("follow_up", "then")]


async def test_L8_what_was_not_delivered_comes_back() -> None:
    stage = Stage()
    queue = ev.QueueChanged(returned=(QueuedMessage("1", "say this"), QueuedMessage("2", "and this")))
    await stage.start(*begun(), queue)
    assert [text for text, _ in stage.display.returned] == ["say this\n\nand this"]


async def test_J4_the_past_gives_nothing_back() -> None:
    stage = Stage()
    stage.controller.fold(ev.QueueChanged(returned=(QueuedMessage("1", "old words"),)))
    assert stage.display.returned == []


async def test_the_composer_knows_what_typing_does() -> None:
    stage = Stage()
    assert stage.controller.composer_mode == "idle"
    await stage.start(*begun())
    assert stage.controller.composer_mode == "running"
    stage.session.emit(ev.HumanRequested(id="h1", kind="captcha", needed="Solve it."))
    assert stage.controller.composer_mode == "waiting"


# Stopping and leaving ---------------------------------------------------------------------------------------


async def test_L9_a_stop_is_answered_at_once_and_asked_for_once() -> None:
    stage = Stage()
    await stage.start(*begun())
    assert stage.controller.enabled("stop")
    stage.controller.perform("stop")
    assert stage.told == [("stop",)] and stage.controller.stopping
    assert not stage.controller.enabled("stop")
    stage.session.emit(ev.RunFinished(outcome="cancelled"))
    await settle()
    assert not stage.controller.stopping


async def test_J7_quitting_suspends_the_run_and_leaves_when_it_has_ended() -> None:
    stage = Stage()
    await stage.start(*begun())
    stage.controller.perform("quit")
    assert stage.told == [("suspend", None)] and stage.display.calls == []
    stage.session.emit(ev.RunInterrupted(session="7f3a"))
    await settle()
    assert stage.display.calls == [("leave", False)]
    assert isinstance(stage.controller.last, ev.RunInterrupted)


async def test_quitting_twice_leaves_at_once() -> None:
    stage = Stage()
    await stage.start(*begun())
    stage.controller.perform("quit")
    stage.controller.perform("quit")
    assert stage.display.calls == [("leave", False)]


async def test_going_back_from_a_run_asks_twice() -> None:
    stage = Stage(returns=True, journal="~/j")
    await stage.start(*begun())
    assert "suspended" in stage.controller.perform("sessions") and stage.told == []
    stage.controller.perform("sessions")
    stage.session.emit(ev.RunInterrupted(session="7f3a"))
    await settle()
    assert stage.display.calls == [("leave", True)]


async def test_a_second_press_counts_only_within_seconds() -> None:
    stage = Stage(returns=True)
    await stage.start(*begun())
    stage.controller.perform("sessions")
    stage.display.later.pop()()
    assert "this run ends" in stage.controller.perform("sessions") and stage.told == []


async def test_a_signal_ends_the_program_even_on_the_way_back() -> None:
    stage = Stage(returns=True)
    await stage.start(*begun())
    stage.controller.perform("sessions")
    stage.controller.perform("sessions")
    stage.controller.suspend_and_leave("SIGTERM")
    assert stage.display.calls == [("leave", False)]


async def test_without_a_list_there_is_no_way_back() -> None:
    stage = Stage()
    assert not stage.controller.enabled("sessions")
    assert "list the sessions" in stage.controller.perform("sessions")


async def test_ctrl_c_copies_then_stops_then_quits() -> None:
    stage = Stage()
    await stage.start(*begun())
    stage.display.selected = True
    stage.controller.perform("interrupt")
    assert stage.told == []
    stage.display.selected = False
    stage.controller.perform("interrupt")
    assert stage.told == [("stop",)]
    stage.controller.perform("interrupt")
    assert stage.told[-1] == ("suspend", None)


async def test_ctrl_c_does_not_throw_unsent_words_away() -> None:
    stage = Stage()
    stage.display.draft = "words"
    stage.controller.perform("interrupt")
    assert stage.display.calls == [] and "not sent" in stage.display.noted
    stage.controller.perform("interrupt")
    assert stage.display.calls == [("leave", False)]


# Slash commands ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "args", "told"),
    [
        ("stop", "", ("stop",)),
        ("bounds", "+5", ("raise", {"max_turns": 5})),
        ("approve", "edits", ("mode", "edits")),
        ("recovery", "off", ("recovery", False)),
        ("recovery", "on", ("recovery", True)),
        ("recovery", "", ("recovery", False)),
        ("compact", "", ("compact",)),
    ],
)
async def test_a_slash_command_reaches_the_session(name: str, args: str, told: tuple[object, ...]) -> None:
    stage = Stage()
    await stage.start(*begun())
    stage.controller.command(name, args)
    assert stage.told == [told]


@pytest.mark.parametrize(
    ("name", "args", "words"),
    [
        ("stop", "", "nothing runs"),
        ("bounds", "ten", "/bounds takes +N"),
        ("bounds", "+0", "/bounds takes +N"),
        ("bounds", "", "allows ten more"),
        ("approve", "", "approval: ask"),
        ("model", "a/b", "cannot be changed"),
        ("export", "", "not stored"),
        ("sessions", "", "list the sessions"),
        ("theme", "ink", "theme ink"),
    ],
)
def test_a_slash_command_says_why_it_did_nothing(name: str, args: str, words: str) -> None:
    stage = Stage()
    stage.controller.command(name, args)
    assert words in stage.display.noted and stage.session.told == []


def test_another_model_is_asked_from_the_next_request_on() -> None:
    made: list[str] = []

    def make(name: str) -> Any:
        if name == "no/such":
            raise ConfigError("no provider is called no\x1b[2J")
        made.append(name)
        return "a provider"

    stage = Stage(make_provider=make)
    stage.controller.command("model", "local/tiny")
    assert stage.session.told == [("provider", "a provider")] and made == ["local/tiny"]
    stage.controller.command("model", "no/such")
    assert stage.display.noted == "no provider is called no"


@pytest.mark.parametrize("start", [("another_model", ""), ("model", "")])
def test_U8_another_model_is_chosen_from_a_list(start: tuple[str, str]) -> None:
    made: list[str] = []
    stage = Stage(make_provider=lambda name: made.append(name) or "a provider")
    stage.controller.perform(*start)
    opened = stage.display.destinations[0]
    assert isinstance(opened, OpenModels) and not made
    assert opened.use("local/tiny") == "local/tiny from the next request on"
    assert made == ["local/tiny"] and stage.session.told == [("provider", "a provider")]


def test_each_screen_over_the_run_is_asked_for() -> None:
    stage = Stage()
    for name in ("changes", "decisions", "queue", "help", "theme"):
        stage.controller.command(name, "")
    kinds = [type(destination) for destination in stage.display.destinations]
    assert kinds == [OpenChanges, OpenDecisions, OpenQueue, OpenHelp, OpenThemes]


async def test_nothing_is_undone_under_a_run() -> None:
    stage = Stage()
    await stage.start(*begun())
    stage.controller.perform("changes")
    opened = stage.display.destinations[0]
    assert isinstance(opened, OpenChanges) and "Stop the run first" in opened.changes.why_not


async def test_the_newest_queued_message_is_taken_back() -> None:
    stage = Stage()
    assert stage.controller.perform("take_back") == "nothing is queued"
    queue = ev.QueueChanged(steering=(QueuedMessage("q1", "x"),), follow_ups=(QueuedMessage("q2", "y"),))
    await stage.start(*begun(), queue)
    stage.controller.perform("take_back")
    assert stage.told == [("withdraw", "q2")] and stage.display.returned[0][0] == "taken back"


# Choices on cards -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        (cards.Approve("a1", "once"), ("approve", "a1", "once", "")),
        (cards.Answer("h1", "answered", "pw", secret=True), ("answer", "h1", "answered", "pw", True)),
        (cards.SkipWait(), ("skip_wait",)),
        (cards.RetryNow(), ("retry_now",)),
        (cards.Stop(), ("stop",)),
    ],
)
async def test_a_choice_reaches_the_session(choice: cards.Choice, told: tuple[object, ...]) -> None:
    stage = Stage()
    await stage.start(*begun())
    stage.controller.choose(choice)
    assert stage.told == [told]


@pytest.mark.parametrize(
    ("kind", "amount", "told"),
    [
        ("max_turns", 10.0, {"max_turns": 10}),
        ("max_attempts", 2.0, {"max_attempts": 2}),
        ("deadline_s", 600.0, {"deadline_s": 600.0}),
        ("max_total_tokens", 5.0, {"max_total_tokens": 5}),
        ("max_cost", 0.5, {"max_cost": 0.5}),
    ],
)
async def test_L3_a_raised_bound_resumes_the_run(
    kind: cards.BoundKind, amount: float, told: dict[str, float]
) -> None:
    stage = Stage()
    await stage.start(*ended("turn-limit", bound="max_turns"))
    stage.controller.choose(cards.RaiseBound(kind, amount))
    await settle()
    assert stage.told == [("raise", told), ("resume",)]


async def test_trying_again_ends_a_pause_or_resumes_a_run_that_failed() -> None:
    stage = Stage()
    await stage.start(*begun(), ev.WaitStarted(seconds=4, until=4, decision="retry", reason="transient"))
    stage.controller.choose(cards.RetryNow())
    stage.session.emit(ev.WaitEnded(how="skipped"), *ended("provider", class_="auth")[-1:])
    await settle()
    stage.controller.choose(cards.RetryNow())
    await settle()
    assert stage.told == [("skip_wait",), ("resume",)]


async def test_finish_at_a_bound_puts_the_card_away_and_the_program_stays() -> None:
    stage = Stage()
    await stage.start(*ended("turn-limit", bound="max_turns"))
    stage.controller.choose(cards.Finish())
    assert stage.display.calls == ["close card"] and stage.told == []


async def test_a_past_run_cannot_be_answered() -> None:
    stage = Stage(read_only=True)
    await stage.start(*begun())
    stage.controller.choose(cards.Approve("a1", "once"))
    assert stage.told == [] and not stage.controller.enabled("stop")


async def test_a_stall_that_the_person_waits_for_has_no_card() -> None:
    stage = Stage()
    await stage.start(*begun())
    stage.session.clock.advance_to(stage.session.clock.now() + 3_600)
    assert [type(trigger) for trigger in stage.controller.triggers()] == [cards.Stall]
    stage.controller.choose(cards.KeepWaiting())
    assert stage.controller.triggers() == []


async def test_what_needs_a_person_is_told_in_words() -> None:
    stage = Stage()
    await stage.start(*begun(), ev.HumanRequested(id="h1", kind="captcha", needed="Solve it."))
    assert stage.controller.needs() == {"h1": "needs you: Solve it."}


# The palette ------------------------------------------------------------------------------------------------


async def test_the_palette_lists_what_can_be_done_now() -> None:
    stage = Stage(make_provider=lambda name: None)
    idle = {entry.title for entry in stage.controller.palette()}
    assert {"Quit", "Model", "Approve edits", "Ten more turns"} <= idle
    assert not {"Stop", "Queue", "Take back", "Sessions", "Approve ask"} & idle
    await stage.start(*begun(), ev.QueueChanged(follow_ups=(QueuedMessage("q1", "x"),)))
    running = {entry.title: entry for entry in stage.controller.palette()}
    assert {"Stop", "Queue", "Take back", "Suspend and quit", "Recovery off"} <= running.keys()
    assert "Recovery on" not in running
    for title in ("Ten more turns", "Approve all", "Recovery off"):
        stage.controller.perform(running[title].action, running[title].args)
    assert stage.told == [("raise", {"max_turns": 10}), ("mode", "all"), ("recovery", False)]
