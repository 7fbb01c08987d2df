"""Choosing a model from those that can be used from here; esc goes back to what was there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from handrail import settings
from handrail.errors import ConfigError
from handrail_tui.sessions.models import UsableModel, usable_models
from handrail_tui.view.text import join, one_line
from handrail_tui.widgets.bindings import bindings
from handrail_tui.widgets.footer import KeyLine
from handrail_tui.widgets.transcript_rows import styled


class ModelsScreen(ModalScreen[str | None]):
    """The models by name, filtered by what is typed. Any other name that is typed whole can be used too."""

    DEFAULT_CSS = Path(__file__).with_suffix(".tcss").read_text(encoding="utf-8")
    BINDINGS = bindings("models")

    def __init__(
        self,
        current: str,
        use: Callable[[str], str],
        find: Callable[[], list[UsableModel]] | None = None,
    ) -> None:
        """`use` gets the chosen name; `find` lists the models (default: by the settings) and may block."""
        super().__init__()
        self._current, self._use, self._find = current, use, find or _usable_here
        self._models: list[UsableModel] = []

    def compose(self) -> ComposeResult:
        with Vertical(id="models"):
            yield Static(styled(("Another model", "bold"), ("   from the next request on", "$dim")))
            yield Input(
                placeholder="type to filter, or a whole provider/name", compact=True, id="models--filter"
            )
            yield OptionList(markup=False, compact=True, id="models--list")
            yield Static("looking for models …", id="models--note")
            yield KeyLine(self)

    def on_mount(self) -> None:
        self.query_one(Input).focus()
        self._look()

    @work
    async def _look(self) -> None:
        try:
            self._models = await asyncio.to_thread(self._find)
        except ConfigError as error:
            self.query_one("#models--note", Static).update(Content(one_line(str(error), 300)))
            return
        self._list()

    def _list(self) -> None:
        word = self.query_one(Input).value.strip().lower()
        shown = [model for model in self._models if word in model.name.lower()]
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options([Option(self._row(model), id=model.name) for model in shown])
        names = [model.name for model in shown]
        options.highlighted = (names.index(self._current) if self._current in names else 0) if names else None
        note = (
            ""
            if shown
            else "no match: enter uses the name as it is typed"
            if word
            else "no model can be used yet"
        )
        self.query_one("#models--note", Static).update(Content(note))

    def _row(self, model: UsableModel) -> Content:
        mark = "● " if model.name == self._current else "  "
        about = join([model.how, *model.facts], ", ")
        return styled((mark, "$accent"), one_line(model.name, 60), (f"   {one_line(about, 80)}", "$dim"))

    @on(Input.Changed)
    def _filtered(self, event: Input.Changed) -> None:
        event.stop()
        self._list()

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self._chosen(str(event.option.id))

    def _chosen(self, name: str) -> None:
        self.dismiss(None)
        self._use(name)

    def action_mark(self, step: int) -> None:
        options = self.query_one(OptionList)
        options.action_cursor_down() if step > 0 else options.action_cursor_up()

    def action_use(self) -> None:
        options, typed = self.query_one(OptionList), self.query_one(Input).value.strip()
        if options.highlighted is not None:
            self._chosen(str(options.get_option_at_index(options.highlighted).id))
        elif typed:
            self._chosen(typed)

    def action_back(self) -> None:
        self.dismiss(None)


def _usable_here() -> list[UsableModel]:
    return usable_models(settings.load(Path.cwd()).settings)
