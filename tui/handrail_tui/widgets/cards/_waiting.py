"""«Usage limit»: the run waits until a moment; why, how long, and what else can be done (rule U8)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from handrail.clock import Clock
from handrail.events import WaitStarted
from handrail_tui.controller.cards import AnotherModel, Postpone, SkipWait, Stop
from handrail_tui.controller.later import HINT, moment
from handrail_tui.view.text import clean_for_terminal, cut_lines, local_time, one_line, remaining
from handrail_tui.widgets.bindings import bindings
from handrail_tui.widgets.cards._parts import CardInput, Countdown, styled
from handrail_tui.widgets.cards.base import Accent, Card
from handrail_tui.widgets.cards.guard import InputGuard

_SHORT = 90


class WaitCard(Card):
    """The provider's own words, when it is asked again, how long that is, and where that moment comes from."""

    ACCENT: ClassVar[Accent] = "waiting"
    BINDINGS = bindings("wait")

    def __init__(self, event: WaitStarted, clock: Clock, guard: InputGuard | None = None) -> None:
        super().__init__(clock, guard)
        self.event = event

    def head(self) -> Content:
        words = "Usage limit" if self.event.reason == "usage-limit" else "The provider asks for a pause"
        return self.title(words, one_line(self.event.words, _SHORT))

    def body(self) -> Iterable[Widget]:
        whole = clean_for_terminal(self.event.words).strip()
        if whole and whole != one_line(whole, _SHORT):
            yield Static(styled(cut_lines(whole), "$dim"), classes="card--words")

    def countdown(self) -> Countdown:
        return Countdown("$waiting", self._parts)

    def _parts(self) -> tuple[Content, float, Content]:
        e, now = self.event, self.clock.now()
        left = e.until - now
        share = 1.0 - left / e.seconds if e.seconds > 0 else 1.0
        before = Content.assemble(
            styled("asks again at "),
            styled(local_time(e.until, now), "bold"),
            styled("   in ", "$dim"),
            styled(remaining(left), "bold $waiting"),
        )
        return before, share, styled(self._source(), "$dim")

    def _source(self) -> str:
        e = self.event
        if e.poll is not None:
            return f"provider gave no time; try {e.poll}" + (f" of {e.polls}" if e.polls else "")
        return one_line(e.source, 40)

    def hint(self) -> str:
        return "" if self.has_class("-compact") else "what you type is queued"

    def action_skip(self) -> None:
        self.choose(SkipWait())

    def action_later(self) -> None:
        self.ask(f"ask again when? {HINT}", self._postpone)

    def _postpone(self, line: CardInput) -> None:
        try:
            until = moment(line.value, now=self.clock.now(), until=self.event.until)
        except ValueError as error:
            self.app.notify(f"{error}.", severity="warning", markup=False)
            return
        self.stop_asking()
        self.choose(Postpone(until))

    def action_model(self) -> None:
        self.choose(AnotherModel())

    def action_stop(self) -> None:
        self.choose(Stop())
