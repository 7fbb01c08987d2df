"""Makes the pictures of docs/: `python docs/make/pictures.py`. Demos are played, on a clock that stands still."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from textual.screen import Screen

from handrail import events as ev
from handrail import scenario
from handrail.clock import EPOCH, ManualClock
from handrail.scenario.play import play
from handrail.session.store import Store
from handrail.session.summary import SessionSummary
from handrail_tui.program import Program
from handrail_tui.screens.home import HomeScreen
from handrail_tui.screens.run import RunScreen
from handrail_tui.sessions.demo import builtin_demos
from handrail_tui.sessions.replay import Replay

DOCS: Final = Path(__file__).parents[1]
FOLDER: Final = "/home/ada/code/shop"
SIZE: Final = (112, 36)
_SETTLES_S: Final = 0.7


class Still(Replay):
    """A run that stands at one moment, as if it went on."""

    running = True


def run_at(demo: str, until: Callable[[ev.Event, list[ev.Event]], bool], later: float = 0.0) -> RunScreen:
    """The screen of `demo` behind the first event that `until` says yes to, `later` seconds on."""
    told: list[ev.Event] = []
    asyncio.run(_played(demo, told))
    end = next(n for n, event in enumerate(told, 1) if until(event, told[:n]))
    events = [replace(e, cwd=FOLDER) if isinstance(e, ev.RunStarted) else e for e in told[:end]]
    session = Still(events)
    screen = RunScreen(session, home="/home/ada", journal="~/.local/state/handrail/sessions/…")

    def show() -> None:
        session.seek(session.track.length)
        session.clock.turn_to(events[-1].at + later)

    screen.call_later(show)
    return screen


async def _played(demo: str, told: list[ev.Event]) -> None:
    await play(scenario.load(builtin_demos()[demo]), told.append)


def running() -> RunScreen:
    """The second attempt of a turn whose stream broke is streaming."""

    def there(event: ev.Event, before: list[ev.Event]) -> bool:
        broke = any(isinstance(e, ev.WaitEnded) for e in before)
        said = sum(len(e.text) for e in before if isinstance(e, ev.MessageDelta) and e.turn == event.turn)
        return broke and isinstance(event, ev.MessageDelta) and event.kind == "text" and said > 200

    return run_at("first-run", there)


def needs_you() -> RunScreen:
    """Only a person can go on."""
    return run_at("only-you", lambda event, before: isinstance(event, ev.HumanRequested), 41.0)


def waiting() -> RunScreen:
    """A usage limit, and when it ends."""

    def there(event: ev.Event, before: list[ev.Event]) -> bool:
        return isinstance(event, ev.WaitStarted) and event.decision == "wait"

    return run_at("usage-limit", there, 283.0)


def home() -> HomeScreen:
    """Sessions of a week."""
    now = EPOCH + 3_000.0

    class Kept(Store):
        def list(self) -> Any:
            return list(_sessions(now))

    clock = ManualClock(now)
    return HomeScreen(Kept(DOCS), Path(FOLDER), clock, model=lambda: "anthropic/claude-opus-5-5")


def _sessions(now: float) -> Iterable[SessionSummary]:
    rows: tuple[tuple[str, str, float, dict[str, Any]], ...] = (
        (
            "Download this month's invoices and add them up",
            "needs_you",
            3,
            {
                "needs": "The shop's admin page shows a picture puzzle. Please solve it and stay logged in.",
            },
        ),
        ("Port the importer to the new API", "waiting", 12, {"until": now + 1_900, "turns": 9, "cost": 0.88}),
        ("Fix the flaky checkout test", "running", 0.2, {"running": True, "turns": 3, "cost": 0.12}),
        ("Why does the worker restart at night?", "interrupted", 95, {"cwd": "/srv/worker", "turns": 6}),
        ("Rename cart_total to total, everywhere", "finished", 320, {"outcome": "completed", "cost": 0.34}),
        ("Extract the fields of 200 invoices", "finished", 1_500, {"outcome": "turn-limit", "turns": 50}),
        (
            "Which licences do our dependencies have?",
            "finished",
            4_400,
            {"outcome": "submitted", "cost": 0.05},
        ),
    )
    for number, (title, state, minutes, more) in enumerate(rows):
        fields: dict[str, Any] = {"cwd": FOLDER, "turns": 4, "cost": 0.21} | more
        yield SessionSummary(
            id=f"1kq0z8d3vh{number}",
            path=DOCS / "journal.jsonl",
            title=title,
            state=state,  # type: ignore[arg-type]
            model="anthropic/claude-opus-5-5",
            started=now - minutes * 60 - 400,
            last=now - minutes * 60,
            **fields,
        )


PICTURES: Final[dict[str, Callable[[], Screen[Any]]]] = {
    "run.svg": running,
    "needs-you.svg": needs_you,
    "waiting.svg": waiting,
    "home.svg": home,
}


def picture(name: str) -> str:
    """The picture, as SVG that loads nothing."""
    screen = PICTURES[name]()
    return asyncio.run(_drawn(screen))


async def _drawn(screen: Screen[Any]) -> str:
    app = Program(screen)
    app.animation_level = "none"
    async with app.run_test(size=SIZE) as pilot:
        if isinstance(screen, RunScreen | HomeScreen):
            screen.composer.input.cursor_blink = False
        await pilot.pause(_SETTLES_S)
        svg = app.export_screenshot(title="handrail")
    return re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)


def pinned() -> None:
    """Nothing of this machine is in a picture: its home, its time zone, its wish for no colours."""
    os.environ |= {"TZ": "UTC", "HOME": "/home/ada"}
    os.environ.pop("NO_COLOR", None)
    time.tzset()


def main() -> None:
    """Make all of them."""
    pinned()
    for name in PICTURES:
        (DOCS / name).write_text(picture(name), encoding="utf-8")
        print(DOCS / name)


if __name__ == "__main__":
    main()
