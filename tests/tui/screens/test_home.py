"""Home: what is kept, what enter does, what asks first."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from kept import HOSTILE, Kept, home, one_of_each, summary
from ports import FakeSession
from stories import batch_done, flaky
from textual.pilot import Pilot
from textual.screen import Screen

from handrail.clock import EPOCH, ManualClock
from handrail.errors import ConfigError
from handrail.session.store import Store
from handrail_tui import navigation
from handrail_tui.controller.destinations import OpenRun, OpenStored, OpenToRead, SessionDestination
from handrail_tui.navigation import OpenScreen
from handrail_tui.program import Program
from handrail_tui.screens.demos import DemosScreen
from handrail_tui.screens.home import HomeScreen
from handrail_tui.screens.replay import ReplayScreen
from handrail_tui.screens.run import RunScreen

OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f‪-‮]")

READ = "Running in another terminal; shown as far as it is. To control it: handrail stop 1kq0eeeeeee"


def text_of(app: Program) -> str:
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


async def listed(pilot: Pilot[Any]) -> None:
    """Wait until the list is there."""
    for _ in range(100):
        await pilot.pause(0.01)
        screen = pilot.app.screen
        if isinstance(screen, HomeScreen) and screen._ready:
            break
    await pilot.pause()


async def shown(pilot: Pilot[Any], kind: type[Screen[Any]]) -> None:
    """Wait until a screen of this kind is in front."""
    for _ in range(100):
        await pilot.pause(0.01)
        if isinstance(pilot.app.screen, kind):
            break
    await pilot.pause()


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What home asks to open, and `closed` when it was left; each opens a run that does nothing."""
    asked: list[Any] = []

    def open_session(destination: SessionDestination) -> OpenScreen:
        asked.append(destination)
        return OpenScreen(lambda: RunScreen(FakeSession(), returns=True), lambda: asked.append("closed"))

    monkeypatch.setattr(navigation, "open_session", open_session)
    return asked


async def test_those_that_need_you_come_first_and_say_what_they_ask() -> None:
    app = Program(home())
    async with app.run_test(size=(120, 40)) as pilot:
        await listed(pilot)
        text = text_of(app)
        titles = [s.title for s in app.screen.query_one("SessionList").shown]  # type: ignore[attr-defined]
    assert titles[0].startswith("Download") and titles[1] == "Port the importer"
    assert "asks: The shop's admin page shows a picture puzzle." in text
    for words in (
        "needs you",
        "waiting until",
        "running elsewhere",
        "interrupted",
        "done",
        "turn limit",
        "$0.21",
    ):
        assert words in text


async def test_U7_nothing_is_gone_on_with_by_itself(opened: list[Any]) -> None:
    app = Program(home())
    async with app.run_test(size=(120, 40)) as pilot:
        await listed(pilot)
        await pilot.pause(0.3)
        assert opened == []
        await pilot.press("enter")
        await pilot.pause()
        assert opened == [OpenStored("1kq0ddddddd")]
        assert isinstance(app.screen, RunScreen)
        await pilot.press("ctrl+o")
        await pilot.pause()
        assert isinstance(app.screen, HomeScreen)
        assert opened[-1] == "closed"


@pytest.mark.parametrize(
    ("downs", "door"),
    [
        (2, OpenToRead("1kq0eeeeeee", READ)),
        (4, OpenStored("1kq0aaaaaaa", or_read=True)),
        (5, OpenStored("1kq0fffffff")),
    ],
)
async def test_enter_does_what_the_state_allows(
    downs: int, door: SessionDestination, opened: list[Any]
) -> None:
    app = Program(home())
    async with app.run_test(size=(120, 40)) as pilot:
        await listed(pilot)
        await pilot.press(*["down"] * downs, "enter")
        await pilot.pause()
    assert opened[0] == door


async def test_the_filter_narrows_as_one_types_and_enter_opens(opened: list[Any]) -> None:
    app = Program(home())
    async with app.run_test(size=(120, 40)) as pilot:
        await listed(pilot)
        screen = app.screen
        assert isinstance(screen, HomeScreen)
        await pilot.press("slash", *"invoice")
        assert [s.id for s in screen.sessions.shown] == ["1kq0ddddddd", "1kq0fffffff"]
        await pilot.press("space", *"limit", "enter")
        await pilot.pause()
        assert opened == [OpenStored("1kq0fffffff")]
        await pilot.press("ctrl+o", "escape")
        assert len(screen.sessions.shown) == len(one_of_each())


async def test_a_new_run_begins_where_home_was_opened(opened: list[Any]) -> None:
    app = Program(home())
    async with app.run_test(size=(120, 40)) as pilot:
        await listed(pilot)
        await pilot.press("n", *"/model local/tiny", "enter")
        await pilot.press(*"nod", "enter")
        await pilot.pause()
        assert opened == [OpenRun("nod", Path("/home/ada/code/shop"), "local/tiny")]


async def test_what_cannot_be_begun_comes_back_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*what: Any) -> OpenScreen:
        raise ConfigError("no model is set up yet [/]")

    monkeypatch.setattr(navigation, "open_session", refuse)
    app = Program(home(model=None))
    async with app.run_test(size=(120, 40)) as pilot:
        await listed(pilot)
        await pilot.press("n", *"go", "enter")
        await pilot.pause(0.1)
        screen = app.screen
        assert isinstance(screen, HomeScreen)
        assert screen.composer.text == "go"
        assert "no model is set up yet [/]" in text_of(app)


