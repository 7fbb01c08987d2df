"""The fold: events in, screen state out.

`ViewState.apply(event)` applies one event and returns what changed. It reads no clock and does no I/O, and the same
events always give the same state, so a live run, a replay and a test share this path. The state is mutable for speed:
copying it for each event would make a long reply quadratic. Only the fold writes it; widgets read it.

Text is cleaned here, once, for every widget (rule L11).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from handrail import events as ev
from handrail.events import Event, QueuedMessage
from handrail.events.fold import handlers
from handrail_tui.view import wording
from handrail_tui.view._cleaned import (
    clean_approval,
    clean_question,
    clean_queue,
    clean_result,
    decision_item,
)
from handrail_tui.view.items import (
    CompactionItem,
    DecisionItem,
    EndItem,
    Meters,
    NoteItem,
    PersonItem,
    RunFacts,
    TranscriptItem,
)
from handrail_tui.view.stopwatch import Stopwatch
from handrail_tui.view.text import clean_for_terminal, clean_long, cut_lines, one_line
from handrail_tui.view.turns import TurnBuilder

Phase: TypeAlias = Literal[
    "idle",
    "asking",
    "streaming",
    "tools",
    "compacting",
    "retrying",
    "waiting",
    "approval",
    "needs-you",
    "finished",
    "interrupted",
]

STALLED_AFTER: Final = 45.0
"""Seconds without data after which a stream counts as stalled."""


@dataclass(slots=True)
class ViewChange:
    """What an event changed: a transcript item (`added`: a new one), the facts beside the transcript, the card."""

    item: TranscriptItem | None = None
    added: bool = False
    facts: bool = False
    card: bool = False


class ViewState:
    """Everything the screen shows, folded from events."""

    def __init__(self) -> None:
        self.header = RunFacts()
        self.meters = Meters()
        self.items: list[TranscriptItem] = []
        self.decisions: list[DecisionItem] = []
        self.steering: tuple[QueuedMessage, ...] = ()
        self.follow_ups: tuple[QueuedMessage, ...] = ()
        self.questions: dict[str, ev.HumanRequested] = {}
        self.approvals: dict[str, ev.ApprovalRequested] = {}
        self.wait: ev.WaitStarted | None = None
        self.checkpoint = ""
        self.finished: ev.RunFinished | None = None
        self.interrupted = False
        self.watch = Stopwatch()
        self.last_data_at: float | None = None
        self.turns = TurnBuilder()
        self._compaction: CompactionItem | None = None
        self._summary = False

    def clear(self) -> None:
        """Reset: the events will be applied again from the first one."""
        ViewState.__init__(self)

    @property
    def phase(self) -> Phase:
        """What the run is doing. The most urgent comes first."""
        if self.finished is not None:
            return "finished"
        if self.interrupted:
            return "interrupted"
        if self.questions:
            return "needs-you"
        if self.approvals:
            return "approval"
        if self.wait is not None:
            return "retrying" if self.wait.decision in ("retry", "resume") else "waiting"
        if self._compaction is not None:
            return "compacting"
        if self.watch.started_at is None:
            return "idle"
        attempt = self.turns.attempt
        if attempt and attempt.batch and attempt.batch.seconds is None:
            return "tools"
        return "streaming" if attempt and attempt.streaming and attempt.blocks else "asking"

    def stalled(self, now: float) -> float | None:
        """Seconds since the last data of an open stream when that is too long, else None."""
        if self.last_data_at is None or self.phase not in ("asking", "streaming", "compacting"):
            return None
        silence = now - self.last_data_at
        return silence if silence >= STALLED_AFTER else None

    def apply(self, event: Event) -> ViewChange:
        """Apply one event."""
        change: ViewChange = _FOLDS[type(event)](self, event)
        return change

    def _add(self, item: TranscriptItem, *, facts: bool = False, card: bool = False) -> ViewChange:
        self.items.append(item)
        return ViewChange(item, added=True, facts=facts, card=card)

    # The run ------------------------------------------------------------------------------------------------

    def _run_started(self, e: ev.RunStarted) -> ViewChange:
        resumed = e.resumed and self.watch.started_at is not None
        if resumed:
            self.watch.resume(e.at)
        else:
            self.watch.start(e.at)
            self.meters = Meters()
        self.finished, self.interrupted, self.turns = None, False, TurnBuilder()
        self.header = RunFacts(
            title=one_line(e.prompt),
            model=one_line(e.model, 80),
            cwd=one_line(e.cwd),
            session=one_line(e.session, 80),
            window=e.window,
            approve=one_line(e.approve, 20),
            sandbox=one_line(e.sandbox, 120),
            tools=tuple(one_line(name, 80) for name in e.tools),
            instructions=tuple((one_line(i.path), clean_for_terminal(i.text)) for i in e.instructions),
            has_output=e.output is not None,
        )
        meters = self.meters
        meters.max_turns, meters.max_attempts = e.max_turns, e.max_attempts
        meters.max_total_tokens, meters.max_cost = e.max_total_tokens, e.max_cost
        meters.deadline_s = e.deadline_s
        meters.recovery = bool(e.recovery.get("enabled", bool(e.recovery)))
        meters.max_resumes = e.recovery.get("max_resumes")
        meters.stream_retries = e.recovery.get("stream_retries")
        if resumed:
            return self._add(NoteItem("resumed"), facts=True, card=True)
        context = clean_for_terminal(e.context) if e.context else None
        return self._add(PersonItem("prompt", clean_for_terminal(e.prompt), context), facts=True, card=True)

    def _run_finished(self, e: ev.RunFinished) -> ViewChange:
        words, tone = wording.outcome(e)
        self.finished = clean_result(e)
        self._end(e.at)
        self.meters.usage, self.meters.cost = e.usage, e.cost if e.cost is not None else self.meters.cost
        # The person who stopped it knows why.
        error = self.finished.error if e.outcome != "cancelled" else None
        end = EndItem(words, tone, wording.totals(e), error or "")
        return self._add(end, facts=True, card=True)

    def _run_interrupted(self, e: ev.RunInterrupted) -> ViewChange:
        self.interrupted = True
        self._end(e.at)
        return self._add(NoteItem("interrupted; it can be resumed", "warning"), facts=True, card=True)

    def _end(self, at: float) -> None:
        """Close everything that a run may leave open."""
        self.questions.clear()
        self.approvals.clear()
        self.wait = self._compaction = None
        self.watch.release(at)
        self.watch.ended_at = at
        self.turns.end(at)

    def _settings_changed(self, e: ev.SettingsChanged) -> ViewChange:
        words = []
        if e.model is not None:
            self.header.model, self.header.window = one_line(e.model, 80), e.window
            words.append(f"model {self.header.model}")
        for name in ("max_turns", "max_total_tokens", "max_cost", "deadline_s"):
            if (value := getattr(e, name)) is not None:
                setattr(self.meters, name, value)
                words.append(f"{name.removesuffix('_s').replace('_', ' ')} {value}")
        if e.recovery is not None:
            self.meters.recovery = e.recovery
            words.append(f"recovery {'on' if e.recovery else 'off'}")
        if e.approve is not None:
            self.header.approve = one_line(e.approve, 20)
            words.append(f"approval {self.header.approve}")
        return self._add(NoteItem("changed: " + ", ".join(words)), facts=True)

    # Turns --------------------------------------------------------------------------------------------------

    def _turn_started(self, e: ev.TurnStarted) -> ViewChange:
        self.meters.turn = e.turn or self.meters.turn + 1
        self.last_data_at = e.at
        self._summary = e.purpose == "summary"
        if self._summary:
            return ViewChange(facts=True)
        follows = bool(self.items) and self.items[-1] is self.turns.current
        added = self.turns.start(e, self.meters.turn, follows=follows)
        turn = self.turns.current
        if added and turn is not None:
            return self._add(turn, facts=True)
        return ViewChange(turn, facts=True)

    def _message_started(self, e: ev.MessageStarted) -> ViewChange:
        self.last_data_at = e.at
        return ViewChange()

    def _message_delta(self, e: ev.MessageDelta) -> ViewChange:
        self.last_data_at = e.at
        if self._summary:
            return ViewChange()
        self.turns.delta(e)
        return ViewChange(self.turns.current)

    def _message_finished(self, e: ev.MessageFinished) -> ViewChange:
        self.last_data_at = e.at
        if e.purpose == "task":
            self.turns.message(e)
        return ViewChange(self.turns.current, facts=True)

    def _tool_batch_started(self, e: ev.ToolBatchStarted) -> ViewChange:
        self.turns.batch_started(e)
        return ViewChange(self.turns.current, facts=True)

    def _tool_started(self, e: ev.ToolStarted) -> ViewChange:
        self.turns.tool_started(e)
        return ViewChange(self.turns.current)

    def _tool_progress(self, e: ev.ToolProgress) -> ViewChange:
        self.turns.tool_progress(e)
        return ViewChange(self.turns.current)

    def _tool_finished(self, e: ev.ToolFinished) -> ViewChange:
        self.turns.tool_finished(e)
        return ViewChange(self.turns.current)

    def _tool_batch_finished(self, e: ev.ToolBatchFinished) -> ViewChange:
        self.turns.batch_finished(e)
        return ViewChange(self.turns.current, facts=True)

    def _turn_finished(self, e: ev.TurnFinished) -> ViewChange:
        self.meters.usage, self.meters.cost, self.meters.context = e.usage, e.cost, e.context
        self.turns.finished(e)
        return ViewChange(self.turns.current, facts=True)

    def _submission(self, e: ev.Submission) -> ViewChange:
        verdict = self.turns.submission(e)
        self.meters.rejected = e.attempt
        self.meters.max_attempts = e.of or self.meters.max_attempts
        if e.accepted:
            self.decisions.append(DecisionItem(e.at, "accepted", "accepted", "submission", turn=e.turn))
        else:
            why = "; ".join(f"{x.path}: {x.message}" if x.path else x.message for x in verdict.errors)
            self.decisions.append(
                DecisionItem(e.at, "rejected", "rejected", f"submission {e.attempt}", why, e.turn)
            )
        return ViewChange(self.turns.current, facts=True)

    # Recovery -----------------------------------------------------------------------------------------------

    def _decided(self, e: ev.Decided) -> ViewChange:
        if e.decision != "finish" or e.failure:
            self.decisions.append(decision_item(e))
        self.meters.ledger = e.after
        if not self._summary:
            self.turns.decided(e)
        return ViewChange(self.turns.current, facts=True, card=True)

    def _checkpoint_made(self, e: ev.CheckpointMade) -> ViewChange:
        self.checkpoint = clean_for_terminal(e.text)
        if self.decisions:
            self.decisions[-1].checkpoint = self.checkpoint
        self.turns.quoted(e)
        return ViewChange(self.turns.current, facts=True)

    def _wait_started(self, e: ev.WaitStarted) -> ViewChange:
        self.wait = replace(
            e, words=one_line(wording.provider_message(e.words), 400), source=one_line(e.source, 80)
        )
        if e.decision == "wait":
            self.watch.hold(e.at)
        return ViewChange(facts=True, card=True)

    def _wait_ended(self, e: ev.WaitEnded) -> ViewChange:
        self.wait = None
        self._release(e.at)
        return ViewChange(facts=True, card=True)

    def _compaction_started(self, e: ev.CompactionStarted) -> ViewChange:
        self._compaction = CompactionItem(one_line(e.why), e.messages, e.before, e.at)
        return self._add(self._compaction, facts=True)

    def _compaction_finished(self, e: ev.CompactionFinished) -> ViewChange:
        item, self._compaction, self._summary = self._compaction, None, False
        added = item is None
        if item is None:
            item = CompactionItem("", 0, e.before, e.at)
            self.items.append(item)
        item.ok, item.before, item.after, item.kept = e.ok, e.before or item.before, e.after, e.kept
        item.summary, item.failed = clean_for_terminal(e.summary), "" if e.ok else one_line(e.why)
        return ViewChange(item, added=added, facts=True)

    def _budget_spent(self, e: ev.BudgetSpent) -> ViewChange:
        which = one_line(e.which, 60).replace("_", " ")
        self.decisions.append(
            DecisionItem(e.at, "spent", "waiting", which, f"{e.spent} of {e.limit}", e.turn)
        )
        return self._add(NoteItem(f"{which}: {e.spent} of {e.limit} spent", "warning"), facts=True)

    def _no_progress(self, e: ev.NoProgress) -> ViewChange:
        return self._add(NoteItem(wording.no_progress(e.what, e.name, e.times), "warning"))

    def _notice(self, e: ev.Notice) -> ViewChange:
        return self._add(NoteItem(cut_lines(clean_long(e.text), 1_000), e.level))

    def _tools_changed(self, e: ev.ToolsChanged) -> ViewChange:
        name = one_line(e.server, 40)
        self.header.servers.pop(name, None)
        if e.of:
            self.header.servers[name] = e.of
        level: Literal["info", "warning"] = "warning" if e.state == "failed" else "info"
        return self._add(NoteItem(wording.tools_changed(e), level), facts=True)

    # People -------------------------------------------------------------------------------------------------

    def _human_requested(self, e: ev.HumanRequested) -> ViewChange:
        self.questions[e.id] = clean_question(e)
        if call := self.turns.call(e.call_id):
            call.state = "asking"
        self.decisions.append(DecisionItem(e.at, "ask", "needs-you", e.kind, one_line(e.needed, 400), e.turn))
        self.watch.hold(e.at)
        return ViewChange(self.turns.current, facts=True, card=True)

    def _human_answered(self, e: ev.HumanAnswered) -> ViewChange:
        question = self.questions.pop(e.id, None)
        self._release(e.at)
        if question and (call := self.turns.call(question.call_id)):
            call.state = "running"
        words = "a secret" if e.secret else one_line(e.text, 400)
        return self._add(
            NoteItem(
                ("" if e.how == "nobody" else "you: ")
                + wording.answer(e.how)
                + (f": {words}" if words else "")
            ),
            facts=True,
            card=True,
        )

    def _approval_requested(self, e: ev.ApprovalRequested) -> ViewChange:
        self.approvals[e.id] = clean_approval(e)
        if call := self.turns.call(e.call_id):
            call.state = "asking"
        self.watch.hold(e.at)
        return ViewChange(self.turns.current, facts=True, card=True)

    def _approval_answered(self, e: ev.ApprovalAnswered) -> ViewChange:
        request = self.approvals.pop(e.id, None)
        self._release(e.at)
        if request and (call := self.turns.call(request.call_id)):
            call.state = "queued" if e.how in ("once", "session") else "denied"
        return ViewChange(self.turns.current, facts=True, card=True)

    def _release(self, at: float) -> None:
        if not (self.questions or self.approvals or self.wait):
            self.watch.release(at)

    def _queue_changed(self, e: ev.QueueChanged) -> ViewChange:
        self.steering, self.follow_ups = clean_queue(e.steering), clean_queue(e.follow_ups)
        return ViewChange(facts=True)

    def _steered(self, e: ev.Steered) -> ViewChange:
        self.steering = tuple(m for m in self.steering if m.id != e.id)
        self.follow_ups = tuple(m for m in self.follow_ups if m.id != e.id)
        return self._add(PersonItem(e.kind, clean_for_terminal(e.text)), facts=True)


_FOLDS: Final = handlers(ViewState)
