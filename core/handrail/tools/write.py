"""The tool `write`: a whole file, new or replacing an old one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from pydantic import Field

from handrail.tools._typed import Arguments, TypedTool
from handrail.tools.base import Preview, ToolContext, ToolError, ToolResult
from handrail.tools.diff import Diff, unified
from handrail.tools.output import count, one_line
from handrail.tools.paths import Place, locate
from handrail.tools.saving import Saved, save
from handrail.tools.textfile import (
    TextFile,
    change,
    load,
    refuse_mask,
    remember,
    require_encodable,
    require_unchanged,
)


class WriteArguments(Arguments):
    path: str = Field(min_length=1, description="the file, relative to the working folder or absolute")
    content: str = Field(description="the whole new content")


@dataclass(frozen=True, slots=True)
class _WritePlan:
    place: Place
    old: TextFile | None
    data: bytes
    diff: Diff

    @property
    def shows(self) -> str:
        if self.old is None:
            return f"{self.place.real}:new:{self.diff.digest}"
        return self.old.shows(self.place, self.diff.digest)


class WriteTool(TypedTool[WriteArguments]):
    """Writes a file whole or not at all. An old file keeps its permissions, its line ends and its byte order
    mark."""

    name = "write"
    description = (
        "Write a whole file: a new one (folders are made as needed) or in the place of an old one. "
        "To change a part of a file use edit."
    )
    effect = "edit"

    def __init__(self) -> None:
        super().__init__(WriteArguments)

    def preview(self, args: WriteArguments, ctx: ToolContext) -> Preview:
        place = locate(args.path, ctx)
        try:
            plan = _plan(args, ctx)
            diff, detail, shows = plan.diff.text, about(place, plan.old), plan.shows
        except ToolError as error:
            diff, detail, shows = None, f"this will fail: {error}\n\n{args.content}", "nothing"
        pattern = change_pattern(place)
        return Preview(one_line(place.shown), detail, diff, pattern, outside=place.outside, shows=shows)

    async def run(self, args: WriteArguments, ctx: ToolContext) -> ToolResult:
        plan, saved = await change(ctx, args.path, partial(_write, args, ctx))
        remember(ctx, plan.place, saved.stamp)
        shown, diff = plan.place.shown, plan.diff
        if plan.old is None:
            said = f"wrote {shown}: new, {count(diff.added, 'line')}"
        elif not diff.text:
            said = f"{shown} already had this content: nothing changed"
        else:
            said = f"wrote {shown}: {diff.summary}"
        said = "\n".join(filter(None, [said, saved.note and f"[{saved.note}]", plan.place.note]))
        return ToolResult(said, summary=diff.summary, diff=diff.text or None)


def change_pattern(place: Place) -> str:
    """What «always this session» allows for a call that changes one file: that file, by either tool."""
    return f"edit or write {place.exact}"


def _plan(args: WriteArguments, ctx: ToolContext) -> _WritePlan:
    """The bytes to write, and the diff. Nothing is written."""
    refuse_mask(args.content)
    place = locate(args.path, ctx)
    try:
        old = load(place)
    except FileNotFoundError:
        diff = unified("", args.content, place.shown, new=True)
        return _WritePlan(place, None, args.content.encode(), diff)
    require_unchanged(ctx, place, old.stamp)
    require_encodable(place, old, args.content)
    text = args.content.removeprefix("\ufeff").replace("\r\n", "\n")
    after = text.replace("\n", old.ending)
    diff = unified(old.text.replace("\r\n", "\n"), text, place.shown)
    return _WritePlan(place, old, old.encode(after), diff)


def about(place: Place, old: TextFile | None) -> str:
    """What a person must know of the file besides the diff."""
    links = f"it has {old.links} hard links: all of them show the change" if old and old.links > 1 else ""
    return "\n".join(filter(None, [links, place.note]))


def _write(args: WriteArguments, ctx: ToolContext) -> tuple[_WritePlan, Saved]:
    plan = _plan(args, ctx)
    ctx.require_shown(plan.shows)
    if plan.old is not None and plan.data == plan.old.encode(plan.old.text):
        return plan, Saved(plan.old.stamp)
    return plan, save(plan.place, plan.data, plan.old)
