"""The demo gallery: what each scenario shows; enter plays it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.reactive import reactive
from textual.screen import Screen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from handrail import scenario
from handrail.errors import ConfigError
from handrail_tui.controller.destinations import OpenDemo
from handrail_tui.screens.navigate import Navigate
from handrail_tui.view.text import clean_for_terminal, count, one_line
from handrail_tui.widgets.bindings import bindings
from handrail_tui.widgets.footer import KeyLine
from handrail_tui.widgets.transcript_rows import styled

_SPEEDS: Final = (0.5, 1.0, 2.0, 4.0, 8.0)


class _Titles(OptionList):
    BINDINGS = bindings("demos.list")


class DemosScreen(Screen[None]):
    """A list of demos, and what the marked one shows. They are read once, and left out when they are broken."""

    DEFAULT_CSS = Path(__file__).with_suffix(".tcss").read_text(encoding="utf-8")
    BINDINGS = bindings("demos")

    speed: reactive[float] = reactive(1.0, init=False)
    """How many times as fast a demo plays."""

    def __init__(self, demos: Mapping[str, Path], speed: float = 1.0) -> None:
        super().__init__()
        self._found = list(_readable(demos.values()))
        self.set_reactive(DemosScreen.speed, speed)

    def compose(self) -> ComposeResult:
        yield Static(id="demos--head")
        with Horizontal(id="demos--body"):
            titles = (one_line(demo.title, 60) for demo in self._found)
            yield _Titles(
                *(
                    Option(styled((f"{n:>2}  ", "$faint"), title), id=str(n - 1))
                    for n, title in enumerate(titles, 1)
                ),
                id="demos--list",
            )
            with VerticalScroll(id="demos--detail"):
                yield Static()
        yield Static(id="demos--note")
        yield KeyLine(self)

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).can_focus = False
        self.query_one(OptionList).focus()
        self.watch_speed()

    def on_resize(self) -> None:
        self.set_class(self.app.size.width < 90, "-narrow")

    def watch_speed(self) -> None:
        pace = f"{self.speed:g} times as fast" if self.speed != 1 else "at normal speed"
        words = styled(("handrail", "bold $accent"), ("  demos", "$foreground"), (f"   plays {pace}", "$dim"))
        self.query_one("#demos--head", Static).update(words)

    @on(OptionList.OptionHighlighted)
    def _marked(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        self.query_one("#demos--detail > Static", Static).update(_shows(self._found[event.option_index]))

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.action_play()

    def tell(self, words: str) -> None:
        """A line above the keys; empty takes it away."""
        self.query_one("#demos--note", Static).update(Content(clean_for_terminal(words)))

    def action_play(self) -> None:
        """Play the one that is marked."""
        index = self.query_one(OptionList).highlighted
        if index is not None:
            self.tell("")
            self.post_message(Navigate(OpenDemo(self._found[index].path, self.speed), self.tell))

    def action_speed(self, by: int) -> None:
        """The next faster or slower pace."""
        faster = [s for s in _SPEEDS if (s > self.speed if by > 0 else s < self.speed)]
        if faster:
            self.speed = faster[0] if by > 0 else faster[-1]

    def action_back(self) -> None:
        """Back to the screen before; without one, quit."""
        if len(self.app.screen_stack) > 1:
            self.dismiss(None)
        else:
            self.app.exit()

    def action_quit(self) -> None:
        self.app.exit()


def _readable(files: Iterable[Path]) -> list[scenario.Scenario]:
    found = []
    for file in files:
        try:
            found.append(scenario.load(file))
        except ConfigError:
            continue
    return found


def _shows(demo: scenario.Scenario) -> Content:
    """What is to be seen in it."""
    parts = [
        styled((one_line(demo.title, 100), "bold $foreground")),
        Content(""),
        Content(clean_for_terminal(demo.about).strip()),
        Content(""),
        styled(("you ask  ", "$faint"), (one_line(demo.prompt, 300), "$person")),
        styled(("replies  ", "$faint"), (count(len(demo.replies)), "$dim")),
        styled(("file     ", "$faint"), (demo.path.name, "$dim")),
    ]
    return Content("\n").join(parts)
