"""What the model sees: a fold over the events (rules J4, R7, R10).

Broken replies are dropped with their results, and the checkpoint replaces them; a compaction's summary replaces older
messages. A call without a result gets one when its group closes, always with the same bytes.
"""

from __future__ import annotations

from dataclasses import replace

from handrail import events as ev
from handrail.events.fold import handlers
from handrail.loop.state import is_good
from handrail.messages import (
    AssistantMessage,
    Image,
    Message,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from handrail.tools.base import ToolResult

NO_PROGRESS = "no_progress"  # HumanRequested.tool of the loop's own question (rule L13)
STOPPED_NOTE = "[The person stopped this reply here.]"
UNKNOWN = "outcome unknown: the program ended while this ran; look before doing it again"
REFUSED = "[a picture was here; the provider refused it]"
NEVER_RAN = "not executed: the program ended before this call ran; send it again if it is still needed"


class Projection:
    """The messages for the next request."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._group: int | None = None  # index of the last reply while its group may still change
        self._calls: tuple[ToolCall, ...] = ()
        self._results: dict[str, ev.ToolFinished] = {}
        self._started: set[str] = set()
        self._asked: dict[str, ev.HumanRequested] = {}
        self._seen: dict[str, ToolCall] = {}
        self._checkpoint: UserMessage | None = None
        self._checkpoint_at = 0
        self.pieces: tuple[str, ...] = ()  # what the checkpoint quotes
        self.interrupted: tuple[str, ...] = ()  # the calls that it names

    def request(self) -> list[Message]:
        """The messages of a request that is made now."""
        self._close()
        if self._checkpoint is None:
            return self._messages.copy()
        at = min(self._checkpoint_at, len(self._messages))
        return [*self._messages[:at], self._checkpoint, *self._messages[at:]]

    def has_call(self, call_id: str) -> bool:
        """Whether any call so far had this id, those of broken replies included."""
        return call_id in self._seen

    def call(self, call_id: str) -> ToolCall:
        """The call of that id. Raises KeyError."""
        return self._seen[call_id]

    @property
    def has_checkpoint(self) -> bool:
        return self._checkpoint is not None

    @property
    def newest_picture(self) -> str | None:
        """The call whose result holds the newest picture in view; None when there is none."""
        for message in reversed(self._messages):
            if isinstance(message, ToolMessage) and any(
                isinstance(block, Image) for block in message.content
            ):
                return message.call_id
        return None

    @property
    def batch_open(self) -> bool:
        """Whether the last reply has calls whose batch is not finished."""
        return bool(self._calls)

    @property
    def messages(self) -> list[Message]:
        """The history without the checkpoint. Do not change the list."""
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

    def stored_result(self, call_id: str) -> ToolResult | None:
        """The recorded result of a call of the last reply."""
        event = self._results.get(call_id)
        if event is None:
            return None
        blocks: tuple[Text | Image, ...] = (Text(event.text), *event.images)
        return ToolResult(blocks, event.is_error, event.terminate, event.summary, event.diff)

    def started(self, call_id: str) -> bool:
        """Whether the start of this call's tool was recorded."""
        return call_id in self._started

    def apply(self, event: ev.Event) -> None:
        """Update the messages with one event."""
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
        if event.piece is not None:
            self._leave_out(event.piece)

    def _leave_out(self, call_id: str) -> None:
        """Put a note in the place of a result's pictures: the provider refuses them (rule W6)."""
        for index, message in enumerate(self._messages):
            if isinstance(message, ToolMessage) and message.call_id == call_id:
                kept = tuple(block for block in message.content if not isinstance(block, Image))
                self._messages[index] = replace(message, content=(*kept, Text(REFUSED)))

    def _checkpoint_made(self, event: ev.CheckpointMade) -> None:
        self._checkpoint = UserMessage((Text(event.text),), origin="checkpoint")
        self._checkpoint_at = len(self._messages)
        self.pieces, self.interrupted = event.pieces, event.calls

    def _compaction_finished(self, event: ev.CompactionFinished) -> None:
        if event.ok:
            self._close()
            summary = UserMessage((Text(event.summary),), origin="summary")
            kept = self._messages[len(self._messages) - event.kept :] if event.kept else []
            # Their usage describes the old context; it must not be taken for the size of the new one.
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
        """End the last group: a call without a result gets one that says what is known (rules L5, J3)."""
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
        self.pieces = self.interrupted = ()


def answer_message(asked: ev.HumanRequested, event: ev.HumanAnswered) -> UserMessage | None:
    """The message that an answer to the loop's own question adds; an answer to a tool is its result (rule H3)."""
    if asked.call_id is not None or event.how in ("stopped", "nobody"):
        return None
    text = event.text if asked.tool == NO_PROGRESS else answer_text(event.how, event.text, event.secret)
    return UserMessage((Text(text),)) if text.strip() else None


def answer_text(how: str, text: str, secret: bool = False) -> str:
    """A person's answer, as the model reads it (rule H3)."""
    said = "(given, kept secret)" if secret else text.strip()
    if how == "declined":
        return f"The person cannot do it. {said}".strip()
    if how == "answered":
        return said or "The person answered without any text."
    return f"The person did it. {said}".strip()


_HANDLERS = handlers(Projection)
