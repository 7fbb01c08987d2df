"""«At a bound»: the run stops unless a person raises the bound (rules L1, L3)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar

from textual.binding import Binding
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from handrail.clock import Clock
from handrail.events import RunFinished
from handrail.policy import Bounds
from handrail_tui.controller.cards import BoundKind, Finish, RaiseBound, bound_of
from handrail_tui.view.text import clean_for_terminal, count, cut_lines, money, one_line, plural, seconds
from handrail_tui.widgets.bindings import bindings
from handrail_tui.widgets.cards._parts import CardInput, styled
from handrail_tui.widgets.cards.base import Accent, Card
from handrail_tui.widgets.cards.guard import InputGuard

_AMOUNT = re.compile(r"\+?\s*(\d+(?:\.\d+)?)")


@dataclass(frozen=True, slots=True)
class _Bound:
    title: str
    step: float
    words: str
    unit: str
    show: Callable[[float], str]
    scale: float = 1.0
    whole: bool = True


_BOUNDS: dict[BoundKind, _Bound] = {
    "max_turns": _Bound("Turn limit", 10, "ten more turns", "turns", lambda n: plural(int(n), "turn")),
    "max_attempts": _Bound(
        "Attempts are spent", 2, "two more attempts", "attempts", lambda n: plural(int(n), "attempt")
    ),
    "deadline_s": _Bound("Deadline", 600, "ten more minutes", "minutes", seconds, 60.0, whole=False),
    "max_total_tokens": _Bound(
        "Token budget", 100_000, "100k more tokens", "tokens", lambda n: f"{count(n)} tokens"
    ),
    "max_cost": _Bound("Cost budget", 1.0, "one more dollar", "dollars", money, whole=False),
}


class BoundCard(Card):
    """Which bound, what it stopped, and some more of it. Nothing is raised by enter alone."""

    ACCENT: ClassVar[Accent] = "waiting"
    BINDINGS = bindings("bound")

    def __init__(
        self,
        finished: RunFinished,
        clock: Clock,
        guard: InputGuard | None = None,
        *,
        limits: Bounds | None = None,
    ) -> None:
        """`limits` are the bounds in force, so that the card can say how high this one is."""
        super().__init__(clock, guard)
        self.finished = finished
        self.kind: BoundKind = bound_of(finished) or "max_turns"
        self._bound = _BOUNDS[self.kind]
        self._limit: float | None = getattr(limits, self.kind) if limits else None

    def head(self) -> Content:
        limit = f"{self._bound.show(self._limit)} are used up" if self._limit is not None else "used up"
        return self.title(self._bound.title, limit)

    def body(self) -> Iterable[Widget]:
        what = clean_for_terminal(self.finished.error or "").strip() or "the next request was not sent"
        yield Static(styled(f"stopped: {cut_lines(what)}", "$dim"), classes="card--why")

    def label(self, binding: Binding) -> str:
        return self._bound.words if binding.action == "more" else binding.description

    def action_more(self) -> None:
        self.choose(RaiseBound(self.kind, self._bound.step))

    def action_other(self) -> None:
        self.ask(f"how many more {self._bound.unit}?", self._typed)

    def _typed(self, line: CardInput) -> None:
        found = _AMOUNT.fullmatch(line.value.strip())
        amount = float(found[1]) * self._bound.scale if found else 0.0
        if amount <= 0 or (self._bound.whole and amount != int(amount)):
            self.notify(f"{one_line(line.value, 40)!r} is not a number of {self._bound.unit}", markup=False)
            return
        self.choose(RaiseBound(self.kind, amount))

    def action_finish(self) -> None:
        self.choose(Finish())
