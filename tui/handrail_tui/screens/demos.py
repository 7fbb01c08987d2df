"""The demo gallery: what each scenario shows; enter plays it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.reactive import reactive
from textual.screen import Screen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from handrail import scenario
from handrail.errors import ConfigError
from handrail_tui import navigation
from handrail_tui.view.text import clean_for_terminal, one_line, plural
from handrail_tui.widgets.footer import KeyLine
from handrail_tui.widgets.transcript_rows import styled

if TYPE_CHECKING:
    from handrail_tui.program import Program

_SPEEDS: Final = (0.5, 1.0, 2.0, 4.0, 8.0)


class _Titles(OptionList):
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "select", "play", id="demos.play")]


class DemosScreen(Screen[None]):
    """A list of demos, and what the marked one shows. They are read once, and left out when they are broken."""

    DEFAULT_CSS = Path(__file__).with_suffix(".tcss").read_text(encoding="utf-8")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("plus,right", "speed(1)", "faster", id="demos.faster", key_display="+"),
        Binding("minus,left", "speed(-1)", "slower", id="demos.slower", key_display="-"),
        Binding("escape,q", "back", "back", id="demos.back"),
        Binding("ctrl+q,ctrl+c", "quit", "quit", show=False, id="demos.quit"),
    ]

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
        pace = f"{self.speed:g} times as fast" if self.speed != 1 else "as it was written"
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
            make = partial(navigation.a_demo, self._found[index].path, self.speed)
            cast("Program", self.app).open(make, self.tell)

    def action_speed(self, by: int) -> None:
        """The next faster or slower pace."""
        faster = [s for s in _SPEEDS if (s > self.speed if by > 0 else s < self.speed)]
        if faster:
            self.speed = faster[0] if by > 0 else faster[-1]

    def action_back(self) -> None:
        """To where one came from; out of the program when it was from nowhere."""
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
        styled(("it takes ", "$faint"), (plural(len(demo.replies), "reply", "replies"), "$dim")),
        styled(("from     ", "$faint"), (demo.path.name, "$dim")),
    ]
    return Content("\n").join(parts)
