"""The tool `ls`: what is in a folder."""

from __future__ import annotations

import json
import os
from typing import Final

from pydantic import Field

from handrail.tools._folder import Folder
from handrail.tools._typed import Arguments, TypedTool
from handrail.tools.base import Preview, ToolContext, ToolError, ToolResult
from handrail.tools.output import MAX_BYTES, count, fit, size
from handrail.tools.paths import explain, locate, missing, name_of

_LIMIT: Final = 500


class LsArguments(Arguments):
    path: str = Field(".", description="the folder")
    limit: int = Field(_LIMIT, ge=1, description="how many entries at most")


class LsTool(TypedTool[LsArguments]):
    """Lists a folder, hidden and ignored entries too: folders first, files with their size, links with their
    target."""

    name = "ls"
    description = "List a folder: folders first, with a slash; files with their size."

    def __init__(self) -> None:
        super().__init__(LsArguments)

    def preview(self, args: LsArguments, ctx: ToolContext) -> Preview:
        place = locate(args.path, ctx)
        return Preview(place.shown, pattern=f"ls {place.exact}", outside=place.outside, shows=place.shows)

    async def run(self, args: LsArguments, ctx: ToolContext) -> ToolResult:
        return await ctx.clock.in_thread(lambda: _list(args, ctx))


def _list(args: LsArguments, ctx: ToolContext) -> ToolResult:
    place = locate(args.path, ctx)
    try:
        ctx.require_shown(place.shows)
        with Folder(place.real) as folder, folder.entries() as found:
            found.sort(key=lambda entry: (not _is_folder(entry), entry.name.casefold(), entry.name))
            lines = [_line(entry, folder) for entry in found[: args.limit]]
    except FileNotFoundError:
        raise missing(place) from None
    except NotADirectoryError:
        raise ToolError(f"{place.shown} is not a folder: use read") from None
    except OSError as error:
        raise explain(error, place.shown) from None
    if not found:
        return ToolResult("[the folder is empty]", summary="empty")
    fitted = fit(lines, args.limit, MAX_BYTES)
    text = "\n".join(fitted.lines)
    if len(fitted.lines) < len(found):
        call = json.dumps({"path": args.path, "limit": len(found)}, ensure_ascii=False)
        more = f"; all of them: {LsTool.name} {call}" if not fitted.cut else "; find shows a part of them"
        text += f"\n\n[{len(fitted.lines):,} of {count(len(found), 'entry', 'entries')}{more}]"
    return ToolResult(text, summary=count(len(found), "entry", "entries"))


def _line(entry: os.DirEntry[str], folder: Folder) -> str:
    name = name_of(entry.name)
    try:
        if entry.is_symlink():
            return f"{name} -> {name_of(folder.target(entry.name))}"
        if entry.is_dir():
            return f"{name}/"
        return f"{name}  {size(entry.stat().st_size)}"
    except OSError:
        return name  # deleted in the meantime


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False
