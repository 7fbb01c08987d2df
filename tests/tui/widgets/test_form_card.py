"""A question with typed fields on its card: filled in one after the other, declined, put away (rule H3)."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from stage import CardApp
from textual.widgets import Input, Static

from handrail.clock import EPOCH
from handrail.events import FormField, HumanRequested
from handrail_tui.controller.cards import Answer
from handrail_tui.widgets._composer_input import ComposerInput

FIELDS = (
    FormField("name", label="Your name", required=True, help="as in your \x1b[31mpassport"),
    FormField("age", "integer", minimum=0),
    FormField("sure", "boolean", default=False),
    FormField("hero", "choice", options=(("h1", "Superman"), ("h2", "Lantern"))),
)
FORM = HumanRequested(
    id="f1", kind="information", needed="nasty asks: Who?", tool="mcp__nasty__ask", fields=FIELDS, at=EPOCH
)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(ComposerInput, "LONE_KEY_S", 0.01)
    yield


def texts(app: CardApp) -> str:
    return "\n".join(str(widget.render()) for widget in app.card.query(Static))


async def test_H3_fields_are_filled_in_one_after_the_other() -> None:
    app = CardApp([FORM])
    async with app.run_test(size=(100, 40)) as pilot:
        app.rest()
        app.card.focus()
        await pilot.press("enter")
        await pilot.pause()
        assert app.card.query_one(Input).placeholder == "Your name: text"
        await pilot.press(*"Ada", "enter")
        await pilot.pause()
        await pilot.press(*"old", "enter")
        await pilot.pause()
        assert "'old' does not fit: a whole number, at least 0" in texts(app)
        assert app.got == []
        app.card.query_one(Input).value = "36"
        await pilot.press("enter")
        await pilot.pause()
        assert app.card.query_one(Input).placeholder == "sure: yes or no, or just enter for no"
        await pilot.press("enter")
        await pilot.pause()
        await pilot.press(*"2", "enter")
        await pilot.pause()
        [answer] = app.got
        assert isinstance(answer, Answer) and (answer.id, answer.how) == ("f1", "answered")
        assert json.loads(answer.text) == {"name": "Ada", "age": 36, "sure": False, "hero": "h2"}


@pytest.mark.parametrize(
    ("keys", "how"), [(("c", "enter"), "declined"), (("p",), "cancelled"), (("x",), "stopped")]
)
async def test_H3_a_form_is_declined_put_away_or_stops_the_run(keys: tuple[str, ...], how: str) -> None:
    app = CardApp([FORM])
    async with app.run_test(size=(100, 40)) as pilot:
        app.rest()
        app.card.focus()
        for key in keys:
            await pilot.press(key)
            await pilot.pause()
        assert app.got == [Answer("f1", how)]  # type: ignore[arg-type]


async def test_L11_the_fields_are_shown_and_cleaned() -> None:
    app = CardApp([FORM])
    async with app.run_test(size=(100, 40)) as pilot:
        await pilot.pause()
        shown = texts(app)
        for words in (
            "Your name",
            "text",
            "age (optional)",
            "a whole number, at least 0",
            "one of h1 (Superman)",
        ):
            assert words in shown
        assert "\x1b" not in shown
