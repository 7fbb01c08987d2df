"""What the model sees: a fold over the events (rules J4, R7, R10).

Broken replies leave with their results, the checkpoint stands in for them, a compaction's summary stands for what is
older. Calls without a result are repaired where the group closes: idempotent, the same bytes each time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from handrail import events as ev
from handrail.loop.state import is_good
from handrail.messages import (
    AssistantMessage,
    Message,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)

NO_PROGRESS = "no_progress"  # HumanRequested.tool of the loop's own question (rule L13)
STOPPED_NOTE = "[The person stopped this reply here.]"
UNKNOWN = "outcome unknown: the program ended while this ran; look before doing it again"
NEVER_RAN = "not executed: the program ended before this call ran; send it again if it is still needed"


class Projection:
    """The messages for the next request."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._group: int | None = None  # where the last reply stands while its group may still change
        self._calls: tuple[ToolCall, ...] = ()
        self._results: dict[str, ev.ToolFinished] = {}
        self._started: set[str] = set()
        self._asked: dict[str, ev.HumanRequested] = {}
        self._seen: dict[str, ToolCall] = {}
        self._checkpoint: UserMessage | None = None
        self._checkpoint_at = 0
        self.pieces: tuple[str, ...] = ()

    def request(self) -> list[Message]:
        """The messages that a request made now would carry."""
        self._close()
        if self._checkpoint is None:
            return self._messages.copy()
        at = min(self._checkpoint_at, len(self._messages))
        return [*self._messages[:at], self._checkpoint, *self._messages[at:]]

    @property
    def call_ids(self) -> frozenset[str]:
        """The ids of all calls so far, broken replies included."""
        return frozenset(self._seen)

    def call(self, call_id: str) -> ToolCall:
        """The call of that id. Raises KeyError."""
        return self._seen[call_id]

    @property
    def has_checkpoint(self) -> bool:
        return self._checkpoint is not None

    @property
    def batch_open(self) -> bool:
        """Whether the last reply has calls whose batch was not finished."""
        return bool(self._calls)

    @property
    def messages(self) -> list[Message]:
        """The history without the checkpoint. Not to be changed."""
        return self._messages

    @property
    def open_calls(self) -> tuple[ToolCall, ...]:
        """Calls of the last reply that have no result yet."""
        return tuple(c for c in self._calls if c.id not in self._results)

    @property
    def last_reply(self) -> AssistantMessage | None:
        if self._group is None:
            return None
        message = self._messages[self._group]
        return message if isinstance(message, AssistantMessage) else None

    def stored_result(self, call_id: str) -> ev.ToolFinished | None:
        """The result on record of a call of the last reply."""
        return self._results.get(call_id)

    def started(self, call_id: str) -> bool:
        """Whether the start of this call's tool is on record."""
        return call_id in self._started

    def apply(self, event: ev.Event) -> None:
        """Take one event in."""
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            handler(self, event)

    def _run_started(self, event: ev.RunStarted) -> None:
        if event.resumed:
            return
        self._drop_checkpoint()
        text = event.prompt
        if event.context:
            text = f"{text}\n\n<input>\n{event.context}\n</input>"
        self._add(UserMessage((Text(text),)))

    def _steered(self, event: ev.Steered) -> None:
        if event.kind == "follow_up":
            self._drop_checkpoint()
        self._add(UserMessage((Text(event.text),)))

    def _message_finished(self, event: ev.MessageFinished) -> None:
        if event.purpose != "task":
            return
        message = event.message
        self._seen.update((call.id, call) for call in message.calls)
        if message.stop_reason == "aborted":
            text = message.text.strip()
            if text:
                self._add(AssistantMessage((Text(f"{text}\n\n{STOPPED_NOTE}"),), "stop", model=message.model))
            return
        if is_good(message):
            self._drop_checkpoint()
        self._add(message)
        self._group = len(self._messages) - 1
        self._calls = message.calls

    def _tool_started(self, event: ev.ToolStarted) -> None:
        self._started.add(event.call_id)

    def _tool_finished(self, event: ev.ToolFinished) -> None:
        if any(c.id == event.call_id for c in self._calls):
            self._results[event.call_id] = event

    def _tool_batch_finished(self, event: ev.ToolBatchFinished) -> None:
        self._close()

    def _decided(self, event: ev.Decided) -> None:
        if event.omits and self._group is not None:
            del self._messages[self._group :]
            self._forget()

    def _checkpoint_made(self, event: ev.CheckpointMade) -> None:
        self._checkpoint = UserMessage((Text(event.text),), origin="checkpoint")
        self._checkpoint_at = len(self._messages)
        self.pieces = event.pieces

    def _compaction_finished(self, event: ev.CompactionFinished) -> None:
        if event.ok:
            self._close()
            summary = UserMessage((Text(event.summary),), origin="summary")
            kept = self._messages[len(self._messages) - event.kept :] if event.kept else []
            # Their usage told of a context that is gone; it must not be taken for the size of the new one.
            self._messages = [
                summary,
                *(replace(m, usage=None) if isinstance(m, AssistantMessage) else m for m in kept),
            ]
            self._checkpoint_at = len(self._messages)
            self._forget()

    def _human_requested(self, event: ev.HumanRequested) -> None:
        self._asked[event.id] = event

    def _human_answered(self, event: ev.HumanAnswered) -> None:
        asked = self._asked.pop(event.id, None)
        message = answer_message(asked, event) if asked is not None else None
        if message is not None:
            self._add(message)

    def _add(self, message: Message) -> None:
        self._close()
        self._messages.append(message)
        self._group = None

    def _close(self) -> None:
        """End the last group: what has no result gets one that says what is known (rules L5, J3)."""
        if self._calls:
            self._messages.extend(self._result_of(c) for c in self._calls)
            self._calls, self._results = (), {}
            self._started.clear()

    def _result_of(self, call: ToolCall) -> ToolMessage:
        event = self._results.get(call.id)
        if event is not None:
            content = (*((Text(event.text),) if event.text or not event.images else ()), *event.images)
            return ToolMessage(call.id, call.name, content, event.is_error)
        text = UNKNOWN if call.id in self._started else NEVER_RAN
        return ToolMessage(call.id, call.name, (Text(text),), is_error=True)

    def _forget(self) -> None:
        self._group, self._calls, self._results = None, (), {}
        self._started.clear()

    def _drop_checkpoint(self) -> None:
        self._checkpoint = None
        self.pieces = ()


