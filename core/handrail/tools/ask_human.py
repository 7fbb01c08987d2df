"""The tool with which a model asks for what only a person can do (rule H1). Without tools: `marked_line.py`."""

from __future__ import annotations

from typing import Annotated, Any, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from handrail.events import HumanKind
from handrail.messages import ToolCall
from handrail.tools.base import InvalidArguments, Preview, Tool, ToolContext, ToolError, ToolResult

NAME = "ask_human"


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
        "permission, do something physical, decide, or tell you what you cannot find out. The run waits until they "
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
