"""Nothing foreign on a card is markup, and nothing in it reaches the terminal as a command (rule L11)."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stage import CardApp

from handrail.clock import EPOCH
from handrail.events import ApprovalRequested, HumanRequested, RunFinished, WaitStarted
from handrail_tui.controller.cards import CardContext, CardTrigger
from handrail_tui.widgets.cards import diff as diffs
from handrail_tui.widgets.cards.base import Card

pytestmark = pytest.mark.attack

NASTY = [
    "[/",
    "[/foo]",
    "[bold",
    "[@click=app.quit]x[/]",
    "[$x]",
    "\\[/]",
    "\x1b]0;owned\x07",
    "\x1b]52;c;aGk=\x07",
    "\x1b[2J",
    "\x9b2J\x9d0;x\x9c",
    "\x00\x07\x08",
    "\ud800",
    "a\u202eb",
    "̀" * 40,
    "w" * 5_000,
    "👩‍👩‍👧‍👦 語",
    "one\n[/two]\nthree",
]
TRIGGERS: list[CardTrigger] = [
    HumanRequested(id="h", kind="captcha", needed="n", where="w", tried="t", tool="x", at=EPOCH),
    ApprovalRequested(
        id="a",
        call_id="c",
        tool="t",
        title="t",
        detail="d",
        diff="x",
        why="w",
        pattern="p",
        arguments={"k": "v"},
        at=EPOCH,
    ),
    ApprovalRequested(
        id="a",
        call_id="c",
        tool="t",
        title="t",
        detail="d",
        why="w",
        pattern="p",
        arguments={"k": "v"},
        at=EPOCH,
    ),
    WaitStarted(seconds=60, until=EPOCH + 60, words="w", source="s", at=EPOCH),
    WaitStarted(seconds=6, until=EPOCH + 6, decision="retry", reason="r", words="w", at=EPOCH),
    RunFinished(outcome="turn-limit", bound="max_turns", error="e", at=EPOCH),
    RunFinished(outcome="provider", class_="c", error="e", until=EPOCH + 9e4, at=EPOCH),
    RunFinished(outcome="submitted", value={"k": ["v"]}, at=EPOCH),
    RunFinished(outcome="completed", text="t", at=EPOCH),
]
_KEPT = ("id", "call_id", "type", "kind", "decision", "outcome", "bound")


def poisoned(trigger: CardTrigger, text: str) -> CardTrigger:
    """`trigger` with `text` in every field that someone else writes."""
    changes: dict[str, Any] = {}
    for field in fields(trigger):  # type: ignore[arg-type]
        value = getattr(trigger, field.name)
        if field.name in _KEPT or value is None:
            continue
        if isinstance(value, str):
            changes[field.name] = text
        elif isinstance(value, dict):
            changes[field.name] = {text: [text, {text: text}], "n": text}
    return replace(trigger, **changes)  # type: ignore[type-var]


def drawn(app: CardApp) -> str:
    """Every character that would be sent to the terminal for the screen as it is."""
    return "".join(
        segment.text for strip in app.screen._compositor.render_strips() for segment in strip if segment.text
    )


def assert_clean(text: str) -> None:
    bad = {
        c for c in text if (ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or 0xD800 <= ord(c) < 0xE000) and c != "\n"
    }
    assert not bad


@pytest.mark.parametrize("trigger", TRIGGERS, ids=lambda s: f"{type(s).__name__}")
async def test_L11_foreign_text_on_every_card_is_only_text(trigger: CardTrigger) -> None:
    app = CardApp()
    async with app.run_test(size=(110, 40)) as pilot:
        for text in NASTY:
            context = CardContext(kept=text, journal=text, resume=text)
            app.host.show([poisoned(trigger, text)], context)
            await pilot.pause()
            assert app.query(Card)
            assert_clean(drawn(app))
        app.rest()
        await pilot.press("tab", "s")
        await pilot.pause()
        assert app.query(Card)
        assert_clean(drawn(app))


async def test_markup_shows_as_it_was_written() -> None:
    app = CardApp([HumanRequested(id="h", kind="other", needed="press [/] or [b]x[/b]", at=EPOCH)])
    async with app.run_test(size=(110, 34)) as pilot:
        await pilot.pause()
        assert "press [/] or [b]x[/b]" in drawn(app)


async def test_what_a_person_is_asked_to_allow_hides_nothing() -> None:
    command = "ls\x1b[2K\x1b[1Grm -rf /"
    app = CardApp([ApprovalRequested(id="a", call_id="c", tool="bash", title=command, at=EPOCH)])
    async with app.run_test(size=(110, 34)) as pilot:
        await pilot.pause()
        assert "ls␛[2K␛[1Grm -rf /" in drawn(app)


@pytest.mark.parametrize("words", [10, 500, 5_000])
async def test_H5_a_long_command_can_be_read_to_its_end(words: int) -> None:
    command = "x " * words + "END"
    app = CardApp([ApprovalRequested(id="a", call_id="c", tool="bash", title=command, at=EPOCH)])
    async with app.run_test(size=(110, 34)) as pilot:
        await pilot.pause()
        await pilot.press("tab", "end")
        await pilot.pause()
        assert "END" in drawn(app)


async def test_H5_what_is_too_long_to_show_says_so() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -0,0 +1,3000 @@\n" + "+line\n" * 3_000
    arguments = {"command": "x" * 50_000}
    app = CardApp(
        [ApprovalRequested(id="a", call_id="c", tool="t", title="x", arguments=arguments, at=EPOCH)]
    )
    async with app.run_test(size=(110, 34)) as pilot:
        await pilot.pause()
        await pilot.press("tab", "end")
        await pilot.pause()
        assert "10k more characters are not shown" in drawn(app)
    assert "2k more lines of this diff are not shown" in diffs.render(diff).plain


@given(
    st.lists(
        st.sampled_from(
            ["+a", "-b", " c", "@@ -1,2 +3 @@", "--- a", "+++ b", "\\ No", "", "[/x]", "--", "++"]
        )
    )
)
def test_a_broken_diff_is_drawn_whole(lines: list[str]) -> None:
    text = "\n".join(lines)
    content = diffs.render(text)
    added, removed = diffs.counts(text)
    assert added <= sum(line.startswith("+") for line in lines)
    assert removed <= sum(line.startswith("-") for line in lines)
    assert_clean(content.plain)


def test_a_removed_line_of_dashes_is_no_file_name() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- old\n+++ new\n same\n"
    assert diffs.counts(diff) == (1, 1)
    assert diffs.render(diff).plain == "  x\n1 - -- old\n1 + ++ new\n2   same".replace("  x", "x", 1)


@pytest.mark.parametrize("value", [None, 7, "text", [], {}, list(range(1_000)), {"a": {"b": {"c": [1]}}}])
async def test_any_value_is_a_tree(value: Any) -> None:
    app = CardApp([RunFinished(outcome="submitted", value=value, at=EPOCH)])
    async with app.run_test(size=(110, 34)) as pilot:
        await pilot.pause()
        shown = drawn(app)
        if isinstance(value, list) and len(value) > 200:
            assert len(app.card.query_one("ValueTree").root.children) == 201  # type: ignore[attr-defined]
        elif not isinstance(value, list | dict):
            assert json.dumps(value).strip('"') in shown
