"""«Retrying»: a short planned pause before the same task is asked again (rules R4, R5)."""

from __future__ import annotations

from typing import ClassVar

from textual.content import Content

from handrail.clock import Clock
from handrail.events import WaitStarted
from handrail_tui.controller.cards import RetryNow, Stop
from handrail_tui.view.text import countdown, one_line
from handrail_tui.widgets.bindings import bindings
from handrail_tui.widgets.cards._parts import Countdown, styled
from handrail_tui.widgets.cards.base import Accent, Card
from handrail_tui.widgets.cards.guard import InputGuard


class RetryCard(Card):
    """Attempt k of n, why, and what was kept of the broken reply."""

    ACCENT: ClassVar[Accent] = "decision"
    SHORT: ClassVar[bool] = True
    BINDINGS = bindings("retry")

    def __init__(
        self, event: WaitStarted, clock: Clock, guard: InputGuard | None = None, *, kept: str = ""
    ) -> None:
        """`kept` says in words what of the reply stays in view: `the words so far were kept`."""
        super().__init__(clock, guard)
        self.event, self.kept = event, kept

    def head(self) -> Content:
        title = "Resuming" if self.event.decision == "resume" else "Retrying"
        why = one_line(self.event.words, 120) or one_line(self.event.reason, 40).replace("-", " ")
        return self.title(title, ", ".join(part for part in (why, one_line(self.kept, 80)) if part))

    def countdown(self) -> Countdown:
        return Countdown("$decision", self._parts)

    def _parts(self) -> tuple[Content, float, Content]:
        e = self.event
        left = e.until - self.clock.now()
        share = 1.0 - left / e.seconds if e.seconds > 0 else 1.0
        before = styled(self._counted()) + styled(" in ", "$dim")
        return before + styled(countdown(left), "bold $decision"), share, Content("")

    def _counted(self) -> str:
        """A retry is counted as the next attempt of all, a resume by its own allowance."""
        e = self.event
        if e.number is None or e.limit is None:
            return "retries"
        if e.decision == "retry":
            return f"attempt {e.number + 1} of {e.limit + 1}"
        return f"resume {e.number} of {e.limit}"

    def action_now(self) -> None:
        self.choose(RetryNow())

    def action_stop(self) -> None:
        self.choose(Stop())
