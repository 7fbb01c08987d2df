"""Queued messages: steering goes out before the next request, follow-ups after this task."""

from __future__ import annotations

from textual.content import Content

from handrail_tui.view.state import ViewState
from handrail_tui.view.text import one_line
from handrail_tui.widgets.transcript_rows import styled

_MOST = 5


def queue_lines(view: ViewState, width: int) -> list[Content]:
    """The queue in the order of delivery."""
    waiting = [("steer", m.text) for m in view.steering] + [("then", m.text) for m in view.follow_ups]
    lines = []
    for kind, text in waiting[:_MOST]:
        words = one_line(text, max(4, width - len(kind) - 5))
        line = styled(("↳ ", "$person"), (kind, "$foreground"), (f" “{words}”", "$dim"))
        lines.append(line.truncate(width, ellipsis=True))
    if len(waiting) > _MOST:
        lines.append(styled((f"{len(waiting) - _MOST} more", "$faint")))
    return lines


def queue_words(view: ViewState) -> str:
    """`2 queued`, or nothing."""
    waiting = len(view.steering) + len(view.follow_ups)
    return f"{waiting} queued" if waiting else ""
