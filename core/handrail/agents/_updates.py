"""From the updates of the protocol to events: turns, replies, thinking, batches of calls, diffs (house: everything is
made from events).

An agent tells no turns. One begins with what is said or called after the calls before it have ended. A reply is
finished when its first call starts, or when the prompt is over. What comes while a batch still runs belongs to the next
turn and waits for it.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from handrail import events as ev
from handrail.messages import AssistantMessage, Failure, StopReason, Usage, clean
from handrail.providers.assemble import OpenBlock, PartialReply
from handrail.tools.diff import unified

Update = Mapping[str, Any]
Effect = Literal["read", "edit", "run"]

STOPS: Final[Mapping[str, StopReason]] = {
    "end_turn": "stop",
    "max_tokens": "length",
    "max_turn_requests": "length",
    "refusal": "refusal",
    "cancelled": "aborted",
}
_EFFECTS: Final[Mapping[str, Effect]] = {"edit": "edit", "delete": "edit", "move": "edit", "execute": "run"}
_OVER: Final = ("completed", "failed")
_MAX_TEXT: Final = 200_000


class Stream(Protocol):
    """Where events go (`RunContext`)."""

    turn: int | None

    def stamp(self) -> Any: ...

    def emit(self, event: ev.Event) -> None: ...

    def pass_on(self, event: ev.MessageDelta | ev.ToolProgress) -> None: ...


@dataclass(slots=True)
class Spent:
    """What the requests so far cost, as far as anybody told."""

    usage: Usage = field(default_factory=Usage)
    cost: float | None = None
    context: float | None = None


@dataclass(slots=True, eq=False)
class _Call:
    id: str
    index: int
    name: str = "tool"
    title: str = ""
    kind: str = ""
    status: str = "pending"
    arguments: dict[str, Any] = field(default_factory=dict)
    text: str = ""
    output: str = ""
    diff: str = ""
    summary: str = ""
    started: float | None = None
    asked: bool = False
    over: bool = False
    block: OpenBlock | None = None

    @property
    def effect(self) -> Effect:
        return _EFFECTS.get(self.kind, "read")


class UpdateFold:
    """Takes updates, emits events into `stream`. `spent` tells the sums at the end of a turn, `cwd` shortens paths."""

    def __init__(self, stream: Stream, model: str, spent: Callable[[], Spent], cwd: str) -> None:
        self._stream, self._model, self._spent, self._cwd = stream, model, spent, cwd.rstrip("/")
        self.turns = 0
        self.diffs: list[str] = []
        self.last: AssistantMessage | None = None
        self._began = 0.0
        self._message: PartialReply | None = None
        self._told = Spent(cost=0.0)
        self._calls: dict[str, _Call] = {}
        self._batch = False
        self._turn_open = False
        self._late: deque[Update] = deque()
        self._late_ids: set[str] = set()
        self._plan = ""

    # -- what comes

    def take(self, update: Update) -> None:
        """One update. What is none of the known kinds changes nothing."""
        kind = update.get("sessionUpdate")
        if kind in ("agent_message_chunk", "agent_thought_chunk"):
            if self.busy:
                self._late.append(update)
            elif text := _text_of(update.get("content")):
                self._say("text" if kind == "agent_message_chunk" else "thinking", text)
        elif kind in ("tool_call", "tool_call_update"):
            id = update.get("toolCallId")
            if not isinstance(id, str) or not id:
                return
            if id in self._late_ids or (id not in self._calls and self.busy):
                self._late.append(update)
                self._late_ids.add(id)
            else:
                self._call(id, update)
        elif kind == "plan":
            self._planned(update)

    def asks(self, call: Update) -> _Call:
        """The agent asks for permission of a call: it is part of the batch from here on, if it is not yet."""
        id = str(call.get("toolCallId") or "")
        known = self._calls.get(id)
        if known is None or known.over:
            known = _Call(id, len(self._calls))
            if not self.busy:
                known = self._new_call(id)
        known.asked = True
        _merge(known, call, self._cwd)
        if known.id in self._calls:
            self._start_batch()
        return known

    def end(self, stop: str, failure: Failure | None = None) -> None:
        """The prompt is over: whatever is open ends with it."""
        while self._late and not self.busy:
            self._take_late()
        for call in self._open_calls():
            words = "stopped" if stop == "cancelled" else "the agent did not tell how this call ended"
            call.text = call.text or words
            self._finish_call(call, failed=True, executed=call.started is not None)
        self._take_late()
        for call in self._open_calls():
            self._finish_call(call, failed=True, executed=call.started is not None)
        if failure is not None and self._message is None:
            self._open_message()
        if self._message is not None:
            reason: StopReason = "error" if failure is not None else STOPS.get(stop, "stop")
            self._finish_message(reason, stop, failure)
        self._close_turn()

    # -- the turn

    @property
    def busy(self) -> bool:
        """Calls of the batch under way have not ended."""
        return self._batch and any(not call.over for call in self._calls.values())

    def _open_calls(self) -> list[_Call]:
        return [call for call in self._calls.values() if not call.over]

    def _open_message(self) -> PartialReply:
        if self._message is None:
            self._close_turn()
            self.turns += 1
            self._stream.turn = self.turns
            self._turn_open = True
            stamp = self._stream.stamp()
            self._began = stamp["at"]
            self._message = PartialReply(self._model)
            self._stream.emit(ev.TurnStarted(**stamp))
            self._stream.emit(ev.MessageStarted(**stamp, model=self._model))
        return self._message

    def _close_turn(self) -> None:
        if not self._turn_open:
            return
        self._turn_open = False
        stamp, sums = self._stream.stamp(), self._spent()
        seconds = round(stamp["at"] - self._began, 6)
        self._stream.emit(
            ev.TurnFinished(**stamp, seconds=seconds, usage=sums.usage, cost=sums.cost, context=sums.context)
        )

    def _say(self, kind: Literal["text", "thinking"], text: str) -> None:
        message = self._open_message()
        if kind == "text":
            message.text(text)
        else:
            message.thinking(text)
        self._stream.pass_on(ev.MessageDelta(**self._stream.stamp(), kind=kind, text=text))

    def _finish_message(self, reason: StopReason, detail: str, failure: Failure | None = None) -> None:
        assert self._message is not None
        for call in self._calls.values():
            if call.block is not None:
                call.block.add(json.dumps(call.arguments, ensure_ascii=False))
        sums = self._spent()
        used = _minus(sums.usage, self._told.usage)
        known = sums.cost is not None and self._told.cost is not None
        cost = sums.cost - self._told.cost if known else None  # type: ignore[operator]
        self._told = Spent(sums.usage, sums.cost)
        message = self._message.message(
            reason, usage=used if used.total else None, stop_detail=detail or None, failure=failure
        )
        self._message, self.last = None, message
        stamp = self._stream.stamp()
        seconds = round(stamp["at"] - self._began, 6)
        self._stream.emit(ev.MessageFinished(**stamp, message=message, seconds=seconds, cost=cost))

    # -- calls

    def _call(self, id: str, update: Update) -> None:
        call = self._calls.get(id)
        if call is None or (call.over and update.get("sessionUpdate") == "tool_call"):
            call = self._new_call(id, update)
        elif call.over:
            return  # told again, after its end
        else:
            said = call.text
            _merge(call, update, self._cwd)
            if call.started is not None and call.text.startswith(said) and len(call.text) > len(said):
                self._stream.pass_on(
                    ev.ToolProgress(**self._stream.stamp(), call_id=id, text=call.text[len(said) :])
                )
        if call.status == "in_progress":
            self._start_batch()
            self._start_call(call)
        elif call.status in _OVER:
            self._start_batch()
            self._finish_call(call, failed=call.status == "failed")

    def _new_call(self, id: str, update: Update | None = None) -> _Call:
        message = self._open_message()
        call = _Call(id, len(self._calls))
        _merge(call, update or {}, self._cwd)
        self._calls[id] = call
        call.block, _ = message.call(call.index, call.id, call.name)
        self._stream.pass_on(
            ev.MessageDelta(**self._stream.stamp(), kind="tool_call", index=call.index, name=call.name)
        )
        return call

    def _start_batch(self) -> None:
        if self._batch:
            return
        self._batch = True
        self._finish_message("tool_use", "")
        calls = tuple(ev.CallInfo(c.id, c.name, c.title) for c in self._calls.values())
        self._stream.emit(ev.ToolBatchStarted(**self._stream.stamp(), calls=calls))

    def _start_call(self, call: _Call) -> None:
        if call.started is not None:
            return
        stamp = self._stream.stamp()
        call.started = stamp["at"]
        self._stream.emit(
            ev.ToolStarted(**stamp, call_id=call.id, name=call.name, title=call.title, effect=call.effect)
        )

    def _finish_call(self, call: _Call, *, failed: bool, executed: bool = True) -> None:
        self._start_batch()
        if executed:
            self._start_call(call)
        call.over = True
        if call.diff and not failed:
            self.diffs.append(call.diff)
        acted = executed and not failed and call.effect != "read"
        stamp = self._stream.stamp()
        self._stream.emit(
            ev.ToolFinished(
                **stamp,
                call_id=call.id,
                name=call.name,
                is_error=failed,
                text=call.text or call.output,
                seconds=round(stamp["at"] - call.started, 6) if call.started is not None else 0.0,
                summary=call.summary
                if call.asked or not acted
                else f"{call.summary} nobody was asked".strip(),
                diff=call.diff or None,
                executed=executed,
            )
        )
        if not self.busy:
            self._end_batch()

    def _end_batch(self) -> None:
        self._stream.emit(ev.ToolBatchFinished(**self._stream.stamp(), of=len(self._calls)))
        self._calls, self._batch = {}, False
        self._close_turn()
        self._take_late()

    def _take_late(self) -> None:
        late, self._late = self._late, deque()
        self._late_ids.clear()
        for update in late:
            self.take(update)

    def _planned(self, update: Update) -> None:
        """The agent's own plan, as one line that is said when it changes."""
        entries = [e for e in update.get("entries") or () if isinstance(e, dict)]
        done = sum(e.get("status") == "completed" for e in entries)
        now = next((str(e.get("content")) for e in entries if e.get("status") == "in_progress"), "")
        words = f"plan: {done} of {len(entries)} done" + (f", now: {clean(now)[:200]}" if now else "")
        if entries and words != self._plan:
            self._plan = words
            self._stream.emit(ev.Notice(**self._stream.stamp(), text=words))