def answer_message(asked: ev.HumanRequested, event: ev.HumanAnswered) -> UserMessage | None:
    """What an answer to the loop's own question adds to the history; one to a tool is that tool's result (rule H3)."""
    if asked.call_id is not None or event.how in ("stopped", "nobody"):
        return None
    words = event.text if asked.tool == NO_PROGRESS else answer_text(event.how, event.text, event.secret)
    return UserMessage((Text(words),)) if words.strip() else None


def answer_text(how: str, text: str, secret: bool = False) -> str:
    """A person's answer as the model reads it (rule H3)."""
    said = "(given, kept secret)" if secret else text.strip()
    if how == "declined":
        return f"The person cannot do it. {said}".strip()
    if how == "answered":
        return said or "The person gave no words."
    return f"The person did it. {said}".strip()


_HANDLERS: dict[type, Callable[[Projection, Any], None]] = {
    ev.RunStarted: Projection._run_started,
    ev.Steered: Projection._steered,
    ev.MessageFinished: Projection._message_finished,
    ev.ToolStarted: Projection._tool_started,
    ev.ToolFinished: Projection._tool_finished,
    ev.ToolBatchFinished: Projection._tool_batch_finished,
    ev.Decided: Projection._decided,
    ev.CheckpointMade: Projection._checkpoint_made,
    ev.CompactionFinished: Projection._compaction_finished,
    ev.HumanRequested: Projection._human_requested,
    ev.HumanAnswered: Projection._human_answered,
}
