"""H5: what the card and the header say besides the call: what a pattern covers, and how commands are held."""

from __future__ import annotations

from dataclasses import replace

from stage import CardApp
from test_cards import BASH, press, ready, text_of
from textual.app import App, ComposeResult

from handrail.clock import EPOCH
from handrail.events import RunStarted
from handrail_tui.view.state import ViewState
from handrail_tui.widgets.header import RunHeader

DIFF = replace(
    BASH,
    title="git diff a.py",
    pattern="bash: git diff *",
    covers="git diff other.txt",
    asks_again="git diff --output=other.txt other.txt",
)


async def test_H5_always_shows_what_the_pattern_would_cover_and_what_not() -> None:
    app = CardApp([DIFF])
    async with app.run_test() as pilot:
        await ready(app, pilot)
        await press(pilot, "tab", "s")
        shown = text_of(app.card)
        assert "for example  git diff other.txt" in shown
        assert "not  git diff --output=other.txt other.txt" in shown


async def header(sandbox: str) -> str:
    view = ViewState()
    view.apply(RunStarted(at=EPOCH, session="s", prompt="Report.", model="m", cwd="/w", sandbox=sandbox))

    class HeaderApp(App[None]):
        def compose(self) -> ComposeResult:
            yield RunHeader(view)

    app = HeaderApp()
    async with app.run_test(size=(100, 5)):
        return str(app.query_one(RunHeader).render())


async def test_the_header_says_that_commands_are_held() -> None:
    assert "sandbox" in await header("sandbox: only the working folder is writable, no network")
    assert "sandbox" not in await header("")