def _merge(call: _Call, update: Update, cwd: str) -> None:
    """Take over what an update says of a call."""
    meta = update.get("_meta")
    own = meta.get("claudeCode") if isinstance(meta, dict) else None
    name = own.get("toolName") if isinstance(own, dict) else None
    if isinstance(kind := update.get("kind"), str):
        call.kind = kind
    if isinstance(name, str) and name:
        call.name = clean(name)
    elif call.kind and call.name == "tool":
        call.name = clean(call.kind)
    if isinstance(title := update.get("title"), str) and title:
        call.title = clean(title)
    if isinstance(status := update.get("status"), str):
        call.status = status
    if isinstance(given := update.get("rawInput"), dict) and given:
        call.arguments = given
    if (output := update.get("rawOutput")) is not None:
        call.output = clean(output if isinstance(output, str) else json.dumps(output, ensure_ascii=False))[
            :_MAX_TEXT
        ]
    if isinstance(content := update.get("content"), list):
        _merge_content(call, content, cwd)


def _merge_content(call: _Call, content: list[Any], cwd: str) -> None:
    texts: list[str] = []
    diffs: list[str] = []
    summaries: list[str] = []
    for item in content:
        if not isinstance(item, dict):
            continue
        if item.get("type") == "diff":
            made = _diff(item, cwd)
            diffs.append(made[0])
            summaries.append(made[1])
        elif text := _text_of(item.get("content")):
            texts.append(text)
    if texts:
        call.text = "\n".join(texts)[:_MAX_TEXT]
    if diffs:
        call.diff, call.summary = "".join(diffs), " ".join(summaries)


def _diff(item: Mapping[str, Any], cwd: str) -> tuple[str, str]:
    old, new, path = item.get("oldText"), item.get("newText"), str(item.get("path") or "")
    shown = path.removeprefix(f"{cwd}/") if cwd else path
    made = unified(
        clean(old) if isinstance(old, str) else "",
        clean(new) if isinstance(new, str) else "",
        clean(shown),
        new=old is None,
    )
    return made.text, made.summary


def _text_of(content: object) -> str:
    """The words of a content block; what it holds else is named."""
    if isinstance(content, list):
        return "".join(_text_of(one) for one in content)
    if not isinstance(content, dict):
        return ""
    if isinstance(text := content.get("text"), str):
        return clean(text)
    kind = content.get("type")
    if kind == "resource_link":
        return clean(str(content.get("uri") or ""))
    return f"[{clean(kind)}]" if isinstance(kind, str) and kind != "text" else ""


def _minus(now: Usage, before: Usage) -> Usage:
    return Usage(
        max(0, now.input - before.input),
        max(0, now.output - before.output),
        max(0, now.cache_read - before.cache_read),
        max(0, now.cache_write - before.cache_write),
    )
