"""Sessions for tests of the list: one of each state, and hostile ones."""

from __future__ import annotations

from pathlib import Path

from handrail.clock import EPOCH, ManualClock
from handrail.session.store import Store
from handrail.session.summary import SessionSummary
from handrail_tui.screens.home import HomeScreen

NOW = EPOCH + 3_000.0
SHOP = "/home/ada/code/shop"
HOSTILE = "[/] [red]x[/foo] \x1b]0;owned\x07\x1b[2J‮evil\x9b31m [@click=app.bell]press[/]\nsecond line"


def summary(id: str, title: str, state: str, minutes: float, **more: object) -> SessionSummary:
    fields: dict[str, object] = {
        "cwd": SHOP,
        "model": "anthropic/claude-opus-5-5",
        "started": NOW - minutes * 60 - 300,
        "last": NOW - minutes * 60,
        "turns": 4,
        "cost": 0.21,
    }
    path = Path(f"/nowhere/{id}/journal.jsonl")
    return SessionSummary(id=id, path=path, title=title, state=state, **(fields | more))  # type: ignore[arg-type]


def one_of_each() -> list[SessionSummary]:
    return [
        summary("1kq0aaaaaaa", "Rename cart_total to total", "finished", 300, outcome="completed"),
        summary(
            "1kq0bbbbbbb", "Why does the worker restart?", "interrupted", 90, cwd="/srv/worker", cost=None
        ),
        summary("1kq0ccccccc", "Port the importer", "waiting", 12, until=NOW + 1_900),
        summary(
            "1kq0ddddddd",
            "Download this month's invoices and add them up",
            "needs_you",
            3,
            needs="The shop's admin page shows a picture puzzle. Please solve it and stay logged in.",
        ),
        summary("1kq0eeeeeee", "Fix the flaky checkout test", "running", 0.2, running=True),
        summary(
            "1kq0fffffff", "Extract the invoice's fields", "finished", 4_000, outcome="turn-limit", turns=12
        ),
        summary("1kq0ggggggg", "", "unreadable", 9_000, cwd="", model="", turns=0, cost=None),
    ]


class Kept(Store):
    """A store that lists what it is given."""

    def __init__(self, summaries: list[SessionSummary]) -> None:
        super().__init__(Path("/nowhere"))
        self.summaries = summaries

    def list(self) -> list[SessionSummary]:  # type: ignore[override]
        return self.summaries


def home(
    summaries: list[SessionSummary] | None = None, model: str | None = "anthropic/claude-opus-5-5"
) -> HomeScreen:
    found = one_of_each() if summaries is None else summaries
    return HomeScreen(Kept(found), Path(SHOP), ManualClock(NOW), model=lambda: model)
