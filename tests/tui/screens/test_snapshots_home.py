"""How home, the gallery and a replay look. Time, time zone, cursor and animation stand still."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kept import home
from stories import batch_done, flaky
from textual.pilot import Pilot
from textual.widgets import Input

from handrail_tui.program import Program, UiPrefs
from handrail_tui.screens.demos import DemosScreen
from handrail_tui.screens.home import HomeScreen
from handrail_tui.screens.replay import ReplayScreen
from handrail_tui.sessions.demo import builtin_demos

Snap = Callable[..., bool]


def snap(compare: Snap, screen: Any, size: tuple[int, int], *keys: str, theme: str | None = None) -> bool:
    app = Program(screen, UiPrefs(theme))

    async def stage(pilot: Pilot[Any]) -> None:
        await pilot.pause(0.1)
        await app.workers.wait_for_complete()
        if isinstance(screen, HomeScreen):
            screen.composer.input.cursor_blink = False
            screen.query_one(Input).cursor_blink = False
        await pilot.press(*keys)
        await pilot.pause(0.1)

    return compare(app, terminal_size=size, run_before=stage)


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (40, 20)])
def test_home(size: tuple[int, int], snap_compare: Snap) -> None:
    assert snap(snap_compare, home(), size)


@pytest.mark.parametrize(
    ("name", "keys"), [("filter", ("slash", *"inv")), ("delete", ("x",)), ("help", ("question_mark",))]
)
def test_home_one_key_away(name: str, keys: tuple[str, ...], snap_compare: Snap) -> None:
    assert snap(snap_compare, home(), (120, 30), *keys)


def test_home_in_the_light(snap_compare: Snap) -> None:
    assert snap(snap_compare, home(), (120, 30), theme="handrail-light")


@pytest.mark.parametrize("size", [(120, 40), (40, 20)])
def test_home_with_nothing_in_it(size: tuple[int, int], snap_compare: Snap) -> None:
    assert snap(snap_compare, home([], model=None), size)


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (40, 20)])
def test_the_gallery(size: tuple[int, int], snap_compare: Snap) -> None:
    assert snap(snap_compare, DemosScreen(builtin_demos()), size, "down", "+")


@pytest.mark.parametrize("size", [(120, 40), (40, 20)])
def test_a_replay_that_is_read(size: tuple[int, int], snap_compare: Snap) -> None:
    screen = ReplayScreen(
        batch_done(flaky()).events, plays=False, note="To read only.", home="/home/ada", returns=True
    )
    assert snap(snap_compare, screen, size)
