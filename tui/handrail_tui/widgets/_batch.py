"""Rows of a tool batch: one row a call, its live output while it runs, its result when someone opens it."""

from __future__ import annotations

import re
from typing import Final

from textual.content import Content

from handrail_tui.view.items import BatchItem, CallItem, CallState, SubmissionVerdict
from handrail_tui.view.text import cut_lines, one_line, plural, seconds
from handrail_tui.widgets._transcript_values import value_lines
from handrail_tui.widgets.cards import diff
from handrail_tui.widgets.transcript_rows import (
    BAR,
    INDENT,
    Look,
    Row,
    at_most,
    beside,
    fold_row,
    rows_of,
    styled,
)

SIGNS: Final[dict[CallState, tuple[str, str]]] = {
    "queued": ("○", "$faint"),
    "asking": ("?", "bold $needs-you"),
    "running": ("●", "$accent"),
    "ok": ("✓", "$accepted"),
    "error": ("✗", "$rejected"),
    "denied": ("✗", "$waiting"),
    "skipped": ("–", "$faint"),
}
_GUTTER: Final = INDENT + BAR
_DEEP: Final = _GUTTER + "    "
_LIVE_LINES: Final = 3
_ERROR_LINES: Final = 4
_DIFF_LINES: Final = 12
_RESULT_LINES: Final = 40
_ONE_LINE: Final = 60
_WIDEST: Final = 84
"""Cells behind which durations do not move away any further: the eye must find the row again."""
_FOLD_FROM: Final = 6
_COUNTS: Final = re.compile(r"([+][0-9][0-9,]*)|([-−][0-9][0-9,]*)(?![0-9])")


def batch_rows(batch: BatchItem, look: Look, *, current: bool) -> list[Row]:
    """A batch. A finished one of many calls folds by itself once it is not the newest any more."""
    done = batch.seconds is not None
    foldable = done and not current and len(batch.calls) >= _FOLD_FROM
    opened = look.is_open(batch, default=not foldable)
    took = batch.seconds if batch.seconds is not None else max(0.0, look.now - batch.started_at)
    head = styled(
        (_GUTTER, "$line"),
        (f"batch of {len(batch.calls)}", "bold $tool"),
        (f"  {seconds(took)}", "$dim"),
        ("  in order" if batch.sequential and len(batch.calls) > 1 else "", "$faint"),
    )
    if foldable and not opened:
        row = fold_row(_gist(batch, took), False, batch, look.width, _GUTTER)
        return [row]
    rows = [] if len(batch.calls) == 1 else [Row(head, batch if foldable else None)]
    names = min(14, max((len(call.name) for call in batch.calls), default=0))
    for call in batch.calls:
        rows += _call_rows(call, names, look)
    votes = votes_words(batch)
    several = len(batch.calls) > 1 or any(call.verdict for call in batch.calls)
    if votes and (batch.votes or (look.has_output and several)):
        rows.append(Row(styled((_GUTTER, "$line"), (votes, "$dim"))))
    return rows


def votes_words(batch: BatchItem) -> str:
    """Who ends the loop (rule L7); empty when no call does."""
    if batch.votes is None or not batch.of:
        return ""
    if not batch.votes:
        return ""
    if batch.ends:
        return "this call ends the loop" if batch.of == 1 else f"all {batch.of} end the loop"
    return f"{batch.votes} of {batch.of} would end the loop; the other calls continue"


def _gist(batch: BatchItem, took: float) -> str:
    bad = sum(call.state != "ok" for call in batch.calls)
    names: dict[str, int] = {}
    for call in batch.calls:
        names[call.name] = names.get(call.name, 0) + 1
    tools = ", ".join(f"{name} {count}" if count > 1 else name for name, count in names.items())
    return f"batch of {len(batch.calls)}  {seconds(took)}  {tools}" + (f", {bad} failed" if bad else "")