async def test_what_was_typed_in_a_run_and_not_sent_is_not_lost(opened: list[Any]) -> None:
    app = Program(home())
    async with app.run_test(size=(120, 40)) as pilot:
        await listed(pilot)
        await pilot.press("enter")
        await shown(pilot, RunScreen)
        await pilot.press(*"keep", "ctrl+o")
        await pilot.pause()
        screen = app.screen
        assert isinstance(screen, HomeScreen)
        assert screen.composer.text == "keep"


async def test_back_from_the_first_run_the_list_has_the_keyboard(opened: list[Any]) -> None:
    kept = Kept([])
    app = Program(HomeScreen(kept, Path("/tmp"), ManualClock(EPOCH)))
    async with app.run_test(size=(120, 40)) as pilot:
        await listed(pilot)
        await pilot.press(*"go", "enter")
        await pilot.pause()
        kept.summaries = one_of_each()
        await pilot.press("ctrl+o")
        for _ in range(50):
            await pilot.pause(0.01)
            if app.focused is not None and app.focused.id is None:
                break
        await pilot.press("enter")
        await pilot.pause()
    assert opened[:2] == [OpenRun("go", Path("/tmp")), "closed"]
    assert isinstance(opened[2], OpenStored)


async def test_an_empty_home_says_how_to_begin() -> None:
    app = Program(home([], model=None))
    async with app.run_test(size=(100, 30)) as pilot:
        await listed(pilot)
        text = text_of(app)
        assert "Describe a task" in text and "ANTHROPIC_API_KEY" in text
        await pilot.press("d")
        await pilot.pause(0.4)
        assert isinstance(app.screen, DemosScreen)
        await pilot.press("escape")
        assert isinstance(app.screen, HomeScreen)


@pytest.mark.parametrize("size", [(120, 40), (40, 20)])
async def test_L11_hostile_sessions_are_only_text(size: tuple[int, int]) -> None:
    hostile = [
        summary("1kq0aaaaaaa", HOSTILE, "needs_you", 1, needs=HOSTILE, cwd="/tmp/" + HOSTILE, model=HOSTILE),
        summary("1kq0bbbbbbb", HOSTILE, "finished", 2, outcome=HOSTILE),
    ]
    app = Program(home(hostile))
    async with app.run_test(size=size) as pilot:
        await listed(pilot)
        seen = text_of(app)
        await pilot.press("x")
        seen += text_of(app)
        await pilot.press("escape", "slash", "e", "[", "/", "]")
        seen += text_of(app)
    assert "[/]" in seen and not OBEYED.search(seen)


# With sessions on the disk -----------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    store = Store()
    with store.create(ManualClock(EPOCH), meta={"cwd": str(tmp_path)}) as journal:
        for event in batch_done(flaky()).events:
            journal.append(event)
    return store


def kept_home(store: Store, folder: Path) -> HomeScreen:
    return HomeScreen(store, folder, ManualClock(EPOCH + 3_000))


async def done(pilot: Pilot[Any]) -> None:
    await pilot.pause(0.05)
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


async def test_delete_asks_first(store: Store, tmp_path: Path) -> None:
    app = Program(kept_home(store, tmp_path))
    async with app.run_test(size=(120, 40)) as pilot:
        await listed(pilot)
        await pilot.press("x", "n")
        await done(pilot)
        assert len(store.list()) == 1
        await pilot.press("x", "y")
        await done(pilot)
        assert store.list() == []
        assert "No sessions yet." in text_of(app)


async def test_fork_and_export(store: Store, tmp_path: Path) -> None:
    app = Program(kept_home(store, tmp_path))
    (session,) = store.list()
    async with app.run_test(size=(120, 40)) as pilot:
        await listed(pilot)
        await pilot.press("e", "m")
        await done(pilot)
        page = tmp_path / f"handrail-{session.id}.md"
        assert page.read_text().startswith("# Fix the flaky checkout test.")
        await pilot.press("e", "m")
        await done(pilot)
        assert "exists. Move it" in text_of(app)
        await pilot.press("e", "j")
        await done(pilot)
        assert '"type":"run_started"' in (tmp_path / f"handrail-{session.id}.jsonl").read_text()
        await pilot.press("f")
        await done(pilot)
        assert {s.parent for s in store.list()} == {None, session.id}


async def test_a_stored_session_is_watched_again(store: Store, tmp_path: Path) -> None:
    app = Program(kept_home(store, tmp_path))
    async with app.run_test(size=(120, 40)) as pilot:
        await listed(pilot)
        await pilot.press("r")
        await pilot.pause(0.3)
        assert isinstance(app.screen, ReplayScreen)
        assert app.screen.replay.playing
        await pilot.press("escape")
        assert isinstance(app.screen, HomeScreen)


async def test_a_done_session_whose_model_cannot_be_reached_is_still_read(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    opened = navigation.open_session(OpenStored(store.list()[0].id, or_read=True))
    app = Program(opened.screen())
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        text = text_of(app)
    assert "To read only." in text and "Fix the flaky checkout test." in text


async def test_three_hundred_sessions_open_at_once() -> None:
    many = [summary(f"1kq{n:08}", f"Task {n}", "finished", n, outcome="completed") for n in range(300)]
    app = Program(HomeScreen(Kept(many), Path("/tmp"), ManualClock(EPOCH)))
    async with app.run_test(size=(120, 40)) as pilot:
        await listed(pilot)
        assert "Task 0" in text_of(app)
        await pilot.press("end")
        assert "Task 299" in text_of(app)
