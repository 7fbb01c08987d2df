"""The tool `find`: files by a glob pattern."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import aclosing
from typing import Final

from pydantic import Field

from handrail.messages import clean
from handrail.tools._search import LIMIT_S, Query, glob_of, records, ripgrep
from handrail.tools._typed import Arguments, TypedTool
from handrail.tools.base import Preview, ToolContext, ToolError, ToolResult
from handrail.tools.output import MAX_BYTES, count, fit, one_line
from handrail.tools.paths import locate, name_of, require_folder

_HINTS: Final = 20


class FindArguments(Arguments):
    pattern: str = Field(
        min_length=1,
        description="*.py anywhere, or src/**/test_*.{ts,js} from the folder; src/*/ finds folders",
    )
    path: str = Field(".", description="the folder to search")
    limit: int = Field(500, ge=1, le=5_000, description="how many paths at most")


class FindTool(TypedTool[FindArguments]):
    """Lists files that git does not ignore, hidden ones too. `rg` is ripgrep's path; None: use our own
    search."""

    name = "find"
    description = (
        "Find files by a glob pattern. Gives paths, sorted. Files that .gitignore names are left out. "
        "A pattern that ends with a slash finds folders."
    )

    def __init__(self, rg: Callable[[], str | None] = ripgrep) -> None:
        super().__init__(FindArguments)
        self._rg = rg

    def preview(self, args: FindArguments, ctx: ToolContext) -> Preview:
        place = locate(args.path, ctx)
        title = args.pattern + (f" in {place.shown}" if place.shown != "." else "")
        pattern = f"find in {place.exact}"
        return Preview(one_line(title), pattern=pattern, outside=place.outside, shows=place.shows)

    async def run(self, args: FindArguments, ctx: ToolContext) -> ToolResult:
        place = await ctx.clock.in_thread(lambda: locate(args.path, ctx))
        ctx.require_shown(place.shows)
        if not await ctx.clock.in_thread(place.real.is_dir):
            require_folder(place)
            raise ToolError(f"{place.shown} is not a folder")
        glob = glob_of(args.pattern)
        if glob is None:
            raise ToolError("the pattern is empty: use ls to see a folder")
        files: list[str] = []
        folders: list[str] = []
        seen: set[str] = set()
        late = False
        try:
            async with aclosing(records(ctx, Query(str(place.real)), self._rg())) as paths:
                async for each in paths:
                    path = os.fsdecode(each).removeprefix("./")
                    if glob.match(path):
                        files.append(path)
                    fresh = _above(path, seen)
                    seen.update(fresh)
                    folders += filter(glob.match, fresh)
        except TimeoutError:
            late = True
        found = [f"{folder}/" for folder in folders] if glob.folders else files
        lead = "" if place.shown == "." else place.shown.rstrip("/") + "/"
        return _result(args, [lead + name_of(each) for each in found], folders, late=late)


def _above(path: str, seen: set[str]) -> list[str]:
    """The parent folders of `path` that were not `seen`, outermost first."""
    found: list[str] = []
    folder = path.rpartition("/")[0]
    while folder and folder not in seen:
        found.insert(0, folder)
        folder = folder.rpartition("/")[0]
    return found


def _result(args: FindArguments, found: list[str], folders: list[str], *, late: bool) -> ToolResult:
    notes = [f"[ended after {LIMIT_S:g} s: search a smaller folder]"] if late else []
    if not found:
        said = "[no files match]"
        if folders:
            said = (
                f"[no files match, but folders do: {', '.join(f'{name_of(f)}/' for f in folders[:_HINTS])}]"
            )
        return ToolResult(
            clean("\n".join([said, *notes])), is_error=late, summary="timed out" if late else "no files"
        )
    fitted = fit(found, args.limit, MAX_BYTES)
    if fitted.cut:
        more = ""
        if len(fitted.lines) == args.limit < 5_000:
            call = {**args.model_dump(exclude_unset=True), "limit": min(5_000, len(found))}
            more = f", or {FindTool.name} {json.dumps(call, ensure_ascii=False)}"
        notes.insert(0, f"[{len(fitted.lines):,} of {len(found):,} shown: narrow the pattern{more}]")
    text = "\n".join([*fitted.lines, *(["", *notes] if notes else [])])
    what = count(len(found), "folder") if found[0].endswith("/") else count(len(found), "file")
    return ToolResult(clean(text), summary=what)
