"""«Finished»: the outcome in plain words, what came out, what it took, and where it is stored."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import ClassVar

from textual.binding import Binding
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from handrail.clock import Clock
from handrail.events import RunFinished
from handrail_tui.controller.cards import Close
from handrail_tui.view import wording
from handrail_tui.view.text import count, money, one_line, plural, seconds
from handrail_tui.widgets.bindings import bindings
from handrail_tui.widgets.cards._parts import styled
from handrail_tui.widgets.cards._value_tree import ValueTree
from handrail_tui.widgets.cards.base import Accent, Card
from handrail_tui.widgets.cards.guard import InputGuard


class FinishedCard(Card):
    """A run that ended as it should, or as the person wanted. What the model said last stands in the transcript."""

    ACCENT: ClassVar[Accent] = "accepted"
    BINDINGS = bindings("finished")

    def __init__(
        self,
        finished: RunFinished,
        clock: Clock,
        guard: InputGuard | None = None,
        *,
        started_at: float | None = None,
        journal: str = "",
        resume: str = "",
    ) -> None:
        """`journal` is the path of the session's file, `resume` the command that resumes it."""
        super().__init__(clock, guard)
        self.finished, self.started_at, self.journal, self.resume = finished, started_at, journal, resume

    def head(self) -> Content:
        words, _ = wording.outcome(self.finished)
        return self.title(words, "type to continue")

    def body(self) -> Iterable[Widget]:
        f = self.finished
        if f.outcome == "submitted":
            yield ValueTree(f.value)
        yield Static(self._figures(), classes="card--figures")

    def _figures(self) -> Content:
        f = self.finished
        parts = [plural(f.requests, "request")]
        if f.attempts:
            parts.append(plural(f.attempts, "rejected submission"))
        if self.started_at is not None:
            parts.append(seconds(f.at - self.started_at))
        if f.usage.total:
            parts.append(f"{count(f.usage.total)} tokens")
        if f.cost is not None:
            parts.append(money(f.cost))
        rows = [styled("   ".join(parts), "$dim")]
        if self.journal:
            rows.append(styled("journal  ", "$faint") + styled(one_line(self.journal, 300), "$dim"))
        if self.resume:
            rows.append(styled("resume   ", "$faint") + styled(one_line(self.resume, 300), "$dim"))
        return Content("\n").join(rows)

    def label(self, binding: Binding) -> str:
        if binding.action == "copy":
            return "copy the value" if self.finished.outcome == "submitted" else "copy the answer"
        return binding.description

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return bool(self._result()) if action == "copy" else True

    def _result(self) -> str:
        f = self.finished
        if f.outcome == "submitted":
            return json.dumps(f.value, ensure_ascii=False, indent=2, default=str)
        return f.text or ""

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(self._result())
        self.notify("In the clipboard", markup=False)

    def action_close(self) -> None:
        self.choose(Close())
