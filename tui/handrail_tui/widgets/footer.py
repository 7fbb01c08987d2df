"""The last line: the keys that work now, and how full the context is."""

from __future__ import annotations

from collections.abc import Callable

from textual.content import Content
from textual.widget import Widget

from handrail_tui.state import ViewState
from handrail_tui.widgets.transcript_rows import styled


class RunFooter(Widget):
    """Keys of the bindings in force that say `show`, as many as fit."""

    DEFAULT_CSS = "RunFooter { height: 1; width: 1fr; background: $background; padding: 0 2; }"

    def __init__(
        self, view: ViewState, keys: Callable[[], list[tuple[str, str]]], *, id: str | None = None
    ) -> None:
        super().__init__(id=id)
        self.view, self._keys = view, keys

    def render(self) -> Content:
        width = self.content_size.width
        context = self.view.meters.context
        name = "context" if width >= 90 else "ctx"
        right = styled(
            (
                f"{name} {context:.0%}" if context is not None else "",
                "$waiting" if (context or 0) >= 0.8 else "$dim",
            )
        )
        line, gap = Content(""), "   " if width >= 100 else "  "
        for key, words in self._keys():
            item = styled((key, "$foreground"), (f" {words}", "$dim"))
            if line.cell_length + item.cell_length + len(gap) + right.cell_length + 2 > width:
                continue
            line = line + (gap if line.plain else "") + item
        return line + " " * max(0, width - line.cell_length - right.cell_length) + right
