"""Rows of a turn: its heading, the attempts that broke (kept, dim, folded), the one that counts."""

from __future__ import annotations

from textual.content import Content

from handrail_tui.view.items import AttemptItem, ReplyBlock, TurnItem
from handrail_tui.view.text import one_line, plural, seconds
from handrail_tui.widgets._batch import batch_rows
from handrail_tui.widgets.reply import ReplyRows
from handrail_tui.widgets.transcript_rows import (
    BAR,
    FOLDED,
    INDENT,
    OPEN,
    Look,
    Row,
    fold_row,
    rows_of,
    styled,
    text_rows,
    with_air,
)

_LIVE_THOUGHTS = 3
_QUOTED_LINES = 2
_OLD = INDENT + BAR


class TurnRows:
    """Makes the rows of one turn, keeping what was made of each block."""

    def __init__(self, turn: TurnItem) -> None:
        self.turn = turn
        self._blocks: dict[tuple[ReplyBlock, str], ReplyRows] = {}
        self._next: dict[tuple[ReplyBlock, str], ReplyRows] = {}
        self._asked: list[ReplyRows] = []  # what the last rows were made of

    def rows(self, look: Look, *, current: bool) -> list[Row]:
        """All rows. `current`: nothing stands behind this turn yet."""
        attempt = self.turn.current
        self._asked.clear()
        old = [row for before in self.turn.attempts[:-1] for row in self._old_rows(before, look)]
        heading = rows_of(_heading(attempt), look.width, hang=INDENT)
        groups: list[list[Row]] = []
        for block in attempt.blocks:
            made = self._block_rows(attempt, block, look)
            # A folded thought belongs to the text beside it: no air between them.
            if groups and (_folded(made) or _folded(groups[-1])):
                groups[-1] = groups[-1] + made
            else:
                groups.append(made)
        if attempt.batch is not None and attempt.batch.calls:
            groups.append(batch_rows(attempt.batch, look, current=current))
        if attempt.writing:
            groups.append([_writing_row(attempt)])
        if attempt.fault and not attempt.superseded and not attempt.streaming:
            fault = styled(("✗ ", "$rejected"), (attempt.fault, "$dim"))
            groups.append(rows_of(fault, look.width, indent=INDENT, hang=INDENT * 2))
        elif attempt.superseded:
            groups.append(rows_of(styled((_kept(attempt), "$faint")), look.width, indent=INDENT))
        return [*heading, *old, *with_air(groups)]

    def _block_rows(self, attempt: AttemptItem, block: ReplyBlock, look: Look) -> list[Row]:
        streaming = attempt.streaming and block.ended_at is None
        if block.kind == "thinking":
            return self._thinking_rows(block, look, streaming)
        rows = self._made(block, look, INDENT, "$dim" if attempt.superseded else "")
        if streaming and rows:
            last = rows[-1]
            rows = [*rows[:-1], Row(last.content + styled(("▌", "$accent")))]
        return rows

    def _thinking_rows(self, block: ReplyBlock, look: Look, streaming: bool) -> list[Row]:
        opened = look.is_open(block, default=look.thinking)
        end = block.ended_at if block.ended_at is not None else look.now
        took = seconds(max(0.0, end - block.started_at))
        if streaming:
            rows = self._made(block, look, _OLD, "$faint")
            shown = rows if opened else rows[-_LIVE_THOUGHTS:]
            return [fold_row(f"thinking  {took}", opened, block, look.width), *shown]
        words = f"thought for {took}, {plural(block.lines, 'line')}"
        handle = fold_row(words, opened, block, look.width)
        return [handle, *(self._made(block, look, _OLD, "$dim") if opened else [])]

    @property
    def behind(self) -> bool:
        """Whether some of the rows that were asked for last are still to be made.

        Blocks that are folded, or drawn in another style by now, do not count: nobody would ever make them.
        """
        return any(made.behind for made in self._asked)

    def _made(self, block: ReplyBlock, look: Look, indent: str, style: str) -> list[Row]:
        """The rows of a block. For another width they are made aside, and taken when they are whole."""
        key = (block, style)
        made = self._blocks.get(key)
        if made is None:
            made = self._blocks[key] = ReplyRows(block, look.width, indent, style)
        elif made.width != look.width:
            fresh = self._next.get(key)
            if fresh is None or fresh.width != look.width:
                fresh = self._next[key] = ReplyRows(block, look.width, indent, style)
            fresh.update(look.until)
            self._asked.append(fresh)
            if not fresh.behind:
                made = self._blocks[key] = self._next.pop(key)
        self._asked.append(made)
        return made.update(look.until)

    def _old_rows(self, attempt: AttemptItem, look: Look) -> list[Row]:
        """An attempt that broke: one line of it, all of it when opened."""
        opened = look.is_open(attempt)
        # The heading of the turn tells the fault of the last one.
        told = attempt is self.turn.attempts[-2]
        first = f"request {attempt.request}, {_kept(attempt, told=told)}"
        said = one_line(attempt.text, 400)
        words = f"{first}: “{said}”" if said and not opened else first
        line = styled((OPEN if opened else FOLDED, "$faint"), (words, "$faint"))
        rows = rows_of(line, look.width, indent=_OLD)
        if len(rows) > _QUOTED_LINES:
            end = rows[_QUOTED_LINES - 1]
            end.content = end.content.truncate(look.width - 2) + styled(("…”", "$faint"))
            del rows[_QUOTED_LINES:]
        for row in rows:
            row.fold = attempt
        if opened:
            for block in attempt.blocks:
                rows += text_rows(block.text, look.width, _OLD + "  ", "$faint")
            if attempt.batch is not None:
                rows += batch_rows(attempt.batch, look, current=False)
        return rows


def _folded(rows: list[Row]) -> bool:
    return len(rows) == 1 and rows[0].fold is not None


def _heading(attempt: AttemptItem) -> Content:
    if attempt.heading:
        rest = styled((attempt.heading, "$dim"))
    elif attempt.streaming and attempt.blocks:
        rest = styled(("● streaming", "$accent"))
    elif attempt.streaming:
        rest = styled(("● waiting for the first words", "$dim"))
    else:
        rest = styled((seconds(attempt.seconds) if attempt.seconds is not None else "", "$dim"))
    return styled((f"turn {attempt.request}", "bold $dim"), "  ") + rest


def _kept(attempt: AttemptItem, *, told: bool = False) -> str:
    """What became of a broken attempt. `told`: its fault stands elsewhere."""
    kept = "the words so far were kept" if attempt.kept else "nothing could be kept"
    return kept if told else f"{attempt.fault}, {kept}"


def _writing_row(attempt: AttemptItem) -> Row:
    """Calls whose arguments are being written."""
    words = ", ".join(f"{w.name or '…'} ({plural(w.chars, 'character')})" for w in attempt.writing.values())
    calls = "a call" if len(attempt.writing) == 1 else plural(len(attempt.writing), "call")
    return Row(styled(INDENT, ("● ", "$tool"), (f"writes {calls}: {words}", "$dim")))
