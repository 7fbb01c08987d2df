"""Call ids as wires accept them: letters, digits, `_` and `-`, so many characters, no id twice.

Some providers reuse an id in each reply, others make ids that their neighbours refuse. So ids are made anew
for each request, from the history alone: the same history gives the same ids.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from handrail.messages import ToolCall

LIMIT = 64
_REFUSED = re.compile(r"[^a-zA-Z0-9_-]")


class CallIds:
    """Ids for the wire of at most `limit` characters, asked for in the order of the history."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._taken: set[str] = set()
        self._now: dict[str, str] = {}

    def reply(self, calls: Iterable[ToolCall]) -> None:
        """The calls of the next reply: results that follow belong to these."""
        for call in calls:
            self._now[call.id] = self._free(call.id)

    def of(self, call_id: str) -> str:
        """The id on the wire of a call, for the call itself and for its result."""
        if call_id not in self._now:
            self._now[call_id] = self._free(call_id)
        return self._now[call_id]

    def _free(self, call_id: str) -> str:
        plain = _REFUSED.sub("_", call_id)[: self._limit] or "call"
        wire, n = plain, 1
        while wire in self._taken:
            n += 1
            mark = f"_{n}"
            wire = plain[: self._limit - len(mark)] + mark
        self._taken.add(wire)
        return wire


def wire_name(name: str) -> str:
    """A tool's name as wires accept it: a model may have called one that does not exist."""
    return _REFUSED.sub("_", name)[:LIMIT] or "unknown"
