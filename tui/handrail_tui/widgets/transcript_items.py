"""Rows of everything in the transcript that is not a turn: the person's words, notes, compactions, the end."""

from __future__ import annotations

from typing import Final

from handrail_tui.view.items import CompactionItem, EndItem, Level, NoteItem, PersonItem, Tone
from handrail_tui.view.text import count, line_count, plural
from handrail_tui.widgets.transcript_rows import (
    BAR,
    INDENT,
    Look,
    Row,
    at_most,
    fold_row,
    rows_of,
    styled,
    text_rows,
)

TONES: Final[dict[Tone, str]] = {
    "plain": "$foreground",
    "decision": "$decision",
    "waiting": "$waiting",
    "needs-you": "$needs-you",
    "accepted": "$accepted",
    "rejected": "$rejected",
}
_NOTES: Final[dict[Level, tuple[str, str]]] = {
    "info": ("·", "$dim"),
    "warning": ("!", "$waiting"),
    "error": ("✗", "$rejected"),
}
_SAID: Final = {"prompt": "", "steer": "  steering", "follow_up": "  next"}
_SAID_LINES: Final = 20
_GUTTER: Final = INDENT + BAR


def said_rows(said: PersonItem, look: Look) -> list[Row]:
    """What the person said, and what was piped in beside it."""
    rows = [Row(styled(("you", "bold $person"), (_SAID[said.kind], "$dim")))]
    rows += at_most(text_rows(said.text, look.width), _SAID_LINES, said, look)
    if said.context:
        key = (said, "context")
        opened = look.is_open(key)
        rows.append(fold_row(f"{plural(line_count(said.context), 'line')} piped in", opened, key, look.width))
        rows += text_rows(said.context, look.width, _GUTTER, "$dim") if opened else []
    return rows


def note_rows(note: NoteItem, look: Look) -> list[Row]:
    """A notice, a warning, an answer that was given."""
    sign, style = _NOTES[note.level]
    rows: list[Row] = []
    for n, line in enumerate(note.text.split("\n")):
        content = styled((line, "$foreground" if note.level == "error" else "$dim"))
        if n == 0:
            content = styled((f"{sign} ", style)) + content
        rows += rows_of(content, look.width, indent="" if n == 0 else INDENT, hang=INDENT)
    return at_most(rows, _SAID_LINES, note, look)


def compaction_rows(item: CompactionItem, look: Look) -> list[Row]:
    """How much became how little, and the summary when it is opened."""
    messages = f"{plural(item.messages, 'message')}, " if item.messages else ""
    if item.ok is None:
        words = f"compacting {messages}{count(item.before)} tokens"
        return [
            Row(styled(("● ", "$decision"), (words, "$dim"), (f"  {item.why}" if item.why else "", "$faint")))
        ]
    if not item.ok:
        return rows_of(styled(("✗ ", "$rejected"), (f"not compacted: {item.failed}", "$dim")), look.width)
    opened = look.is_open(item)
    words = f"compacted: {messages}{count(item.before)} tokens became {count(item.after or 0)}"
    rows = [fold_row(words, opened, item, look.width, "")]
    return rows + (text_rows(item.summary, look.width, _GUTTER, "$dim") if opened else [])


def end_rows(end: EndItem, look: Look) -> list[Row]:
    """The outcome, in plain words."""
    rows = rows_of(styled((end.words, f"bold {TONES[end.tone]}"), (f"  {end.detail}", "$dim")), look.width)
    return rows + (text_rows(end.error, look.width, INDENT, "$dim") if end.error else [])
