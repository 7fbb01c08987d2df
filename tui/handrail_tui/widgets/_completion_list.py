"""The list of completions above the composer. It never takes the keyboard."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from handrail_tui.widgets._completion import Completion


class CompletionList(OptionList, can_focus=False):
    """Offers, one of them marked. The composer moves the mark; a click chooses too."""

    def __init__(self) -> None:
        super().__init__(classes="-empty", markup=False, compact=True)
        self.offers: list[Completion] = []

    @property
    def is_open(self) -> bool:
        return bool(self.offers)

    @property
    def marked(self) -> Completion | None:
        """The marked offer."""
        return self.offers[self.highlighted] if self.offers and self.highlighted is not None else None

    def offer(self, offers: Sequence[Completion]) -> None:
        """Show these, the first one marked; none closes the list."""
        self.offers = list(offers)
        self.set_class(not offers, "-empty")
        width = max((len(offer.title) for offer in offers), default=0)
        self.clear_options()
        self.add_options(Option(_row(offer, width)) for offer in offers)
        self.highlighted = 0 if offers else None


def _row(offer: Completion, width: int) -> Content:
    if not offer.help:
        return Content(offer.title)
    return Content(offer.title.ljust(width)) + Content.styled(f"   {offer.help}", "$dim")
