"""The tool `write`: a whole file, new or replacing an old one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from pydantic import Field

from handrail.tools._diff import Diff, unified
from handrail.tools._output import count, one_line
from handrail.tools._typed import Arguments, TypedTool
from handrail.tools.base import Preview, ToolContext, ToolError, ToolResult
from handrail.tools.paths import Place, locate
from handrail.tools.textfile import (
    Stamp,
    TextFile,
    change,
    load,
    refuse_mask,
    remember,
    require_unchanged,
    save,
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
            diff, detail = _plan(args, ctx).diff.text, ""
        except ToolError as error:
            diff, detail = None, f"this will fail: {error}\n\n{args.content}"
        return Preview(one_line(place.shown), detail, diff, change_pattern(place), outside=place.outside)

    async def run(self, args: WriteArguments, ctx: ToolContext) -> ToolResult:
        plan, stamp = await change(ctx, args.path, partial(_write, args, ctx))
        remember(ctx, plan.place, stamp)
        shown, diff = plan.place.shown, plan.diff
        if plan.old is None:
            said = f"wrote {shown}: new, {count(diff.added, 'line')}"
        elif not diff.text:
            said = f"{shown} already had this content: nothing changed"
        else:
            said = f"wrote {shown}: {diff.summary}"
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
    text = args.content.removeprefix("\ufeff").replace("\r\n", "\n")
    after = text.replace("\n", old.ending)
    diff = unified(old.text.replace("\r\n", "\n"), text, place.shown)
    return _WritePlan(place, old, old.encode(after), diff)


def _write(args: WriteArguments, ctx: ToolContext) -> tuple[_WritePlan, Stamp]:
    plan = _plan(args, ctx)
    if plan.old is None:
        return plan, save(plan.place, plan.data, None)
    if plan.data == plan.old.encode(plan.old.text):
        return plan, plan.old.stamp
    return plan, save(plan.place, plan.data, plan.old.mode)
