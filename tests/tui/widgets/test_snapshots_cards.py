"""How cards, the composer and themes look. Time, time zone, cursor and animation stand still."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from stage import CardApp
from textual.pilot import Pilot

from handrail.clock import EPOCH
from handrail.events import ApprovalRequested, HumanRequested, RunFinished, WaitStarted
from handrail.messages import Usage
from handrail.policy import Bounds
from handrail_tui.controller.cards import CardContext, CardTrigger, Stall
from handrail_tui.screens.themes import ThemesScreen

DIFF = """--- a/src/cart.py
+++ b/src/cart.py
@@ -12,6 +12,10 @@ class Cart:
     def __init__(self) -> None:
         self._items: list[Item] = []
-        self._total = 0
+        self._total: int | None = None
+        self._lock = asyncio.Lock()

     async def total(self) -> int:
-        return self._total
+        async with self._lock:
+            return self._total or 0
"""
TRIGGERS: dict[str, CardTrigger] = {
    "needs-you": HumanRequested(
        id="h1",
        kind="captcha",
        needed="The shop's admin page shows a picture puzzle. Please solve it and stay logged in.",
        where="http://127.0.0.1:8123/admin/login",
        tried="the API token (403), the cookie of yesterday (expired)",
        at=EPOCH - 41,
    ),
    "approve-edit": ApprovalRequested(
        id="a1",
        call_id="c1",
        tool="edit",
        title="src/cart.py",
        diff=DIFF,
        why="edits ask first",
        pattern="edit src/cart.py",
        arguments={"path": "src/cart.py"},
        at=EPOCH,
    ),
    "approve-bash": ApprovalRequested(
        id="a1",
        call_id="c1",
        tool="bash",
        title="pytest -q tests/checkout",
        why="commands ask first",
        pattern="pytest …",
        arguments={"command": "pytest -q tests/checkout", "timeout": 120},
        at=EPOCH,
    ),
    "waiting": WaitStarted(
        seconds=2550,
        until=EPOCH + 2287,
        reason="usage-limit",
        words="You have hit your ChatGPT usage limit (plus plan). Try again in ~42 min.",
        source="guided, +30 s",
        at=EPOCH - 263,
    ),
    "polling": WaitStarted(
        seconds=900,
        until=EPOCH + 700,
        reason="usage-limit",
        words="You have hit your usage limit.",
        poll=3,
        polls=20,
        at=EPOCH - 200,
    ),
    "retrying": WaitStarted(
        seconds=4,
        until=EPOCH + 3,
        decision="retry",
        reason="transient",
        words="stream closed after 1.2k characters",
        number=2,
        limit=3,
        at=EPOCH - 1,
    ),
    "stalled": Stall(EPOCH - 52),
    "bound": RunFinished(
        outcome="turn-limit", bound="max_turns", error="turn 13 was not asked for", at=EPOCH
    ),
    "failed": RunFinished(
        outcome="provider",
        class_="auth",
        error="401: Incorrect API key",
        advice="Set another key with `handrail config edit`, or choose another model.",
        at=EPOCH,
    ),
    "finished": RunFinished(
        outcome="submitted",
        value={
            "answer": 42,
            "cause": "two tasks refresh at once",
            "files": ["src/cart.py", "tests/test_cart.py"],
        },
        requests=9,
        attempts=1,
        usage=Usage(12_000, 6_400),
        cost=0.21,
        at=EPOCH,
    ),
}
CONTEXT = CardContext(
    kept="812 characters kept as context",
    journal="~/.local/share/handrail/sessions/k3f9.jsonl",
    resume="handrail resume k3f9",
    started_at=EPOCH - 151,
    limits=Bounds(max_turns=12),
    idle_timeout_s=180.0,
)


async def settle(pilot: Pilot[None]) -> None:
    await pilot.pause()
    assert isinstance(pilot.app, CardApp)
    pilot.app.rest()
    if pilot.app.host.card:
        pilot.app.card.repaint()
    await pilot.pause()


@pytest.mark.parametrize("name", TRIGGERS)
def test_cards_on_a_wide_screen(name: str, snap_compare: Any) -> None:
    app = CardApp([TRIGGERS[name]], context=CONTEXT)
    assert snap_compare(app, terminal_size=(122, 34), run_before=settle)


@pytest.mark.parametrize("name", ["needs-you", "approve-edit", "waiting", "retrying", "finished"])
@pytest.mark.parametrize("size", [(80, 24), (40, 20)], ids=["80x24", "40x20"])
def test_cards_on_small_screens(name: str, size: tuple[int, int], snap_compare: Any) -> None:
    app = CardApp([TRIGGERS[name]], context=CONTEXT)
    assert snap_compare(app, terminal_size=size, run_before=settle)


@pytest.mark.parametrize("theme", ["handrail-light", "high-contrast", "ansi"])
def test_a_card_in_the_other_themes(theme: str, snap_compare: Any) -> None:
    app = CardApp([TRIGGERS["approve-edit"]], context=CONTEXT, theme=theme)
    assert snap_compare(app, terminal_size=(110, 34), run_before=settle)


def test_a_card_without_colour(snap_compare: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = CardApp([TRIGGERS["approve-edit"]], context=CONTEXT)
    assert snap_compare(app, terminal_size=(110, 34), run_before=settle)


def test_the_pattern_is_shown_before_it_is_taken(snap_compare: Any) -> None:
    async def run_before(pilot: Pilot[None]) -> None:
        await settle(pilot)
        await pilot.press("tab", "s")
        await settle(pilot)

    app = CardApp([TRIGGERS["approve-bash"]], context=CONTEXT)
    assert snap_compare(app, terminal_size=(110, 34), run_before=run_before)


def test_a_secret_being_typed(snap_compare: Any) -> None:
    async def run_before(pilot: Pilot[None]) -> None:
        await settle(pilot)
        await pilot.press("tab", "a")
        await pilot.pause()
        pilot.app.query_one("CardInput").cursor_blink = False  # type: ignore[attr-defined]
        await pilot.press("p", "w", "ctrl+s")
        await settle(pilot)

    app = CardApp([TRIGGERS["needs-you"]], context=CONTEXT)
    assert snap_compare(app, terminal_size=(110, 34), run_before=run_before)


def test_typing_while_a_card_is_open(snap_compare: Any) -> None:
    async def run_before(pilot: Pilot[None]) -> None:
        await settle(pilot)
        await pilot.press(*"hold", "ctrl+j", *"on")
        await settle(pilot)

    app = CardApp([TRIGGERS["waiting"]], context=CONTEXT)
    assert snap_compare(app, terminal_size=(110, 34), run_before=run_before)


def test_the_list_of_commands(snap_compare: Any) -> None:
    async def run_before(pilot: Pilot[None]) -> None:
        await pilot.press("slash", "down")
        await settle(pilot)

    assert snap_compare(CardApp(), terminal_size=(100, 24), run_before=run_before)


def test_the_list_of_files(snap_compare: Any, tmp_path: Path) -> None:
    for name in ("src/cart.py", "src/catalog.py", "tests/test_cart.py", "docs/[/] odd.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")

    async def run_before(pilot: Pilot[None]) -> None:
        await pilot.press("at")
        await pilot.app.workers.wait_for_complete()
        await settle(pilot)

    assert snap_compare(CardApp(root=tmp_path), terminal_size=(100, 24), run_before=run_before)


def test_the_list_of_themes(snap_compare: Any) -> None:
    async def run_before(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, CardApp)
        app.push_screen(ThemesScreen(app.themes))
        await pilot.pause()
        await pilot.press("down")
        await settle(pilot)

    assert snap_compare(CardApp(), terminal_size=(100, 30), run_before=run_before)
