"""What the run does and its limits: a column beside the transcript, or one line when there is no room for it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from textual.content import Content

from handrail.clock import Clock
from handrail_tui.view.state import Phase, ViewState
from handrail_tui.view.text import about, count, countdown, money
from handrail_tui.widgets._queue import queue_lines, queue_words
from handrail_tui.widgets.decisions import decision_lines
from handrail_tui.widgets.drawn import Drawn
from handrail_tui.widgets.transcript_rows import bar, beside, styled

_WORDS: Final[dict[Phase, tuple[str, str]]] = {
    "idle": ("READY", "$dim"),
    "asking": ("RUNNING", "$accepted"),
    "streaming": ("RUNNING", "$accepted"),
    "tools": ("RUNNING", "$accepted"),
    "compacting": ("COMPACTING", "$decision"),
    "retrying": ("RETRYING", "$decision"),
    "waiting": ("WAITING", "$waiting"),
    "approval": ("ASKS YOU", "$needs-you"),
    "needs-you": ("NEEDS YOU", "$needs-you"),
    "finished": ("FINISHED", "$accepted"),
    "interrupted": ("INTERRUPTED", "$waiting"),
}
_OUTCOMES: Final = {
    "completed": ("DONE", "$accepted"),
    "submitted": ("SUBMITTED", "$accepted"),
    "cancelled": ("STOPPED", "$waiting"),
    "turn-limit": ("TURN LIMIT", "$waiting"),
    "budget": ("BUDGET SPENT", "$waiting"),
    "usage-limit": ("USAGE LIMIT", "$waiting"),
    "human-required": ("NEEDS YOU", "$needs-you"),
}
_LABEL: Final = 13


def status_word(view: ViewState, now: float, stopping: bool) -> tuple[str, str]:
    """The one word for what happens, and its colour."""
    if view.finished is not None:
        return _OUTCOMES.get(view.finished.outcome, ("FAILED", "$rejected"))
    if stopping:
        return "STOPPING", "$waiting"
    if view.stalled(now) is not None:
        return "STALLED", "$waiting"
    return _WORDS[view.phase]


class _StatusWidget(Drawn):
    """Draws itself from the state and the clock."""

    def __init__(self, view: ViewState, clock: Clock, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.view, self.clock = view, clock
        self.stopping = False


class StatusColumn(_StatusWidget):
    """The column: state, bounds, decisions, queue."""

    DEFAULT_CSS = Path(__file__).with_suffix(".tcss").read_text(encoding="utf-8")

    def draw(self) -> Content:
        width, height = self.content_size
        now, view = self.clock.now(), self.view
        word, style = status_word(view, now, self.stopping)
        elapsed = styled((f"{countdown(view.watch.read(now)):0>5}", "$dim"))
        lines = [beside(styled((word, f"bold {style}")), elapsed, width), Content("")]
        lines += self._meters(width)
        queue = queue_lines(view, width)
        if view.decisions:
            room = height - len(lines) - 2 - (len(queue) + 2 if queue else 0)
            lines += [Content(""), styled(("DECISIONS", "bold $faint"))]
            lines += decision_lines(view.decisions, width, max(1, room))
        if queue:
            lines += [Content(""), styled(("QUEUE", "bold $faint")), *queue]
        return Content("\n").join(lines[:height])

    def _meters(self, width: int) -> list[Content]:
        m = self.view.meters
        turn = styled("turn ", (str(m.turn), "bold"), (f" of {m.max_turns}" if m.max_turns else "", "$dim"))
        room = width - turn.cell_length - 3
        if m.max_turns and room >= 6:
            turn = turn + "   " + bar(room, m.turn / m.max_turns)
        lines = [turn]
        if self.view.header.has_output:
            rejected = (
                f"{m.rejected} of {m.max_attempts} rejected" if m.rejected else f"0 of {m.max_attempts}"
            )
            lines.append(_fact("submissions", rejected, "$rejected" if m.rejected else "$dim"))
        ledger = m.ledger
        spent = ledger.continues + ledger.resumes
        if spent:
            lines.append(
                _fact("continued", f"{spent} of {m.max_resumes}" if m.max_resumes is not None else f"{spent}")
            )
        if ledger.resumes and m.stream_retries is not None:
            lines.append(_fact("resumed", f"{ledger.resumes} of {m.stream_retries}"))
        tokens = count(m.usage.total) + (f" of {count(m.max_total_tokens)}" if m.max_total_tokens else "")
        lines.append(_fact("tokens", f"{tokens:<9}{cost_words(self.view)}".rstrip()))
        if m.deadline_s is not None:
            lines.append(_fact("deadline", about(m.deadline_s)))
        if not m.recovery and self.view.watch.started_at is not None and not self.view.header.has_output:
            lines.append(_fact("recovery", "off"))
        return [line.truncate(width, ellipsis=True) for line in lines]


class StatusLine(_StatusWidget):
    """The same figures on one line, the least needed ones dropped first."""

    DEFAULT_CSS = "StatusLine { height: 1; width: 1fr; background: $panel; padding: 0 2; }"

    def draw(self) -> Content:
        now, view, m = self.clock.now(), self.view, self.view.meters
        word, style = status_word(view, now, self.stopping)
        turn = f"turn {m.turn}/{m.max_turns}" if m.max_turns else f"turn {m.turn}"
        spent = m.ledger.continues + m.ledger.resumes
        # In the order in which they are dropped where there is no room, the last one first.
        parts = [
            (turn, "$foreground"),
            (f"{countdown(view.watch.read(now)):0>5}", "$dim"),
            (f"sub {m.rejected}/{m.max_attempts} rejected" if m.rejected else "", "$rejected"),
            (f"cont {spent}/{m.max_resumes}" if spent else "", "$decision"),
            (queue_words(view), "$person"),
            (cost_words(view).split(" of ")[0], "$dim"),
            (count(m.usage.total) if m.usage.total else "", "$dim"),
            (f"last: {view.decisions[-1].word} {view.decisions[-1].rest}" if view.decisions else "", "$dim"),
        ]
        line = styled((word, f"bold {style}"))
        for text, colour in parts:
            if text and line.cell_length + 2 + len(text) <= self.content_size.width:
                line = line + "  " + styled((text, colour))
        return line


def cost_words(view: ViewState) -> str:
    """`$0.21 of 2.00`; nothing while a price is unknown."""
    m = view.meters
    if m.cost is None:
        return ""
    return money(m.cost) + (f" of {m.max_cost:.2f}" if m.max_cost is not None else "")


def _fact(name: str, value: str, style: str = "$dim") -> Content:
    return styled((name.ljust(_LABEL), "$dim"), (value, style))
