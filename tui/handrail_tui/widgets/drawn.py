"""Widgets that draw themselves from state and clock, and only when what they show has changed."""

from __future__ import annotations

from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget


class Drawn(Widget):
    """A subclass gives `draw`. Whoever changes what it is drawn from calls `look_again`, as often as it likes."""

    _shown: tuple[Size, Content] | None = None

    def draw(self) -> Content:
        """What to show now, in `content_size`."""
        return Content()

    def look_again(self) -> bool:
        """Draw anew if that looks different from what is shown; returns whether it does."""
        if not self.content_size:
            return False  # not on the screen; it is drawn when it comes there
        if self._shown is not None and self._shown[0] == self.content_size:
            content = self.draw()
            if content.is_same(self._shown[1]):
                return False
        self.refresh()
        return True

    def render(self) -> Content:
        content = self.draw()
        self._shown = (self.content_size, content)
        return content
