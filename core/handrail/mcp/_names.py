"""Names of servers' tools, as every provider takes them: `mcp__server__tool`.

Providers take letters, digits, `_` and `-`, at most 64 of them. A name that is cleaned or cut gets a hash of the whole
one, so that it is the same in every run and two tools never share it.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

PREFIX: Final = "mcp__"
MAX_NAME: Final = 64
_BAD: Final = re.compile(r"[^A-Za-z0-9_-]")
_HASH: Final = 8


def tool_name(server: str, tool: str) -> str:
    """The name that a model calls the tool by. `server` is a server name as settings take it."""
    whole = f"{PREFIX}{server}__{tool}"
    cleaned = _BAD.sub("_", whole)
    if cleaned == whole and len(whole) <= MAX_NAME:
        return whole
    mark = hashlib.sha256(f"{server}\0{tool}".encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
    return f"{cleaned[: MAX_NAME - _HASH - 1]}_{mark}"


def server_of(name: str) -> str | None:
    """The server that a tool's name says, None for other tools."""
    if not name.startswith(PREFIX):
        return None
    return name.removeprefix(PREFIX).partition("__")[0] or None
