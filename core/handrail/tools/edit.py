"""The tool `edit`: exact replacements in a text file, all of them or none."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from handrail.tools._nearest import nearest
from handrail.tools._replace import Ambiguous, NotFound, Overlap, Replacement, SplitCharacter, replace
from handrail.tools._typed import Arguments, TypedTool
from handrail.tools.base import Preview, ToolContext, ToolError, ToolResult
from handrail.tools.diff import Diff, unified
from handrail.tools.output import count
from handrail.tools.paths import Place, locate, missing
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
from handrail.tools.write import about, change_pattern


class Edit(Arguments):
    """One replacement."""

    old: str = Field(
        min_length=1, description="the exact text to replace; it must occur in the file exactly once"
    )
    new: str = Field(description="the replacement text")
    replace_all: bool = Field(False, description="replace every occurrence of `old`")


def _unpacked(value: Any) -> Any:
    """Some models send a list as JSON text."""
    if isinstance(value, str):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


class EditArguments(Arguments):
    path: str = Field(min_length=1, description="the file, relative to the working folder or absolute")
    old: str = Field("", description="the exact text to replace; it must occur in the file exactly once")
    new: str = Field("", description="the replacement text")
    replace_all: bool = Field(False, description="replace every occurrence of `old`")
    edits: Annotated[
        tuple[Edit, ...],
        BeforeValidator(_unpacked),
        Field(description="several replacements instead of old and new, found in the file as it is now"),
    ] = ()

    @model_validator(mode="after")
    def _one_form(self) -> EditArguments:
        single = bool(self.model_fields_set & {"old", "new"})
        if single == bool(self.edits):
            raise ValueError("give either old and new, or edits")
        if single and not self.old:
            raise ValueError("old is empty: it must be text from the file; to create a file use write")
        return self

    @property
    def all(self) -> tuple[Edit, ...]:
        """The replacements, in whichever form they were given."""
        return self.edits or (Edit(old=self.old, new=self.new, replace_all=self.replace_all),)


@dataclass(frozen=True, slots=True)
class _EditPlan:
    place: Place
    file: TextFile
    after: str
    replaced: int
    diff: Diff

    @property
    def shows(self) -> str:
        return self.file.shows(self.place, self.diff.digest)


class EditTool(TypedTool[EditArguments]):
    """Edits are exact. Line ends do not matter to the match and stay as they are in the file; so do
    permissions, the byte order mark, and bytes that are not UTF-8."""

    name = "edit"
    description = (
        "Change a text file by exact replacements. `old` must match the file, spaces included, and stand in "
        "it exactly once (or set replace_all). Several changes of one file go into one call, as edits. "
        "All are made, or none."
    )
    effect = "edit"

    def __init__(self) -> None:
        super().__init__(EditArguments)

    def preview(self, args: EditArguments, ctx: ToolContext) -> Preview:
        place = locate(args.path, ctx)
        try:
            plan = _plan(args, ctx)
            diff, detail, shows = plan.diff.text, about(place, plan.file), plan.shows
        except ToolError as error:
            diff, detail, shows = None, f"this will fail: {error}\n\n{_detail(args)}", "nothing"
        pattern = change_pattern(place)
        return Preview(place.shown, detail, diff, pattern, outside=place.outside, shows=shows)

    async def run(self, args: EditArguments, ctx: ToolContext) -> ToolResult:
        plan, saved = await change(ctx, args.path, partial(_edit, args, ctx))
        remember(ctx, plan.place, saved.stamp)
        said = f"edited {plan.place.shown}: {count(plan.replaced, 'replacement')}, {plan.diff.summary}"
        said = "\n".join(filter(None, [said, saved.note and f"[{saved.note}]", plan.place.note]))
        return ToolResult(said, summary=plan.diff.summary, diff=plan.diff.text)


def _plan(args: EditArguments, ctx: ToolContext) -> _EditPlan:
    """The edited text and the diff. Nothing is written."""
    edits = args.all
    refuse_mask(*(text for edit in edits for text in (edit.old, edit.new)))
    place = locate(args.path, ctx)
    try:
        file = load(place)
    except FileNotFoundError:
        raise missing(place) from None
    require_unchanged(ctx, place, file.stamp)
    require_encodable(place, file, "".join(edit.new for edit in edits))
    wanted = [Replacement(edit.old, edit.new, edit.replace_all) for edit in edits]
    try:
        after, replaced = replace(file.text, wanted, file.ending)
    except (NotFound, Ambiguous, Overlap, SplitCharacter) as error:
        raise ToolError(_explain(error, edits, file.text, place)) from None
    plain, plain_after = file.text.replace("\r\n", "\n"), after.replace("\r\n", "\n")
    if plain == plain_after:
        raise ToolError(f"{place.shown}: old and new are the same, nothing would change")
    return _EditPlan(place, file, after, replaced, unified(plain, plain_after, place.shown))


def _edit(args: EditArguments, ctx: ToolContext) -> tuple[_EditPlan, Saved]:
    plan = _plan(args, ctx)
    ctx.require_shown(plan.shows)
    return plan, save(plan.place, plan.file.encode(plan.after), plan.file)


def _explain(
    error: NotFound | Ambiguous | Overlap | SplitCharacter, edits: tuple[Edit, ...], text: str, place: Place
) -> str:
    which = f"edit {error.index + 1} of {len(edits)}: " if len(edits) > 1 else ""
    match error:
        case Ambiguous(lines=lines):
            at = ", ".join(f"{line:,}" for line in lines[:10]) + (", …" if len(lines) > 10 else "")
            return (
                f"{which}old stands {len(lines)} times in {place.shown} (lines {at}). Nothing was changed. "
                "Add surrounding lines until it is unique, or set replace_all"
            )
        case SplitCharacter():
            return (
                f"{which}{place.shown} is not UTF-8, and old begins right after a byte that may belong to the same "
                "character. Nothing was changed. Begin old at another place"
            )
        case Overlap(other=other):
            return f"{which}it overlaps edit {other + 1}. Nothing was changed. Make one edit of the two"
        case _:
            near = nearest(edits[error.index].old, text)
            return f"{which}old was not found in {place.shown}. Nothing was changed. {near}"


def _detail(args: EditArguments) -> str:
    return "\n\n".join(f"replace{' all' if e.replace_all else ''}:\n{e.old}\nby:\n{e.new}" for e in args.all)
