"""From events of ours to the protocol's updates: what an editor shows of a session (see acp_server)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, Final

from handrail import events as ev
from handrail.messages import Text, Thinking

Update = dict[str, Any]
_KINDS: Final = {"read": "read", "edit": "edit", "run": "execute"}
_SEARCH: Final = frozenset({"grep", "find", "ls"})
_SHORT_S: Final = 5.0
"""A pause that is shorter needs no words."""


class Teller:
    """A listener that sends updates. `replay`: events of the past, whose deltas were not kept."""

    def __init__(self, send: Callable[[Update], object], *, replay: bool = False) -> None:
        self._send, self._replay = send, replay
        self._window: int | None = None
        self._streamed = False
        self._waits = 0
        self._wait: str | None = None

    def __call__(self, event: ev.Event) -> None:
        for update in self._updates(event):
            self._send(update)

    def _updates(self, event: ev.Event) -> Iterator[Update]:
        match event:
            case ev.RunStarted():
                self._window = event.window
                if self._replay and not event.resumed:
                    yield _chunk("user_message_chunk", event.prompt)
            case ev.Steered() if self._replay:
                yield _chunk("user_message_chunk", event.text)
            case ev.TurnStarted():
                self._streamed = False
            case ev.MessageDelta() if event.kind in ("text", "thinking") and event.text:
                self._streamed = True
                yield _chunk(_of_kind(event.kind), event.text)
            case ev.MessageFinished():
                yield from self._message(event)
            case ev.ToolBatchStarted():
                for call in event.calls:
                    yield _call(call)
            case ev.ToolStarted():
                kind = "search" if event.name in _SEARCH else _KINDS[event.effect]
                yield {
                    "sessionUpdate": "tool_call_update",
                    "toolCallId": event.call_id,
                    "status": "in_progress",
                    "title": event.title or event.name,
                    "kind": kind,
                }
            case ev.ToolFinished():
                yield _finished(event)
            case ev.WaitStarted() if event.seconds >= _SHORT_S:
                self._waits += 1
                self._wait = f"wait-{self._waits}"
                yield _waiting(self._wait, event)
            case ev.WaitEnded() if self._wait is not None:
                id, self._wait = self._wait, None
                yield {"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed"}
            case ev.Notice() if event.level != "info":
                yield _chunk("agent_thought_chunk", f"{event.level}: {event.text}\n")
            case ev.TurnFinished() if event.context is not None and self._window:
                used: Update = {
                    "sessionUpdate": "usage_update",
                    "used": round(event.context * self._window),
                    "size": self._window,
                }
                if event.cost is not None:
                    used["cost"] = {"amount": round(event.cost, 6), "currency": "USD"}
                yield used
            case _:
                return

    def _message(self, event: ev.MessageFinished) -> Iterator[Update]:
        """A reply that was not streamed, and the failure of one that broke."""
        if not self._streamed and event.purpose == "task":
            for block in event.message.content:
                if isinstance(block, Text | Thinking) and block.text:
                    yield _chunk(_of_kind(block.type), block.text)
        failure = event.message.failure
        if event.message.stop_reason == "error" and failure is not None:
            yield _chunk("agent_thought_chunk", f"the request failed: {failure.text[:500]}\n")


def _of_kind(kind: str) -> str:
    return "agent_message_chunk" if kind == "text" else "agent_thought_chunk"


def _chunk(kind: str, text: str) -> Update:
    return {"sessionUpdate": kind, "content": {"type": "text", "text": text}}


def _call(call: ev.CallInfo) -> Update:
    return {
        "sessionUpdate": "tool_call",
        "toolCallId": call.id,
        "title": call.title if call.title.startswith(call.name) else f"{call.name} {call.title}".strip(),
        "kind": "other",
        "status": "pending",
    }


def _finished(event: ev.ToolFinished) -> Update:
    content: list[Update] = diff_content(event.diff) if event.diff else []
    if event.text and not content:
        content = [{"type": "content", "content": {"type": "text", "text": event.text}}]
    return {
        "sessionUpdate": "tool_call_update",
        "toolCallId": event.call_id,
        "status": "failed" if event.is_error or not event.executed else "completed",
        "content": content,
    }


def _waiting(id: str, event: ev.WaitStarted) -> Update:
    until = f"{datetime.fromtimestamp(event.until):%H:%M}"
    why = event.reason.replace("-", " ") or "pause"
    return {
        "sessionUpdate": "tool_call",
        "toolCallId": id,
        "title": f"Waiting until {until}: {why}",
        "kind": "other",
        "status": "in_progress",
        "content": [{"type": "content", "content": {"type": "text", "text": event.words}}]
        if event.words
        else [],
    }


def diff_content(diff: str) -> list[Update]:
    """A unified diff as the protocol's: for each hunk the lines before and after."""
    path, made, new = "", list[Update](), False
    old_lines: list[str] | None = None
    new_lines: list[str] = []

    def close() -> None:
        if old_lines is not None:
            before = None if new else "".join(old_lines)
            made.append({"type": "diff", "path": path, "oldText": before, "newText": "".join(new_lines)})

    for line in diff.split("\n"):
        if line.startswith("--- ") and (old_lines is None or not line.startswith("--- -")):
            close()
            old_lines, new = None, line == "--- /dev/null"
        elif line.startswith("+++ ") and old_lines is None:
            path = line[4:].removeprefix("b/")
        elif line.startswith("@@"):
            close()
            old_lines, new_lines = [], []
        elif old_lines is not None and line[:1] in (" ", "-", "+"):
            if line[0] in " -":
                old_lines.append(line[1:] + "\n")
            if line[0] in " +":
                new_lines.append(line[1:] + "\n")
    close()
    return made
