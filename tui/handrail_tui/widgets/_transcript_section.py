"""The rows of one item of the transcript."""

from __future__ import annotations

from handrail_tui.view.items import CompactionItem, EndItem, NoteItem, PersonItem, TranscriptItem, TurnItem
from handrail_tui.widgets._turn import TurnRows
from handrail_tui.widgets.transcript_items import compaction_rows, end_rows, note_rows, said_rows
from handrail_tui.widgets.transcript_rows import Look, Row, blank


class Section:
    """The rows of one item, and whether they are as they should be."""

    __slots__ = ("item", "rows", "stale", "turn", "unfolded")

    def __init__(self, item: TranscriptItem) -> None:
        self.item = item
        self.rows: list[Row] = []
        self.stale = True
        self.unfolded = False
        self.turn = TurnRows(item) if isinstance(item, TurnItem) else None

    def make(self, look: Look, *, current: bool) -> None:
        """Make the rows, with air above them."""
        match self.item:
            case TurnItem():
                assert self.turn is not None
                rows = self.turn.rows(look, current=current)
            case PersonItem() as said:
                rows = said_rows(said, look)
            case NoteItem() as note:
                rows = note_rows(note, look)
            case CompactionItem() as compaction:
                rows = compaction_rows(compaction, look)
            case EndItem() as end:
                rows = end_rows(end, look)
        self.rows = [blank(), *rows]
        self.stale = self.turn is not None and self.turn.behind
