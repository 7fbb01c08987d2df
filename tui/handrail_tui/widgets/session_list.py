"""The list of sessions: state, title, folder, age, turns, cost; those that need a person first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from textual import events
from textual.content import Content
from textual.fuzzy import FuzzySearch
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from handrail.session.summary import SessionSummary
from handrail_tui.view import listing
from handrail_tui.view.text import one_line
from handrail_tui.widgets.bindings import bindings
from handrail_tui.widgets.transcript_rows import styled

_WIDE: Final = 96
_NARROW: Final = 60
_STATE: Final = 24
_STYLES: Final = {
    "needs_you": "bold $needs-you",
    "waiting": "$waiting",
    "running": "$accent",
    "interrupted": "$decision",
    "unreadable": "$rejected",
}
_ENDS: Final = {"completed": "$accepted", "submitted": "$accepted", "human-required": "bold $needs-you"}


class SessionList(OptionList):
    """Shows summaries, narrowed by `query`. Enter posts OptionSelected; `marked` is the one under the cursor."""

    DEFAULT_CSS = Path(__file__).with_suffix(".tcss").read_text(encoding="utf-8")
    BINDINGS = bindings("sessions")

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, markup=False)
        self._all: Sequence[SessionSummary] = ()
        self._shown: list[SessionSummary] = []
        self._query = ""
        self._now = 0.0
        self._search = FuzzySearch()
        self._state_width = 0

    # What is shown ------------------------------------------------------------------------------------------

    @property
    def marked(self) -> SessionSummary | None:
        """The session under the cursor."""
        return self._shown[self.highlighted] if self.highlighted is not None else None

    @property
    def shown(self) -> Sequence[SessionSummary]:
        return self._shown

    def show(self, summaries: Sequence[SessionSummary], now: float) -> None:
        """Show these, as they stand at the moment `now`. What was marked stays marked."""
        self._all, self._now = summaries, now
        self._renew()

    def narrow(self, query: str) -> None:
        """Show those whose title, folder, state or id hold the letters of `query`, the best first."""
        self._query = query.strip()
        self._renew(to_the_top=True)

    def _renew(self, to_the_top: bool = False) -> None:
        marked = self.marked
        terms = self._query.split()
        self._shown = self._best(terms)
        states = (len(listing.state(s, self._now)) for s in self._shown)
        self._state_width = min(_STATE, max(states, default=0) + 2)
        self.clear_options()
        self.add_options(Option(self._row(s, terms)) for s in self._shown)
        ids = [s.id for s in self._shown]
        kept = marked is not None and marked.id in ids and not to_the_top
        self.highlighted = (ids.index(marked.id) if kept and marked else 0) if ids else None

    def _best(self, terms: list[str]) -> list[SessionSummary]:
        """Those that each term fits somewhere, the best first; as they were where there is no term."""
        found: list[tuple[float, SessionSummary]] = []
        for summary in self._all:
            words = _words(summary, self._now)
            scores = [max(self._search.match(term, each)[0] for each in words) for term in terms]
            if all(scores):
                found.append((sum(scores), summary))
        return [summary for _, summary in sorted(found, key=lambda pair: -pair[0])]

    def on_resize(self, event: events.Resize) -> None:
        self._renew()

    # Rows ---------------------------------------------------------------------------------------------------

    def _row(self, summary: SessionSummary, terms: list[str]) -> Content:
        width = max(20, self.scrollable_content_region.width - 2)
        state, title, folder, age, turns, cost = listing.row(summary, self._now)
        words = Content(title)
        # Not Textual's Matcher: it reads markup out of what it highlights.
        for offset in {o for term in terms for o in self._search.match(term, title)[1]}:
            words = words.stylize("bold underline", offset, offset + 1)
        style = _style(summary)
        if width < _NARROW:
            below = styled((state, style), (f"   {age} ago", "$dim")).truncate(width, ellipsis=True)
            return words.truncate(width, ellipsis=True) + "\n" + below
        right = styled((f"{age:>8}{turns:>10}{cost:>9}", "$dim"))
        if width >= _WIDE:
            right = _cell(_tail(folder, 24), 26).stylize("$dim") + right
        left = _cell(state, self._state_width).stylize(style)
        room = max(8, width - left.cell_length - right.cell_length - 2)
        words = words.truncate(room, ellipsis=True)
        return left + words + " " * (room + 2 - words.cell_length) + right


def _words(summary: SessionSummary, now: float) -> tuple[str, ...]:
    return (
        one_line(summary.title, 60),
        one_line(summary.cwd, 80),
        listing.state(summary, now),
        summary.id,
    )


def _style(summary: SessionSummary) -> str:
    if summary.state == "finished":
        return _ENDS.get(summary.outcome or "", "$dim")
    return _STYLES[summary.state]


def _cell(text: str, width: int) -> Content:
    content = Content(text).truncate(width - 1, ellipsis=True)
    return content + " " * (width - content.cell_length)


def _tail(path: str, room: int) -> str:
    return path if len(path) <= room else "…" + path[-(room - 1) :]
