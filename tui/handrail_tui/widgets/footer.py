"""The last line: the keys that work now, and how full the context is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from textual.binding import Binding
from textual.content import Content
from textual.screen import Screen
from textual.widget import Widget

from handrail_tui.view.state import ViewState
from handrail_tui.widgets.drawn import Drawn
from handrail_tui.widgets.transcript_rows import styled

KEY_NAMES: Final = {
    "escape": "esc",
    "question_mark": "?",
    "slash": "/",
    "delete": "del",
    "plus": "+",
    "minus": "-",
}


class FooterKey(NamedTuple):
    """A key, what it does, and whether it is shown before all others where there is little room."""

    key: str
    words: str
    needed: bool = False


class RunFooter(Drawn):
    """Keys of the bindings in force that say `show`, as many as fit; the needed ones before the others."""

    DEFAULT_CSS = "RunFooter { height: 1; width: 1fr; background: $background; padding: 0 2; }"

    def __init__(
        self, view: ViewState, keys: Callable[[], list[FooterKey]], *, id: str | None = None
    ) -> None:
        super().__init__(id=id)
        self.view, self._keys = view, keys

    def draw(self) -> Content:
        width = self.content_size.width
        context = self.view.meters.context
        name = "context" if width >= 90 else "ctx"
        right = styled(
            (
                f"{name} {context:.0%}" if context is not None else "",
                "$waiting" if (context or 0) >= 0.8 else "$dim",
            )
        )
        gap = "   " if width >= 100 else "  "
        keys = self._keys()
        items = {one: styled((one.key, "$foreground"), (f" {one.words}", "$dim")) for one in keys}
        room, fits = width - right.cell_length - 2 + len(gap), set[FooterKey]()
        for one in sorted(keys, key=lambda one: not one.needed):
            if (takes := items[one].cell_length + len(gap)) <= room:
                room -= takes
                fits.add(one)
        line = Content(gap).join(items[one] for one in keys if one in fits)
        return line + " " * max(0, width - line.cell_length - right.cell_length) + right


class KeyLine(Widget):
    """The last line of a screen: the keys that work now, those of what has the keyboard first."""

    DEFAULT_CSS = "KeyLine { height: 1; width: 1fr; background: $background; padding: 0 2; }"

    def __init__(self, screen: Screen[Any]) -> None:
        super().__init__()
        self._of = screen

    def on_mount(self) -> None:
        self._of.bindings_updated_signal.subscribe(self, lambda screen: self.refresh())

    def render(self) -> Content:
        width = self.content_size.width
        line, gap, seen = Content(""), "   " if width >= 100 else "  ", set[str]()
        for active in self._of.active_bindings.values():
            key = shown_key(active.binding)
            name = active.binding.id
            if not (active.enabled and active.binding.show and name) or name in seen:
                continue
            seen.add(name)
            item = styled((key, "$foreground"), (f" {active.binding.description}", "$dim"))
            if line.cell_length + item.cell_length + len(gap) <= width:
                line = line + (gap if line.plain else "") + item
        return line


def shown_key(binding: Binding) -> str:
    """A key as people call it."""
    return binding.key_display or KEY_NAMES.get(binding.key, binding.key)
