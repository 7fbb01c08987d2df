"""«Stopped»: what went wrong, in the provider's words and in plain ones, and what to do about it (rule R15)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from handrail.clock import Clock
from handrail.events import RunFinished
from handrail_tui.controller.cards import AnotherModel, EditKey, Finish, RetryNow
from handrail_tui.view import wording
from handrail_tui.view.text import clean_for_terminal, cut_lines, local_time, remaining
from handrail_tui.widgets.bindings import bindings
from handrail_tui.widgets.cards._parts import styled
from handrail_tui.widgets.cards.base import Accent, Card
from handrail_tui.widgets.cards.guard import InputGuard


class FailedCard(Card):
    """The class of the failure in plain words, the error as it came, and advice."""

    ACCENT: ClassVar[Accent] = "rejected"
    BINDINGS = bindings("failed")

    def __init__(self, finished: RunFinished, clock: Clock, guard: InputGuard | None = None) -> None:
        super().__init__(clock, guard)
        self.finished = finished

    def head(self) -> Content:
        f = self.finished
        if f.outcome == "no-submit":
            return self.title("No value", "the model ended without a submission")
        title = "Usage limit" if f.outcome == "usage-limit" else "Stopped"
        return self.title(title, wording.failure(f.class_ or "unknown"))

    def body(self) -> Iterable[Widget]:
        f, now = self.finished, self.clock.now()
        if error := clean_for_terminal(f.error or "").strip():
            yield Static(styled(cut_lines(error), "$dim"), classes="card--error")
        if f.until is not None:
            words = (
                f"it ends at {local_time(f.until, now)}, in {remaining(f.until - now)}: longer than max_wait"
            )
            yield Static(styled(words), classes="card--until")
        if advice := clean_for_terminal(f.advice).strip():
            yield Static(styled(cut_lines(advice)), classes="card--advice")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self.finished.class_ in ("auth", "billing") if action == "key" else True

    def action_retry(self) -> None:
        self.choose(RetryNow())

    def action_model(self) -> None:
        self.choose(AnotherModel())

    def action_key(self) -> None:
        self.choose(EditKey())

    def action_finish(self) -> None:
        self.choose(Finish())
