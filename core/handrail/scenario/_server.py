"""A scenario's own MCP server: it runs in this process, so a scenario needs no program and no network for it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.server import Server

from handrail.clock import Clock
from handrail.scenario._file import ServerPart, ServerToolPart


def make_server(part: ServerPart, clock: Clock) -> Server[Any]:
    """The server. It speaks protocol 2026-07-28."""
    tools = {tool.name: tool for tool in part.tools}
    asked = itertools.count(1)

    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(tool) for tool in tools.values()], ttl_ms=0)

    async def call_tool(
        ctx: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        tool = tools[params.name]
        if tool.takes_s:
            await clock.sleep(tool.takes_s)
        if tool.question is None:
            return _result(tool, {})
        answer = (params.input_responses or {}).get("question")
        if not isinstance(answer, types.ElicitResult):
            return types.InputRequiredResult(
                input_requests={"question": _question(tool)}, request_state=f"asked {next(asked)}"
            )
        if answer.action != "accept":
            return _result(tool, {}, declined=answer.action)
        return _result(tool, answer.content or {})

    return Server(
        part.name,
        version="1",
        instructions=part.instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _described(tool: ServerToolPart) -> types.Tool:
    hints = types.ToolAnnotations(read_only_hint=True) if tool.reads else None
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema={"type": "object", "additionalProperties": True},
        annotations=hints,
    )


def _question(tool: ServerToolPart) -> types.ElicitRequest:
    schema: dict[str, Any] = {"type": "object", "properties": tool.fields, "required": list(tool.fields)}
    params = types.ElicitRequestFormParams(message=tool.question or "", requested_schema=schema)
    return types.ElicitRequest(params=params)


def _result(tool: ServerToolPart, given: Mapping[str, Any], declined: str = "") -> types.CallToolResult:
    """The result; `{name}` in it stands for what the person gave."""
    text = tool.error if tool.error is not None else tool.result
    for name, value in given.items():
        text = text.replace("{" + name + "}", str(value))
    if declined:
        text = f"the person answered: {declined}"
    block = types.TextContent(type="text", text=text)
    return types.CallToolResult(content=[block], is_error=tool.error is not None or bool(declined))
