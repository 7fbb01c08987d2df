"""What comes in from a server, made fit for the SDK: a pure look at each message (docs/mcp.md).

The SDK validates an answer as a whole and refuses all of it for one wrong entry. Here entries are mended, or left out
by name, and the rest lives.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest, JSONRPCResponse

from handrail.mcp._schemas import mended_tools

_MAX_OPEN: Final = 1_000


class Border:
    """Knows which request an answer belongs to. `left_out` names the tools of the last list that cannot be offered."""

    def __init__(self) -> None:
        self._methods: dict[str | int, str] = {}
        self.left_out: dict[str, str] = {}

    def sent(self, item: SessionMessage) -> None:
        """A message goes out."""
        message = item.message
        if isinstance(message, JSONRPCRequest):
            self._methods[message.id] = message.method
            if len(self._methods) > _MAX_OPEN:
                self._methods.pop(next(iter(self._methods)))

    def received(self, item: SessionMessage) -> SessionMessage:
        """A message came in: as it shall be read."""
        message = item.message
        if not isinstance(message, JSONRPCResponse):
            return item
        method = self._methods.pop(message.id, None) or self._methods.pop(_as_number(message.id), "")
        mend = _MENDERS.get(method)
        if mend is None or not isinstance(message.result, dict):
            return item
        result = mend(self, dict(message.result))
        return replace(item, message=message.model_copy(update={"result": result}))

    def _tools(self, result: dict[str, Any]) -> dict[str, Any]:
        result["tools"], left_out = mended_tools(result.get("tools"))
        self.left_out.update(left_out)
        return _page(result)

    def _call(self, result: dict[str, Any]) -> dict[str, Any]:
        if result.get("resultType") == "input_required":
            return result
        content = result.get("content")
        blocks = content if isinstance(content, list) else [] if content is None else [content]
        result["content"] = [_block(block) for block in blocks]
        if not isinstance(result.get("isError"), bool):
            result.pop("isError", None)
        return result

    def _named(self, key: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
        def mend(result: dict[str, Any]) -> dict[str, Any]:
            entries = result.get(key)
            wanted = ("name", "uri") if key == "resources" else ("name",)
            result[key] = [
                entry
                for entry in (entries if isinstance(entries, list) else ())
                if isinstance(entry, dict) and all(isinstance(entry.get(name), str) for name in wanted)
            ]
            return _page(result)

        return mend


def _as_number(id: str | int) -> str | int:
    """Some servers answer a number with its digits; so does the SDK read them."""
    return int(id) if isinstance(id, str) and id.isdecimal() else id


def _page(result: dict[str, Any]) -> dict[str, Any]:
    if "nextCursor" in result and not isinstance(result["nextCursor"], str):
        result.pop("nextCursor")
    return result


def _block(block: Any) -> Mapping[str, Any]:
    """A block of a result as one that the SDK knows: anything else becomes text, and nothing is lost."""
    if isinstance(block, dict):
        kind = block.get("type")
        wanted = _WANTED.get(kind) if isinstance(kind, str) else None
        if wanted is not None and all(isinstance(block.get(key), of) for key, of in wanted.items()):
            kept = {key: value for key, value in block.items() if key in wanted or key in _ALSO}
            return {"type": kind, **kept}
    if isinstance(block, str):
        return {"type": "text", "text": block}
    return {"type": "text", "text": json.dumps(block, ensure_ascii=False)}


_WANTED: Final[Mapping[str, Mapping[str, type]]] = {
    "text": {"text": str},
    "image": {"data": str, "mimeType": str},
    "audio": {"data": str, "mimeType": str},
    "resource_link": {"uri": str, "name": str},
    "resource": {"resource": dict},
}
_ALSO: Final = frozenset({"title", "description", "mimeType"})
_MENDERS: Final[Mapping[str, Callable[[Border, dict[str, Any]], dict[str, Any]]]] = {
    "tools/list": Border._tools,
    "tools/call": Border._call,
    "prompts/list": lambda border, result: border._named("prompts")(result),
    "resources/list": lambda border, result: border._named("resources")(result),
}
