"""The part of the fold that builds turns: requests, streamed replies, batches and their results."""

from __future__ import annotations

from handrail import events as ev
from handrail.events import FieldError
from handrail.messages import AssistantMessage, Text, Thinking
from handrail_tui.view import wording
from handrail_tui.view.items import (
    AttemptItem,
    BatchItem,
    CallDraft,
    CallItem,
    ReplyBlock,
    SubmissionVerdict,
    TurnItem,
)
from handrail_tui.view.text import (
    clean_for_terminal,
    clean_long,
    clean_value,
    line_count,
    one_line,
    plural,
    reveal,
)


class TurnBuilder:
    """Builds the current turn. `current` is None before the first request of a run."""

    def __init__(self) -> None:
        self.current: TurnItem | None = None
        self._heading = ""

    @property
    def attempt(self) -> AttemptItem | None:
        return self.current.current if self.current else None

    def start(self, event: ev.TurnStarted, number: int, *, follows: bool) -> bool:
        """A request begins: a new turn, or another attempt of a broken one. True for a new turn.

        `follows`: the turn is the last item of the transcript.
        """
        attempt = AttemptItem(number, event.at, self._heading)
        self._heading = ""
        before = self.current
        if before is not None and before.current.superseded and follows:
            attempt.heading = ", ".join(p for p in (attempt.heading, before.current.fault) if p)
            before.attempts.append(attempt)
            return False
        self.current = TurnItem([attempt])
        return True

    def delta(self, event: ev.MessageDelta) -> None:
        """More of the reply."""
        attempt = self.attempt
        if attempt is None:
            return
        if event.kind == "tool_call":
            writing = attempt.writing.setdefault(event.index or 0, CallDraft(""))
            if event.name:
                writing.name = one_line(event.name, 60)
            writing.chars += len(event.text)
            return
        block = attempt.blocks[-1] if attempt.blocks else None
        if block is None or block.kind != event.kind or block.ended_at is not None:
            if block is not None and block.ended_at is None:
                block.close(event.at)
            block = ReplyBlock(event.kind, event.at)
            attempt.blocks.append(block)
        block.add(event.text)

    def message(self, event: ev.MessageFinished) -> None:
        """The complete reply, or as much as arrived."""
        if attempt := self.attempt:
            attempt.streaming, attempt.seconds = False, event.seconds
            attempt.writing.clear()
            attempt.blocks = _final_blocks(attempt.blocks, event.message, event.at)
            attempt.fault = wording.reply_end(event.message.stop_reason)

    def decided(self, event: ev.Decided) -> None:
        """A decision of recovery: a broken reply is superseded by the next attempt."""
        attempt = self.attempt
        if attempt is None:
            return
        if event.omits or event.failure:
            attempt.fault = wording.fault(event, attempt)
        if event.omits and event.decision not in ("ask", "finish"):
            attempt.superseded = True
            self._heading = wording.attempt_heading(event)

    def quoted(self, event: ev.CheckpointMade) -> None:
        """How much of the broken reply is quoted in the next request (rule R9)."""
        # A checkpoint may quote an earlier attempt alone.
        if event.quoted and (attempt := self.attempt) and attempt.chars:
            attempt.kept = plural(event.quoted, "character")

    def call(self, call_id: str | None) -> CallItem | None:
        """A call of the batch under way."""
        batch = self.attempt.batch if self.attempt else None
        return next((call for call in batch.calls if call.id == call_id), None) if batch else None

    def batch_started(self, event: ev.ToolBatchStarted) -> None:
        if attempt := self.attempt:
            calls = [
                CallItem(c.id, one_line(c.name, 60), one_line(reveal(c.title), 400)) for c in event.calls
            ]
            attempt.batch = BatchItem(event.at, calls, event.sequential)

    def tool_started(self, event: ev.ToolStarted) -> None:
        if call := self.call(event.call_id):
            call.state, call.started_at, call.effect = "running", event.at, event.effect
            call.title = one_line(reveal(event.title), 400) or call.title

    def tool_progress(self, event: ev.ToolProgress) -> None:
        if call := self.call(event.call_id):
            call.tail.feed(event.text)

    def tool_finished(self, event: ev.ToolFinished) -> None:
        call = self.call(event.call_id)
        if call is None:
            return
        if event.executed:
            call.state = "error" if event.is_error else "ok"
        elif call.verdict is not None:
            call.state = "ok" if call.verdict.accepted else "error"
        elif call.state != "denied":
            call.state = "skipped"
        call.seconds, call.terminate = event.seconds, event.terminate
        call.summary = one_line(event.summary, 120)
        call.lines = line_count(event.text)
        call.text = clean_long(event.text)
        call.diff = clean_long(event.diff) if event.diff else None

    def batch_finished(self, event: ev.ToolBatchFinished) -> None:
        if self.attempt and (batch := self.attempt.batch):
            batch.seconds, batch.votes = event.seconds, event.votes
            batch.of, batch.ends = event.of, event.ends

    def finished(self, event: ev.TurnFinished) -> None:
        if attempt := self.attempt:
            attempt.seconds, attempt.streaming = event.seconds, False

    def submission(self, event: ev.Submission) -> SubmissionVerdict:
        """A submission was validated."""
        errors = tuple(FieldError(one_line(x.path, 120), one_line(x.message)) for x in event.errors)
        verdict = SubmissionVerdict(event.accepted, event.attempt, event.of, errors, clean_value(event.value))
        if call := self.call(event.call_id):
            call.verdict = verdict
        return verdict

    def end(self, at: float) -> None:
        """The run ended: close everything that was still open."""
        if attempt := self.attempt:
            attempt.streaming = False
            attempt.writing.clear()
            for block in attempt.blocks:
                if block.ended_at is None:
                    block.close(at)
            if attempt.batch and attempt.batch.seconds is None:
                attempt.batch.seconds = max(0.0, at - attempt.batch.started_at)


def _final_blocks(streamed: list[ReplyBlock], message: AssistantMessage, at: float) -> list[ReplyBlock]:
    """The blocks of the complete reply. A streamed block with the same text is reused, with its moments."""
    final: list[ReplyBlock] = []
    for block in streamed:
        if block.ended_at is None:
            block.close(at)
    for part in message.content:
        if not isinstance(part, Text | Thinking) or not part.text:
            continue
        text = clean_for_terminal(part.text)
        twin = next((b for b in streamed[len(final) :] if b.kind == part.type), None)
        if twin is not None and twin.text == text:
            final.append(twin)
            continue
        began = twin.started_at if twin else at
        final.append(ReplyBlock(part.type, began, [text], len(text), twin.ended_at if twin else at))
    return final
