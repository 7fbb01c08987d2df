"""«Stalled»: a stream is open, and nothing has come for too long."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from handrail.clock import Clock
from handrail_tui.controller.cards import KeepWaiting, RetryNow, Stop
from handrail_tui.view.text import countdown, seconds
from handrail_tui.widgets.bindings import bindings
from handrail_tui.widgets.cards._parts import styled
from handrail_tui.widgets.cards.base import Accent, Card
from handrail_tui.widgets.cards.guard import InputGuard


class StalledCard(Card):
    """How long there has been no data. Long thinking is healthy, so waiting is the default."""

    ACCENT: ClassVar[Accent] = "waiting"
    BINDINGS = bindings("stalled")

    def __init__(
        self,
        since: float,
        clock: Clock,
        guard: InputGuard | None = None,
        *,
        idle_timeout_s: float | None = None,
    ) -> None:
        """`since` is the moment of the last data; after `idle_timeout_s` it is asked again (rule L10)."""
        super().__init__(clock, guard)
        self.since, self.idle_timeout_s = since, idle_timeout_s

    def head(self) -> Content:
        return self.title(
            "No data", f"for {countdown(self.clock.now() - self.since)}; the stream is still open"
        )

    def body(self) -> Iterable[Widget]:
        if self.idle_timeout_s is not None:
            words = f"long thinking can look like this; after {seconds(self.idle_timeout_s)} it is retried"
            yield Static(styled(words, "$dim"), classes="card--why")

    def action_wait(self) -> None:
        self.choose(KeepWaiting())

    def action_retry(self) -> None:
        self.choose(RetryNow())

    def action_stop(self) -> None:
        self.choose(Stop())
