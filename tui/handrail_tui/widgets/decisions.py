"""The decisions, newest last: when, what (its colour says what it means), why."""

from __future__ import annotations

from textual.content import Content

from handrail_tui.view.items import DecisionItem
from handrail_tui.view.text import clock_time
from handrail_tui.widgets.transcript_items import TONES
from handrail_tui.widgets.transcript_rows import styled

_PAD = " " * 9


def head(entry: DecisionItem) -> Content:
    """One decision on one line."""
    return styled(
        (clock_time(entry.at), "$dim"), " ", (entry.word, TONES[entry.tone]), f" {entry.rest}".rstrip()
    )


def decision_lines(entries: list[DecisionItem], width: int, room: int) -> list[Content]:
    """As many of the newest decisions as `room` lines hold; says how many more there are."""
    shown: list[list[Content]] = []
    used = 0
    for entry in reversed(entries):
        lines = [head(entry).truncate(width, ellipsis=True)]
        if entry.why:
            lines += [_PAD + line for line in _two_lines(entry.why, max(8, width - len(_PAD)))]
        if used + len(lines) > room - (len(shown) + 1 < len(entries)):
            break
        shown.append(lines)
        used += len(lines)
    hidden = len(entries) - len(shown)
    more = [styled((f"{hidden} earlier; ctrl+r: all", "$faint"))] if hidden and room else []
    return [*more, *(line for lines in reversed(shown) for line in lines)]


def _two_lines(words: str, width: int) -> list[Content]:
    """The words on at most two lines, with `…` where there are more of them."""
    lines = Content.styled(words, "$dim").wrap(width)
    if len(lines) <= 2:
        return lines
    return [lines[0], lines[1].truncate(width - 1) + styled(("…", "$dim"))]
