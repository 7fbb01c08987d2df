"""«Approve»: a tool wants to change or run something, and asks first (rule H5)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from textual.binding import Binding
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from handrail.clock import Clock
from handrail.events import ApprovalRequested
from handrail_tui.controller.cards import Approve
from handrail_tui.view.text import one_line, plural, reveal
from handrail_tui.widgets.bindings import bindings
from handrail_tui.widgets.cards import diff
from handrail_tui.widgets.cards._parts import CardInput, styled
from handrail_tui.widgets.cards.base import Accent, Card
from handrail_tui.widgets.cards.guard import AFTER_APPEARING_S, InputGuard

_MOST = 40_000
"""Characters of one argument that are drawn: more would hold up the keys."""


class ApprovalCard(Card):
    """Shows the call in full. Enter allows it once; what holds for longer shows itself first: two presses."""

    ACCENT: ClassVar[Accent] = "needs-you"
    BINDINGS = bindings("approve")

    def __init__(self, event: ApprovalRequested, clock: Clock, guard: InputGuard | None = None) -> None:
        super().__init__(clock, guard)
        self.event = event
        self._offered_at: float | None = None

    def head(self) -> Content:
        e = self.event
        head = self.title("Approve")
        tool = styled(f"   {one_line(e.tool, 60)}", "bold $tool") + styled(f"   {_title(e)}", "$foreground")
        return head[:7] + tool + (Content("   ") + diff.summary(e.diff) if e.diff else Content("")) + head[7:]

    def body(self) -> Iterable[Widget]:
        e = self.event
        parts = [part for part in (_full_title(e), reveal(e.detail)) if part]
        for text in parts:
            yield Static(_whole(text), classes="card--detail")
        if e.diff:
            yield Static(diff.render(reveal(e.diff), known=_title(e)), classes="card--diff")
        if rows := arguments(_beyond(e)):
            yield Static(rows, classes="card--arguments")
        if e.why:
            yield Static(styled("because ", "$faint") + styled(reveal(e.why), "$dim"), classes="card--why")
        yield Static(self._offer(), classes="card--offer -empty")

    def _offer(self) -> Content:
        """What «always this session» would allow, shown before it is taken."""
        if self._offered_at is None or self.event.pattern is None:
            return Content("")
        offer = Content.assemble(
            styled("always this session: ", "bold $waiting"),
            styled(reveal(self.event.pattern), "$foreground"),
            styled("   s again allows all of these", "$dim"),
        )
        if self.event.covers:
            offer += Content.assemble(
                "\n",
                styled("for example  ", "$faint"),
                styled(reveal(self.event.covers), "$foreground"),
                styled("   not  ", "$faint"),
                styled(reveal(self.event.asks_again), "$foreground"),
            )
        return offer

    def label(self, binding: Binding) -> str:
        if binding.action == "session" and self._offered_at is not None:
            return "allow the pattern above"
        return binding.description

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self.event.pattern is not None if action == "session" else True

    def action_once(self) -> None:
        self.choose(Approve(self.event.id, "once"))

    def action_session(self) -> None:
        """Show the pattern; the second press takes it, unless it is the first one held down."""
        now = self.guard.now()
        if self._offered_at is None:
            self._offered_at = now
            offer = self.query_one(".card--offer", Static)
            offer.update(self._offer())
            offer.remove_class("-empty")
            self.call_after_refresh(self.query_one(".card--body").scroll_end, animate=False)
            self.repaint()
        elif now - self._offered_at >= AFTER_APPEARING_S:
            self.choose(Approve(self.event.id, "session", pattern=self.event.pattern))

    def action_deny(self) -> None:
        self.choose(Approve(self.event.id, "deny"))

    def action_deny_with(self) -> None:
        self.ask("why not, and what to do instead; the model reads it", self._denied)

    def _denied(self, line: CardInput) -> None:
        self.choose(Approve(self.event.id, "deny", text=line.value.strip()))


def arguments(values: Mapping[str, Any]) -> Content:
    """Arguments in full, a row each; long texts below their name."""
    width = min(16, max((len(str(key)) for key in values), default=0))
    rows = []
    for key, value in values.items():
        name = styled(one_line(str(key), 60).ljust(width), "$dim")
        text = reveal(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))
        if "\n" in text:
            rows += [name, _whole(text)]
        else:
            rows.append(name + "  " + _whole(text))
    return Content("\n").join(rows)


def _whole(text: str) -> Content:
    """Text in full: a person must be able to read what they allow. A huge text says that it is cut."""
    shown = styled(text[:_MOST], "$foreground")
    if len(text) <= _MOST:
        return shown
    more = plural(len(text) - _MOST, "more character")
    return shown + "\n" + styled(f"… {more} are not shown; deny what you cannot read", "bold $waiting")


def _title(event: ApprovalRequested) -> str:
    return one_line(reveal(event.title), 200)


def _full_title(event: ApprovalRequested) -> str:
    """The title once more where the head had to shorten it: a command must be seen whole."""
    full = reveal(event.title)
    return full if full != _title(event) else ""


def _beyond(event: ApprovalRequested) -> dict[str, Any]:
    """The arguments that are not yet on the card: word for word, or as the texts that a diff was made from."""

    def known(value: Any) -> bool:
        return isinstance(value, str) and (
            value in (event.title, event.detail) or (bool(event.diff) and ("\n" in value or len(value) > 200))
        )

    return {name: value for name, value in event.arguments.items() if not known(value)}
