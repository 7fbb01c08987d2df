"""A server's tool as one of ours: shown, approved, journalled and bounded like them (rules H5, L6, J1)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from handrail.mcp._names import tool_name
from handrail.mcp._schemas import argument_errors, description_of
from handrail.messages import ToolCall, clean
from handrail.policy import Approve
from handrail.tools.base import Effect, InvalidArguments, Preview, Tool, ToolContext, ToolResult
from handrail.tools.output import one_line

if TYPE_CHECKING:
    import mcp_types as types

    from handrail.mcp._supervisor import Supervisor

_SHORT: Final = 120
_EXACT: Final = re.compile(
    r"(?i)(delete|remove|drop|destroy|kill|force|reset|purge|wipe|exec|run|shell|command|eval|sudo|merge|publish|send)"
)
"""Names of tools that are approved for the very arguments only."""


@dataclass(frozen=True, slots=True)
class Hints:
    """What a server says of its tool; only a trusted server's words count."""

    read_only: bool = False
    destructive: bool = True
    idempotent: bool = False

    @classmethod
    def of(cls, tool: types.Tool, trusted: bool) -> Hints:
        said = tool.annotations
        if not trusted or said is None:
            return cls()
        return cls(
            bool(said.read_only_hint),
            said.destructive_hint is not False,
            bool(said.idempotent_hint),
        )


class ServerTool(Tool):
    """One tool of one server. It stays what it was when the model was told of it; the server is asked at each call."""

    def __init__(self, server: Supervisor, tool: types.Tool) -> None:
        settings = server.settings
        self._server = server
        self.tool = tool.name
        self.server = server.name
        self.name = tool_name(server.name, tool.name)
        self.description = description_of(tool, server.name)
        self.parameters: Mapping[str, Any] = tool.input_schema
        self.hints = Hints.of(tool, settings.trust)
        self.effect: Effect = _effect(self.hints)
        self.approve: Approve | None = settings.approve
        self.limit_s = settings.timeout
        self._exact = self.hints.destructive and (
            _EXACT.search(tool.name) is not None or _says_destructive(tool)
        )

    @property
    def shown(self) -> str:
        """For people: `git_status of git`."""
        return f"{one_line(clean(self.tool), 80)} of {self.server}"

    @property
    def repeatable(self) -> bool:
        """Whether calling it twice does no harm."""
        return self.hints.read_only or self.hints.idempotent

    def parse(self, call: ToolCall) -> dict[str, Any]:
        if call.error is not None:
            raise InvalidArguments(call.error)
        if errors := argument_errors(self.parameters, call.arguments):
            raise InvalidArguments("\n".join(errors))
        return call.arguments

    def preview(self, args: dict[str, Any], ctx: ToolContext) -> Preview:
        given = " ".join(f"{name}={_short(value)}" for name, value in args.items())
        title = one_line(clean(f"{self.server}: {self.tool} {given}".rstrip()))
        whole = len(title) < 200 and all(len(_json(value)) <= _SHORT for value in args.values())
        detail = "" if whole else clean(json.dumps(args, ensure_ascii=False, indent=2))
        exact = json.dumps(args, ensure_ascii=False, sort_keys=True)
        pattern = f"{self.name} {exact}" if self._exact else f"{self.name} with any arguments"
        return Preview(
            title, detail, pattern=clean(pattern), why=f"what it does is up to the server {self.server}"
        )

    async def run(self, args: dict[str, Any], ctx: ToolContext) -> ToolResult:
        from handrail.mcp._call import Call

        return await Call(self._server, self, args, ctx).run()


def _effect(hints: Hints) -> Effect:
    if hints.read_only:
        return "read"
    return "run" if hints.destructive else "edit"


def _says_destructive(tool: types.Tool) -> bool:
    """A warning counts whoever gives it."""
    return tool.annotations is not None and tool.annotations.destructive_hint is True


def _short(value: Any) -> str:
    text = _json(value)
    return text if len(text) <= _SHORT else text[: _SHORT - 1] + "…"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
