"""Cards: what they say, which comes first, what they post, and when they take a key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from stage import CardApp
from textual import events
from textual.pilot import Pilot
from textual.widgets import Input

from handrail.clock import EPOCH
from handrail.events import ApprovalRequested, HumanRequested, RunFinished, WaitStarted
from handrail.policy import Bounds
from handrail_tui.controller.cards import (
    AnotherModel,
    Answer,
    Approve,
    CardContext,
    CardTrigger,
    EditKey,
    Finish,
    KeepWaiting,
    RaiseBound,
    RetryNow,
    SkipWait,
    Stall,
    Stop,
)
from handrail_tui.widgets._composer_input import ComposerInput
from handrail_tui.widgets.cards._human import link
from handrail_tui.widgets.cards.base import Card
from handrail_tui.widgets.cards.guard import InputGuard

HUMAN = HumanRequested(
    id="h1",
    kind="captcha",
    needed="Solve it.",
    where="https://shop.example/login",
    tried="the token",
    at=EPOCH,
)
SECRET = HumanRequested(id="h2", kind="login", needed="The password.", secret=True, tool="vault", at=EPOCH)
BASH = ApprovalRequested(
    id="a1",
    call_id="c1",
    tool="bash",
    title="pytest -q",
    why="it runs something",
    pattern="pytest …",
    at=EPOCH,
)
LIMIT = WaitStarted(seconds=2550, until=EPOCH + 2550, reason="usage-limit", words="try later", at=EPOCH)
RETRY = WaitStarted(
    seconds=4,
    until=EPOCH + 4,
    decision="retry",
    reason="transient",
    words="it broke",
    number=2,
    limit=3,
    at=EPOCH,
)
BOUND = RunFinished(outcome="turn-limit", bound="max_turns", at=EPOCH)
AUTH = RunFinished(
    outcome="provider", class_="auth", error="401 bad key", advice="Set another key.", at=EPOCH
)
VALUE = RunFinished(outcome="submitted", value={"answer": 42}, requests=3, at=EPOCH)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(ComposerInput, "LONE_KEY_S", 0.01)
    yield


async def ready(app: CardApp, pilot: Pilot[None]) -> None:
    """The card is there, and the hands have been still."""
    await pilot.pause()
    app.rest()


async def press(pilot: Pilot[None], *keys: str) -> None:
    await pilot.press(*keys)
    await pilot.pause(0.03)


def text_of(card: Card) -> str:
    """All words of a card, as they are drawn."""
    card.repaint()
    return "\n".join(str(widget.render()) for widget in card.query("Static, Countdown"))


# Which card ------------------------------------------------------------------------------------------------


async def test_a_card_stays_while_its_trigger_is_the_most_urgent() -> None:
    app = CardApp([LIMIT])
    async with app.run_test() as pilot:
        await ready(app, pilot)
        first = app.card
        app.host.show([LIMIT, VALUE])
        assert app.card is first and "1 more after this" in text_of(first)
        app.host.show([LIMIT, BASH])
        await pilot.pause()
        assert app.card is not first and len(app.query(Card)) == 1
        app.host.show([])
        await pilot.pause()
        assert not app.query(Card) and not app.host.display


# What they post --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trigger", "key", "choice"),
    [
        (BASH, "enter", Approve("a1", "once")),
        (BASH, "y", Approve("a1", "once")),
        (BASH, "n", Approve("a1", "deny")),
        (HUMAN, "x", Answer("h1", "stopped")),
        (LIMIT, "s", SkipWait()),
        (LIMIT, "m", AnotherModel()),
        (LIMIT, "x", Stop()),
        (RETRY, "s", RetryNow()),
        (RETRY, "x", Stop()),
        (Stall(EPOCH - 50), "enter", KeepWaiting()),
        (Stall(EPOCH - 50), "r", RetryNow()),
        (Stall(EPOCH - 50), "x", Stop()),
        (BOUND, "m", RaiseBound("max_turns", 10)),
        (BOUND, "f", Finish()),
        (AUTH, "r", RetryNow()),
        (AUTH, "m", AnotherModel()),
        (AUTH, "k", EditKey()),
        (AUTH, "x", Finish()),
    ],
)
@pytest.mark.parametrize("focused", [False, True])
async def test_each_key_posts_its_choice(trigger: CardTrigger, key: str, choice: Any, focused: bool) -> None:
    app = CardApp([trigger])
    async with app.run_test() as pilot:
        await ready(app, pilot)
        if focused:
            await pilot.press("tab")
        await press(pilot, key)
        assert app.got == [choice]
        assert app.composer.text == ""


@pytest.mark.parametrize("trigger", [BOUND, AUTH, LIMIT, HUMAN])
async def test_enter_alone_spends_nothing(trigger: CardTrigger) -> None:
    app = CardApp([trigger])
    async with app.run_test() as pilot:
        await ready(app, pilot)
        await press(pilot, "enter")
        assert app.got == []


async def test_H5_always_shows_the_pattern_first_and_a_held_key_does_not_take_it() -> None:
    app = CardApp([BASH])
    async with app.run_test() as pilot:
        await ready(app, pilot)
        assert "pytest …" not in text_of(app.card)
        await press(pilot, "tab", "s")
        assert app.got == [] and "always this session: pytest …" in text_of(app.card)
        app.rest(0.4)
        await press(pilot, "s")
        assert app.got == [], "the first press, held down"
        app.rest(0.1)
        await press(pilot, "s")
        assert app.got == [Approve("a1", "session", pattern="pytest …")]


async def test_H5_without_a_pattern_there_is_no_always() -> None:
    app = CardApp([ApprovalRequested(id="a1", call_id="c1", tool="bash", title="x", at=EPOCH)])
    async with app.run_test() as pilot:
        await ready(app, pilot)
        await press(pilot, "tab", "s")
        assert "always" not in text_of(app.card) and app.got == []


async def test_H5_deny_with_a_word() -> None:
    app = CardApp([BASH])
    async with app.run_test() as pilot:
        await ready(app, pilot)
        await press(pilot, "tab", "d")
        await press(pilot, "n", "o", "escape")
        assert app.got == [] and app.focused is app.card, "esc takes the line away and nothing else"
        await press(pilot, "d")
        await press(pilot, "t", "r", "y", "enter")
        assert app.got == [Approve("a1", "deny", text="try")]
        app.host.show([HUMAN])
        await pilot.pause()
        assert app.composer.text == "", "what was handed in is not unsent"


@pytest.mark.parametrize(
    ("key", "how", "typed"),
    [
        ("enter", "resolved", ""),
        ("enter", "resolved", "ok"),
        ("a", "answered", "42"),
        ("c", "declined", "no"),
    ],
)
async def test_H3_a_person_answers(key: str, how: Any, typed: str) -> None:
    app = CardApp([HUMAN])
    async with app.run_test() as pilot:
        await ready(app, pilot)
        await press(pilot, key)
        await press(pilot, *typed, "enter")
        assert app.got == [Answer("h1", how, typed)]


async def test_H3_an_empty_answer_is_none() -> None:
    app = CardApp([HUMAN])
    async with app.run_test() as pilot:
        await ready(app, pilot)
        await press(pilot, "a")
        await press(pilot, "space", "enter")
        assert app.got == []


async def test_H3_a_secret_is_hidden_whole_and_in_no_repr() -> None:
    app = CardApp([SECRET])
    async with app.run_test() as pilot:
        await ready(app, pilot)
        assert "asked by vault" in text_of(app.card)
        await press(pilot, "a")
        await press(pilot, "space", "p", "w")
        field = app.card.query_one(Input)
        assert field.password and "pw" not in str(app.export_screenshot())
        await press(pilot, "enter")
        answer = app.got[0]
        assert answer == Answer("h2", "answered", " pw", secret=True)
        assert "pw" not in repr(answer)


async def test_H3_any_answer_can_be_made_a_secret() -> None:
    app = CardApp([HUMAN])
    async with app.run_test() as pilot:
        await ready(app, pilot)
        await press(pilot, "a")
        await press(pilot, "p", "ctrl+s", "w", "enter")
        assert app.got == [Answer("h1", "answered", "pw", secret=True)]


async def test_a_paste_of_several_lines_into_an_answer_is_whole() -> None:
    app = CardApp([HUMAN])
    async with app.run_test() as pilot:
        await ready(app, pilot)
        await press(pilot, "a")
        app.card.query_one(Input).post_message(events.Paste("one\ntwo\x1b[2J"))
        await press(pilot, "enter")
        assert app.got == [Answer("h1", "answered", "one two")]


async def test_a_half_typed_answer_survives_whatever_happens() -> None:
    app = CardApp([BASH])
    async with app.run_test() as pilot:
        await ready(app, pilot)
        await press(pilot, "d")
        await press(pilot, "n")
        app.host.show([BASH, HUMAN])
        await press(pilot, "o")
        assert app.card.query_one(Input).value == "no", "more urgent, and still it waits"
        app.host.show([HUMAN])
        await pilot.pause()
        assert app.composer.text == "no", "answered elsewhere: the words are not lost"
        assert app.focused is app.card


async def test_a_half_typed_secret_is_dropped_with_its_question() -> None:
    app = CardApp([SECRET])
    async with app.run_test() as pilot:
        await ready(app, pilot)
        await press(pilot, "a")
        await press(pilot, "p", "w")
        app.host.show([])
        await pilot.pause()
        assert app.composer.text == "" and app.focused is app.composer.input


@pytest.mark.parametrize(
    ("bound", "typed", "amount"),
    [
        ("max_turns", "25", 25.0),
        ("deadline_s", "+5", 300.0),
        ("max_cost", "0.5", 0.5),
        ("max_turns", "1.5", None),
    ],
)
async def test_L3_a_bound_is_raised_by_any_amount(bound: str, typed: str, amount: float | None) -> None:
    app = CardApp([RunFinished(outcome="budget", bound=bound, at=EPOCH)])
    async with app.run_test() as pilot:
        await ready(app, pilot)
        await press(pilot, "tab", "plus")
        app.card.query_one(Input).value = typed
        await press(pilot, "enter")
        assert [choice.amount for choice in app.got if isinstance(choice, RaiseBound)] == (
            [amount] if amount else []
        )
        assert bool(app.told) is (amount is None)


async def test_the_link_opens_and_only_a_link() -> None:
    app = CardApp([HUMAN])
    async with app.run_test() as pilot:
        await ready(app, pilot)
        await press(pilot, "o")
        await pilot.click(".card--where")
        assert app.opened == ["https://shop.example/login"] * 2


@pytest.mark.parametrize(
    ("where", "opens"),
    [
        ("https://a.example/x?y=1", True),
        ("http://127.0.0.1:8123/admin", True),
        ("mailto:a@b.example", True),
        ("javascript:alert(1)", False),
        ("file:///etc/passwd", False),
        ("/home/me/shop", False),
        ("https://", False),
        ("https://a.example/\x1b]0;x", False),
        ("https://a.example/ --flag", False),
        ("https://аррle.example/", False),
        ("http://[", False),
    ],
)
def test_only_plain_web_and_mail_addresses_are_links(where: str, opens: bool) -> None:
    assert (link(where) is not None) is opens


async def test_the_finished_card_copies_closes_and_stays_closed() -> None:
    app = CardApp([VALUE])
    async with app.run_test() as pilot:
        await ready(app, pilot)
        await press(pilot, "c")
        assert app.clipboard == '{\n  "answer": 42\n}'
        await press(pilot, "x")
        assert app.got == [] and not app.query(Card)
        app.host.show([VALUE])
        await pilot.pause()
        assert not app.query(Card)


# The guard -------------------------------------------------------------------------------------------------


def test_the_guard_holds_half_a_second_after_appearing_and_a_second_after_typing() -> None:
    now = 10.0
    guard = InputGuard(lambda: now)
    assert not guard.allows(appeared_at=9.51)
    assert guard.allows(appeared_at=9.5)
    guard.typed()
    now = 10.99
    assert not guard.allows(appeared_at=0.0)
    now = 11.0
    assert guard.allows(appeared_at=0.0)


@pytest.mark.parametrize("focused", [False, True])
async def test_no_card_takes_a_key_within_half_a_second_of_appearing(focused: bool) -> None:
    app = CardApp([LIMIT])
    async with app.run_test() as pilot:
        await ready(app, pilot)
        if focused:
            await pilot.press("tab")
        app.host.show([BASH])
        await pilot.pause()
        if focused:
            app.card.focus()
        app.rest(0.4)
        await press(pilot, "enter")
        assert app.got == []
        app.rest(0.1)
        await press(pilot, "enter")
        assert app.got == [Approve("a1", "once")]


async def test_settings_remap_the_keys_of_a_card() -> None:
    app = CardApp([BASH])
    app.set_keymap({"approve.once": "ctrl+y", "approve.deny": "q"})
    async with app.run_test() as pilot:
        await ready(app, pilot)
        await press(pilot, "enter", "q")
        assert app.got == [Approve("a1", "deny")]
        assert "q deny" in text_of(app.card) and "ctrl+y once" in text_of(app.card)


# Time ------------------------------------------------------------------------------------------------------


async def test_U8_a_wait_tells_when_it_ends_and_how_long_that_is() -> None:
    app = CardApp([LIMIT])
    async with app.run_test() as pilot:
        await ready(app, pilot)
        assert "asks again at 12:42:30" in text_of(app.card) and "in 0:42:30" in text_of(app.card)
        app.clock.advance(1_000.5)
        assert "in 0:25:50" in text_of(app.card)
        app.clock.advance(10_000)
        assert "in 0:00:00" in text_of(app.card)


async def test_a_retry_counts_attempts_and_says_what_was_kept() -> None:
    app = CardApp([RETRY], context=CardContext(kept="812 characters kept as context"))
    async with app.run_test(size=(110, 34)) as pilot:
        await ready(app, pilot)
        text = text_of(app.card)
        assert "it broke, 812 characters kept as context" in text
        assert "attempt 3 of 4 in 0:04" in text
        app.host.show(
            [WaitStarted(seconds=5, until=EPOCH + 5, decision="resume", number=1, limit=6, at=EPOCH)]
        )
        await pilot.pause()
        assert "resume 1 of 6 in 0:05" in text_of(app.card)


async def test_what_a_bound_and_a_failure_tell() -> None:
    context = CardContext(limits=Bounds(max_turns=12))
    app = CardApp([BOUND], context=context)
    async with app.run_test(size=(110, 34)) as pilot:
        await ready(app, pilot)
        assert "12 turns are used up" in text_of(app.card)
        app.host.show([AUTH], context)
        await pilot.pause()
        text = text_of(app.card)
        assert "the provider refused the key" in text and "401 bad key" in text and "Set another key." in text
