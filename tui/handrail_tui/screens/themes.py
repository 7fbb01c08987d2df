"""Choosing a theme: each is shown as soon as it is marked; esc restores the old one."""

from __future__ import annotations

from pathlib import Path

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from handrail_tui.view.text import one_line
from handrail_tui.widgets.bindings import bindings
from handrail_tui.widgets.theming import Themes


def _sample() -> Content:
    """A little of everything that a run shows, in the colours it has."""
    rows = (
        (("you", "bold $person"),),
        (("  Fix the flaky checkout test.", "$foreground"),),
        (("turn 3", "bold $dim"), ("  6.2 s", "$faint")),
        (("  batch of 2", "bold $tool"), ("  1.9 s", "$dim")),
        (
            ("  ✓ ", "$accepted"),
            ("edit   src/cart.py  ", "$foreground"),
            ("+6", "$accepted"),
            (" −2", "$rejected"),
        ),
        (("  ● ", "$accent"), ("bash   pytest -q", "$foreground"), ("   running", "$accent")),
        (("retry", "$decision"), (" 1 of 3, in 2 s", "$dim")),
        (("wait", "$waiting"), (" usage limit ", "$dim"), ("━━━━", "$waiting"), ("──────", "$line")),
        (("Only you can do this", "bold $needs-you"), ("   captcha", "$dim")),
    )
    lines = [Content.assemble(*(Content.styled(text, style) for text, style in row)) for row in rows]
    return Content("\n").join(lines)


class ThemesScreen(ModalScreen[str | None]):
    """The list of themes over the screen they change. Ends with the chosen name, None when nothing was chosen."""

    DEFAULT_CSS = Path(__file__).with_suffix(".tcss").read_text(encoding="utf-8")
    BINDINGS = bindings("themes")

    def __init__(self, themes: Themes) -> None:
        super().__init__()
        self._themes = themes
        self._before = ""

    def compose(self) -> ComposeResult:
        with Vertical(id="themes"):
            with Horizontal(id="themes--lists"):
                yield OptionList(
                    *(
                        Option(Content(one_line(source.title, 24)), id=name)
                        for name, source in self._themes.sources.items()
                    ),
                    markup=False,
                    compact=True,
                )
                yield Static(_sample(), id="themes--sample")
            yield Static(
                Content.styled("enter", "bold $accent")
                + " use it    "
                + Content.styled("esc", "bold $accent")
                + " cancel",
                id="themes--keys",
            )

    def on_mount(self) -> None:
        self._before = self.app.theme
        names = list(self._themes.sources)
        options = self.query_one(OptionList)
        options.highlighted = names.index(self._before) if self._before in names else 0
        options.focus()

    def on_resize(self) -> None:
        self.set_class(self.app.size.width < 70, "-narrow")

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        if event.option_id in self.app.available_themes:
            self.app.theme = event.option_id

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(event.option_id)

    def action_back(self) -> None:
        self.app.theme = self._before
        self.dismiss(None)
