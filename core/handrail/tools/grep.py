"""The tool `grep`: lines that match, using ripgrep if it is installed."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import Field

from handrail.messages import clean
from handrail.tools._globs import Glob
from handrail.tools._search import LIMIT_S, Query, glob_of, parsed, records, ripgrep, text_of, where
from handrail.tools._typed import Arguments, TypedTool
from handrail.tools.base import Preview, ToolContext, ToolResult
from handrail.tools.output import MAX_BYTES, count, fit, one_line
from handrail.tools.paths import Place, locate, name_of

MAX_LINE: Final = 500
"""The characters shown of a line, around its first match."""

_BEFORE: Final = 100


class GrepArguments(Arguments):
    pattern: str = Field(min_length=1, description="a regular expression; it is matched line by line")
    path: str = Field(".", description="the folder or file to search")
    glob: str = Field(
        "", description="only files that fit, as *.py or src/**/*.{ts,tsx}; !*.md leaves some out"
    )
    ignore_case: bool = Field(False, description="upper and lower case are alike")
    literal: bool = Field(False, description="the pattern is plain text")
    context: int = Field(0, ge=0, le=50, description="lines to show before and after a match")
    limit: int = Field(100, ge=1, le=2_000, description="how many matching lines at most")


class GrepTool(TypedTool[GrepArguments]):
    """Searches files that git does not ignore, hidden ones too. `rg` is ripgrep's path; None: use our own
    search."""

    name = "grep"
    description = (
        "Search files for a regular expression. Gives path:line: text, sorted by path. "
        "Files that .gitignore names and binary files are left out."
    )

    def __init__(self, rg: Callable[[], str | None] = ripgrep) -> None:
        super().__init__(GrepArguments)
        self._rg = rg

    def preview(self, args: GrepArguments, ctx: ToolContext) -> Preview:
        place = locate(args.path, ctx)
        title = args.pattern + (f" in {place.shown}" if place.shown != "." else "")
        title += f" ({args.glob})" if args.glob else ""
        pattern = f"grep in {place.exact}"
        return Preview(one_line(title), pattern=pattern, outside=place.outside, shows=place.shows)

    async def run(self, args: GrepArguments, ctx: ToolContext) -> ToolResult:
        place = await ctx.clock.in_thread(lambda: locate(args.path, ctx))
        ctx.require_shown(place.shows)
        root, file = await ctx.clock.in_thread(lambda: where(place))
        query = Query(
            str(root),
            file,
            args.pattern,
            args.literal,
            args.ignore_case,
            args.context,
            "" if file else args.glob,
        )
        found = _Found(args, place if file is None else None, place.shown)
        try:
            async with aclosing(records(ctx, query, self._rg())) as events:
                async for event in events:
                    found.take(event)
                    if found.full:
                        break
        except TimeoutError:
            found.late = True
        return found.result()


@dataclass(slots=True)
class _Row:
    path: str
    line: int
    text: str
    matches: bool

    def __str__(self) -> str:
        mark = ":" if self.matches else "-"
        return f"{self.path}{mark}{self.line}{mark} {self.text}"


@dataclass(slots=True)
class _Found:
    """Collects the program's output, file by file: only at the end of a file is it known not to be binary."""

    args: GrepArguments
    folder: Place | None
    shown: str
    rows: list[_Row] = field(default_factory=list)
    open: list[_Row] = field(default_factory=list)
    matches: int = 0
    full: bool = False
    late: bool = False
    glob: Glob | None = None

    def __post_init__(self) -> None:
        self.glob = glob_of(self.args.glob) if self.folder is not None else None

    def take(self, event: bytes) -> None:
        """One record of the program."""
        record = parsed(event)
        if record is None:
            return
        kind, data = record["type"], record["data"]
        if kind in ("match", "context"):
            self._take_line(data, matches=kind == "match")
        elif kind == "end":
            if data["binary_offset"] is None:
                self._close()
            self.open.clear()

    def _take_line(self, data: dict[str, Any], *, matches: bool) -> None:
        path = text_of(data["path"]).removeprefix("./")
        if self.glob is not None and not self.glob.match(path):
            return
        if matches and self.matches + sum(row.matches for row in self.open) >= self.args.limit:
            self.full = True
            self._close()
            return
        text = _excerpt(text_of(data["lines"]).rstrip("\r\n"), data["start"])
        self.open.append(_Row(self._path(path), data["line_number"], text, matches))

    def _close(self) -> None:
        last = max((row.line for row in self.open if row.matches), default=0)
        self.rows += [row for row in self.open if row.line <= last + self.args.context]
        self.matches += sum(row.matches for row in self.open)
        self.open = []

    def _path(self, path: str) -> str:
        if self.folder is None:
            return self.shown
        return name_of(path) if self.shown == "." else f"{self.shown.rstrip('/')}/{name_of(path)}"

    def result(self) -> ToolResult:
        self._close()
        late = (
            f"[ended after {LIMIT_S:g} s: search a smaller folder, or a simpler pattern]" if self.late else ""
        )
        if not self.rows:
            text = "\n".join(part for part in ("[no matches]", late) if part)
            return ToolResult(text, is_error=self.late, summary="timed out" if self.late else "no matches")
        fitted = fit(self._lines(), max_lines=10**9, max_bytes=MAX_BYTES)
        notes = [self._more()] if self.full else []
        if fitted.cut:
            notes.append(
                f"[{count(fitted.of - len(fitted.lines), 'line')} more did not fit: narrow the search]"
            )
        text = "\n".join([*fitted.lines, *(["", *notes, late] if notes or late else [])]).rstrip("\n")
        files = len({row.path for row in self.rows})
        matches = f"{self.matches:,}{'+' if self.full else ''}"
        summary = f"{matches} {'match' if matches == '1' else 'matches'} in {count(files, 'file')}"
        return ToolResult(clean(text), summary=summary)

    def _lines(self) -> list[str]:
        lines: list[str] = []
        before: _Row | None = None
        for row in self.rows:
            if self.args.context and before and (row.path, row.line) != (before.path, before.line + 1):
                lines.append("--")
            lines.append(str(row))
            before = row
        return lines

    def _more(self) -> str:
        call = {**self.args.model_dump(exclude_unset=True), "limit": min(2_000, self.args.limit * 2)}
        more = (
            "" if self.args.limit >= 2_000 else f", or {GrepTool.name} {json.dumps(call, ensure_ascii=False)}"
        )
        return f"[{count(self.matches, 'match', 'matches')} shown, there are more: narrow the search{more}]"


def _excerpt(line: str, start: int) -> str:
    """A line around its match, which starts at byte `start`."""
    if len(line) <= MAX_LINE:
        return line
    at = len(line.encode("utf-8", "surrogateescape")[:start].decode("utf-8", "replace"))
    begin = 0 if at < MAX_LINE - _BEFORE else at - _BEFORE
    end = begin + MAX_LINE
    after = f" [… {len(line) - end:,} more characters]" if end < len(line) else ""
    return ("…" if begin else "") + line[begin:end] + after