def _call_rows(call: CallItem, names: int, look: Look) -> list[Row]:
    sign, style = SIGNS[call.state]
    width = min(look.width, _WIDEST)
    if call.seconds is not None and call.state in ("ok", "error"):
        took = styled((seconds(call.seconds), "$dim"))
    elif call.state == "running" and call.started_at is not None:
        took = styled((seconds(look.now - call.started_at), "$accent"))
    else:
        took = styled(("" if call.done else call.state, "$dim"))
    left = Content.assemble(
        (_GUTTER, "$line"),
        (f"{sign} ", style),
        (call.name.ljust(names), "$foreground" if call.state != "skipped" else "$faint"),
        ("  " + call.title, "$dim"),
        _outcome(call),
    )
    foldable = call.done and bool(call.text.strip() or call.diff)
    rows = [Row(beside(left, took, width), call if foldable else None)]
    if call.verdict is not None:
        return rows + _verdict_rows(call.verdict, look)
    if call.state in ("running", "asking"):
        lines = call.tail.last(_LIVE_LINES)
        return rows + [row for line in lines for row in _deep(Content.styled(line, "$dim"), look)[:1]]
    return rows + (_result_rows(call, look) if foldable else [])


def _outcome(call: CallItem) -> Content:
    """What came of it in a few words; counts of an edit in their colours."""
    if call.verdict is not None:
        return _verdict_words(call.verdict)
    words = call.summary
    if call.state in ("denied", "skipped"):
        words = call.state
    elif not words and call.done and call.lines:
        words = one_line(call.text, _ONE_LINE) if call.lines == 1 else plural(call.lines, "line")
    if not words:
        return Content("")
    content = Content.styled(words, "$dim")
    for match in _COUNTS.finditer(words) if call.diff else ():
        content = content.stylize("$accepted" if match[1] else "$rejected", match.start(), match.end())
    return styled("  ") + content


def _verdict_words(verdict: SubmissionVerdict) -> Content:
    if verdict.accepted:
        return styled("  ", ("accepted", "bold $accepted"))
    of = f" {verdict.attempt} of {verdict.of}" if verdict.of else ""
    return styled("  ", (f"rejected{of}", "bold $rejected"))


def _result_rows(call: CallItem, look: Look) -> list[Row]:
    """The result, folded unless it went wrong; a short diff is shown as it is."""
    opened = look.is_open(call)
    if call.diff:
        rows = [row for line in diff.render(call.diff).split("\n") for row in _deep(line, look)]
        return (
            at_most(rows, _DIFF_LINES, (call, "diff"), look, _DEEP)
            if opened or len(rows) <= _DIFF_LINES
            else []
        )
    if not opened and call.state == "ok":
        return []
    style = "$rejected" if call.state == "error" else "$dim"
    lines = cut_lines(call.text.rstrip("\n")).split("\n")
    shown = lines[: _ERROR_LINES if not opened else len(lines)]
    rows = [row for line in shown for row in _deep(Content.styled(line, style), look)]
    if not opened:
        more = [Row(styled((_DEEP, "$line"), (plural(len(lines) - len(shown), "more line"), "$faint")), call)]
        return rows + (more if len(lines) > len(shown) else [])
    return at_most(rows, _RESULT_LINES, (call, "all"), look, _DEEP)


def _deep(content: Content, look: Look) -> list[Row]:
    return rows_of(content, look.width, indent=_DEEP)


def _verdict_rows(verdict: SubmissionVerdict, look: Look) -> list[Row]:
    """The accepted value as a tree, or each field that was wrong (rule S4)."""
    if verdict.accepted:
        return [row for line in value_lines(verdict.value) for row in _deep(line, look)]
    rows: list[Row] = []
    for error in verdict.errors:
        path = (f"{error.path}: ", "$foreground")
        rows += _deep(styled(path if error.path else "", (error.message, "$dim")), look)
    return rows
