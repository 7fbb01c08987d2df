"""Questions and approvals as numbered choices (rule H5)."""

from __future__ import annotations

import asyncio
import io
from dataclasses import replace
from typing import Any

import pytest

from handrail import events as ev
from handrail_tui.lines.json_lines import Out
from handrail_tui.lines.prompts import Prompter

APPROVAL = ev.ApprovalRequested(id="a1", call_id="c", tool="bash", title="make", pattern="bash: make")
ONLY_ONCE = ev.ApprovalRequested(id="a2", call_id="c", tool="bash", title="rm -r x")
QUESTION = ev.HumanRequested(id="q1", kind="decision", needed="red or blue?")
SECRET = ev.HumanRequested(id="q2", kind="login", needed="the password", secret=True)


class Keys:
    """A person who types `lines`, then hangs up, or waits for ever."""

    def __init__(self, *lines: str, hangs_up: bool = True) -> None:
        self.lines, self.hangs_up = list(lines), hangs_up
        self.secret: list[bool] = []

    async def line(self, *, secret: bool = False) -> str | None:
        self.secret.append(secret)
        if self.lines:
            return self.lines.pop(0)
        if not self.hangs_up:
            await asyncio.get_running_loop().create_future()
        return None


class Answers:
    """A session that remembers what it was told, and says so as events."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []
        self.prompter: Prompter | None = None

    def answer(self, id: str, how: Any, text: str = "", *, secret: bool = False) -> None:
        self.told.append((id, how, text, secret))
        assert self.prompter is not None
        self.prompter(ev.HumanAnswered(id=id, how=how))

    def approve(self, id: str, how: Any, text: str = "") -> None:
        self.told.append((id, how, text))
        assert self.prompter is not None
        self.prompter(ev.ApprovalAnswered(id=id, how=how))


async def asked(keys: Keys, *events: ev.Event) -> tuple[list[tuple[Any, ...]], str]:
    session, stream = Answers(), io.StringIO()
    session.prompter = Prompter(session, Out(stream), keys)
    for event in events:
        session.prompter(event)
    for _ in range(50):
        await asyncio.sleep(0)
    session.prompter.close()
    return session.told, stream.getvalue()


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (("1",), ("a1", "once", "")),
        (("2",), ("a1", "session", "")),
        (("3",), ("a1", "deny", "")),
        (("4 not on main",), ("a1", "deny", "not on main")),
        (("4", "use a branch"), ("a1", "deny", "use a branch")),
        (("", "yes", "9", "0", "1x", "1"), ("a1", "once", "")),
        ((), ("a1", "deny", "")),
    ],
)
async def test_H5_an_approval_is_a_number(typed: tuple[str, ...], told: tuple[str, ...]) -> None:
    answers, shown = await asked(Keys(*typed), APPROVAL)
    assert answers == [told]
    assert "2  always in this session: bash: make" in shown


async def test_H5_what_cannot_be_allowed_for_good_is_not_offered() -> None:
    answers, shown = await asked(Keys("2", "1"), ONLY_ONCE)
    assert answers == [("a2", "once", "")] and "always" not in shown


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (("1",), ("q1", "resolved", "", False)),
        (("1 solved it",), ("q1", "resolved", "solved it", False)),
        (("2", "", "2 blue"), ("q1", "answered", "blue", False)),
        (("3", ""), ("q1", "declined", "", False)),
        (("4",), ("q1", "stopped", "", False)),
        ((), ("q1", "declined", "", False)),
    ],
)
async def test_H3_a_question_is_answered(typed: tuple[str, ...], told: tuple[Any, ...]) -> None:
    answers, _ = await asked(Keys(*typed), QUESTION)
    assert answers == [told]


async def test_H3_a_secret_is_typed_unseen_and_marked() -> None:
    keys = Keys("2", "hunter2")
    answers, shown = await asked(keys, SECRET)
    assert answers == [("q2", "answered", "hunter2", True)]
    assert keys.secret == [False, True] and "hunter2" not in shown


async def test_one_thing_is_asked_at_a_time_in_order() -> None:
    answers, _ = await asked(Keys("1", "3", "1"), APPROVAL, ONLY_ONCE, QUESTION)
    assert [a[:2] for a in answers] == [("a1", "once"), ("a2", "deny"), ("q1", "resolved")]


async def test_what_was_answered_elsewhere_is_not_asked_any_more() -> None:
    keys = Keys(hangs_up=False)
    session, stream = Answers(), io.StringIO()
    prompter = session.prompter = Prompter(session, Out(stream), keys)
    prompter(APPROVAL)
    await asyncio.sleep(0)
    prompter(ev.ApprovalAnswered(id="a1", how="stopped"))
    keys.lines.append("1")
    prompter(QUESTION)
    for _ in range(10):
        await asyncio.sleep(0)
    assert session.told == [("q1", "resolved", "", False)]
    prompter.close()


async def test_H5_the_choice_names_a_call_that_the_pattern_covers_and_one_that_it_does_not() -> None:
    asks = replace(
        APPROVAL, pattern="bash: git diff *", covers="git diff x", asks_again="git diff --output=x"
    )
    _, shown = await asked(Keys("1"), asks)
    assert "bash: git diff * (for example git diff x, not git diff --output=x)" in shown
