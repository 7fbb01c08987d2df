"""How the run screen looks. Time, time zone, cursor and animation stand still."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from ports import FakeSession
from stories import Story, batch_done, broken_stream, flaky, second_attempt
from textual.pilot import Pilot

from handrail import events as ev
from handrail.events import FieldError
from handrail.messages import Failure, Text, Usage
from handrail_tui.app import HandrailApp
from handrail_tui.program import UiPrefs


@pytest.fixture(autouse=True)
def pinned(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("NO_COLOR", "TEXTUAL_THEME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("HOME", "/home/ada")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def running() -> Story:
    return second_attempt(batch_done(flaky()))


def needs_you() -> Story:
    return running().add(
        ev.HumanRequested,
        id="h1",
        kind="captcha",
        needed="The shop's admin page shows a picture puzzle. Please solve it and stay logged in.",
        where="http://127.0.0.1:8123/admin/login",
        tried="the API token (403), the cookie of yesterday (expired)",
    )


def waiting() -> Story:
    words = "You have hit your ChatGPT usage limit (plus plan). Try again in ~42 min."
    story = running().reply(Text("half"), stop="error", failure=Failure(words))
    story.add(
        ev.Decided,
        decision="wait",
        reason="usage-limit",
        delay_s=2550.0,
        until=story.at + 2550,
        why="the body says when it ends",
        omits=True,
    )
    until = story.at + 2550
    return story.add(
        ev.WaitStarted, seconds=2550.0, until=until, words=words, source="body", reason="usage-limit"
    )


def retrying() -> Story:
    story = running().reply(Text("x"), stop="error", failure=Failure("closed"))
    return broken_stream(story)


def submitted() -> Story:
    value = {"flaky": True, "cause": "two tasks refresh the cache", "files": ["src/cart.py"]}
    story = batch_done(flaky()).request(4).reply(Text("The value."), seconds=2.0)
    story.batch(("edit", "src/cart.py"), ("submit", "")).tool(0, "edit")
    diff = "--- a/src/cart.py\n+++ b/src/cart.py\n@@ -10 +10,2 @@\n-return a\n+with lock:\n+    return a\n"
    story.result(0, "edit", summary="+2 -1", diff=diff, text="ok", seconds=0.01)
    story.add(ev.Submission, accepted=True, call_id="c4.1", attempt=1, of=3, value=value)
    story.result(1, "submit", executed=False, terminate=True)
    story.add(ev.ToolBatchFinished, votes=1, of=2, seconds=0.02).end_turn(2.4, 22_400, 0.27, 0.5)
    usage = Usage(22_000, 400)
    return story.add(
        ev.RunFinished,
        outcome="submitted",
        value=value,
        requests=4,
        turns=4,
        attempts=1,
        usage=usage,
        cost=0.27,
    )


def trouble() -> Story:
    story = Story().start("Make it pass.", output=None).request(1).says("I run it.").reply(Text("I run it."))
    story.batch(("bash", "make test"), ("nope", ""), ("submit", "{}"))
    story.add(
        ev.Submission,
        accepted=False,
        call_id="c1.2",
        attempt=1,
        of=3,
        errors=(FieldError("a.0", "Not a number"),),
    )
    story.result(0, "bash", is_error=True, text="".join(f"error {n}\n" for n in range(9)), seconds=3.0)
    story.result(1, "nope", is_error=True, executed=False, text="there is no tool 'nope'")
    story.add(ev.ToolBatchFinished, votes=0, of=3, seconds=3.0).end_turn(4.0, 900, 0.01, 0.01)
    story.add(ev.NoProgress, what="call", times=3, name="bash")
    story.add(ev.CompactionStarted, why="the context is full", messages=12, before=190_000)
    story.add(ev.CompactionFinished, ok=True, summary="what was done", before=190_000, after=9_000, kept=4)
    story.add(ev.BudgetSpent, which="resumes", spent=6, limit=6)
    return story.add(ev.Steered, id="1", text="Leave the API unchanged.")


STORIES = {
    "run": running,
    "needs-you": needs_you,
    "waiting": waiting,
    "retrying": retrying,
    "submitted": submitted,
    "trouble": trouble,
    "tools": flaky,
}
Snap = Callable[..., bool]
Step = Callable[[Pilot[Any], FakeSession], Awaitable[None]]


def snap(
    compare: Snap, story: Story, size: tuple[int, int], *keys: str, theme: str = "handrail-dark"
) -> bool:
    session = FakeSession()
    app = HandrailApp(session, lambda: session.run("x"), prefs=UiPrefs(theme))
    app.animation_level = "none"

    async def play(pilot: Pilot[Any]) -> None:
        await pilot.pause()
        app.run_screen.composer.input.cursor_blink = False
        session.play(story.events)
        session.clock.advance_to(story.at)
        await pilot.pause(0.12)
        await pilot.press(*keys)
        await pilot.pause(0.12)

    return compare(app, terminal_size=size, run_before=play)


@pytest.mark.parametrize("name", STORIES)
def test_the_wide_screen(name: str, snap_compare: Snap) -> None:
    assert snap(snap_compare, STORIES[name](), (122, 40))


@pytest.mark.parametrize("name", ["run", "needs-you", "retrying", "submitted"])
def test_80_by_24(name: str, snap_compare: Snap) -> None:
    assert snap(snap_compare, STORIES[name](), (80, 24))


@pytest.mark.parametrize("name", ["run", "waiting"])
def test_40_by_20(name: str, snap_compare: Snap) -> None:
    assert snap(snap_compare, STORIES[name](), (40, 20))


@pytest.mark.parametrize("theme", ["handrail-light", "high-contrast", "ansi"])
def test_other_themes(theme: str, snap_compare: Snap) -> None:
    assert snap(snap_compare, running(), (122, 40), theme=theme)


@pytest.mark.parametrize(("name", "key"), [("decisions", "ctrl+r"), ("thinking", "ctrl+t"), ("help", "f1")])
def test_one_key_away(name: str, key: str, snap_compare: Snap) -> None:
    assert snap(snap_compare, running(), (122, 40), key)


def test_reading_above_the_end(snap_compare: Snap) -> None:
    assert snap(snap_compare, running(), (122, 24), "pageup")


def test_no_color(snap_compare: Snap, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert snap(snap_compare, needs_you(), (122, 40))
