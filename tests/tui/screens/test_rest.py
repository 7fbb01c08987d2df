"""A screen on which nothing happens is not drawn. Paints are counted; no time is measured."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from ports import FakeSession
from stories import Story
from textual.widget import Widget

from handrail import events as ev
from handrail.messages import Failure, Text, Thinking
from handrail_tui.app import HandrailApp


def thought() -> Story:
    """A streamed thought that folds, then a short answer."""
    story = Story().start().request(1).says("One. Two.\n" * 200, kind="thinking").says("Hello.")
    return story.reply(Thinking("One."), Text("Hello."), stop="stop").end_turn(1.0, 900, 0.01, 0.1)


def broken() -> Story:
    """A reply that breaks and is made again: its rows change their style while they are made."""
    story = Story().start().request(1).says("Half an answer. " * 300)
    failure = Failure("peer closed connection", "demo", "stream")
    story.reply(Text("Half an answer."), stop="error", failure=failure)
    decided = {"decision": "retry", "reason": "transient", "class_": "transient", "delay_s": 2.0}
    story.add(ev.Decided, why="it broke", until=story.at + 2, omits=True, **decided)
    story.pause(2.0).request(2, attempt=2).says("A whole answer.")
    return story.reply(Text("A whole answer."), stop="stop").end_turn(1.0, 900, 0.01, 0.1)


def done(story: Story) -> Story:
    return story.add(ev.RunFinished, outcome="completed", text="Hello.", requests=2, turns=2)


def asking(story: Story) -> Story:
    return story.add(ev.HumanRequested, id="h1", kind="captcha", needed="Solve it.")


@pytest.mark.parametrize("begin", [thought, broken])
@pytest.mark.parametrize(("end", "moves"), [(done, False), (asking, True)])
async def test_nothing_is_drawn_when_nothing_has_changed(
    begin: Callable[[], Story], end: Callable[[Story], Story], moves: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = FakeSession()
    app = HandrailApp(session, lambda: session.run("a task"))
    async with app.run_test(size=(122, 40)) as pilot:
        session.play(end(begin()).events)
        screen = app.run_screen
        for _ in range(50):  # long blocks are made in slices
            await pilot.pause()
            screen.paint()
        drawn: list[str] = []
        refresh = Widget.refresh

        def counted(widget: Widget, *regions: object, **how: object) -> Widget:
            drawn.append(type(widget).__name__)
            return refresh(widget, *regions, **how)  # type: ignore[arg-type]

        monkeypatch.setattr(Widget, "refresh", counted)
        for _ in range(20):
            screen.tick()
            for card in screen.query("Card"):
                card.repaint()  # type: ignore[attr-defined]
        assert drawn == [] and not screen.transcript._waiting
        if moves:  # the second hand of the card goes on
            session.clock.advance(1.0)
            for card in screen.query("Card"):
                card.repaint()  # type: ignore[attr-defined]
            assert drawn
