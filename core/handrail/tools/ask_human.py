"""How a model reports what only a person can do: the tool `ask_human`, or a marked last line (rule H1)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, cast, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from handrail.events import HumanKind
from handrail.messages import ToolCall
from handrail.tools.base import InvalidArguments, Preview, Tool, ToolContext, ToolError, ToolResult

NAME = "ask_human"
KINDS: tuple[HumanKind, ...] = get_args(HumanKind)

_MARK = re.compile(r"^\s*[*_`]*HUMAN REQUIRED:\s*(?P<kind>[A-Za-z0-9_-]+)\s*:\s*(?P<needed>.+?)[*_`]*\s*$")


class AskHumanArguments(BaseModel):
    """The question for the person."""

    model_config = ConfigDict(extra="forbid")

    kind: Annotated[HumanKind, Field(description="What sort of step it is.")]
    needed: Annotated[
        str, Field(min_length=1, description="What the person should do, in one or two sentences.")
    ]
    where: Annotated[str, Field(description="Where: a URL or a path. Empty if nowhere special.")] = ""
    tried: Annotated[str, Field(description="What you tried before asking. Empty if nothing.")] = ""


class AskHuman(Tool):
    """Pauses the run until a person has answered. The answer is the result (rules H2, H3)."""

    name = NAME
    description = (
        "Ask the person for what only a person can do: solve a captcha, log in, confirm a second factor, pay, grant a "
        "permission, do something physical, decide, or tell you what you cannot find out. The run holds until they "
        "have answered. Do not use it for anything that you can find out or do with your other tools."
    )
    parameters = AskHumanArguments.model_json_schema()

    def parse(self, call: ToolCall) -> AskHumanArguments:
        try:
            return AskHumanArguments.model_validate_json(call.raw)
        except ValidationError as error:
            lines = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()]
            raise InvalidArguments("\n".join(lines)) from None

    def preview(self, args: Any, ctx: ToolContext) -> Preview:
        asked = cast(AskHumanArguments, args)
        return Preview(f"{asked.kind}: {asked.needed}")

    async def run(self, args: Any, ctx: ToolContext) -> ToolResult:
        asked = cast(AskHumanArguments, args)
        if ctx.ask is None:
            raise ToolError("there is nobody to ask here")
        words = await ctx.ask(asked.needed, kind=asked.kind, where=asked.where, tried=asked.tried)
        return ToolResult(words)


@dataclass(frozen=True, slots=True)
class MarkedLine:
    """The last line of a reply that asks for a person."""

    kind: HumanKind
    needed: str


def marked_line(text: str) -> MarkedLine | None:
    """The report in the last line of `text`, if it is one: `HUMAN REQUIRED: <kind>: <needed>` (rule H1)."""
    lines = text.rstrip().splitlines()
    found = _MARK.match(lines[-1]) if lines else None
    if found is None:
        return None
    kind = found["kind"].lower()
    known = cast(HumanKind, kind) if kind in KINDS else "other"
    return MarkedLine(known, found["needed"].strip())
