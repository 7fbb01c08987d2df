"""The state of a run: a fold over its events.

A live run and a resumed one apply the same events here, so resuming keeps every counter by construction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from handrail import events as ev
from handrail.events.fold import handlers
from handrail.messages import AssistantMessage, Usage
from handrail.policy import Bounds
from handrail.recovery import ledger as ledgers


class RunState:
    """Counters, ledger, queue and open questions of the current run."""

    def __init__(self) -> None:
        self.bounds = Bounds()
        self.queue = Queue()
        self.questions: dict[str, ev.HumanRequested] = {}
        self.approvals: dict[str, ev.ApprovalRequested] = {}
        self.patterns: set[str] = set()
        # Answers and approvals for calls that have no result yet.
        self.answered: list[tuple[ev.HumanRequested, ev.HumanAnswered]] = []
        self.approved: dict[str, tuple[ev.ApprovalRequested, ev.ApprovalAnswered]] = {}
        self.poor_compactions = 0
        self.prompt = ""
        self._begin()

    def _begin(self) -> None:
        self.requests = 0
        self.attempts = 0
        self.usage = Usage()
        self.cost: float | None = 0.0
        self.submitted: ev.Submission | None = None
        self.judged: dict[str, ev.Submission] = {}
        self.ledger = ev.Ledger()
        self.pending: ev.Ledger | None = None
        self.wait: ev.WaitStarted | None = None
        self.must_compact = False
        self.last: AssistantMessage | None = None
        self.last_batch: ev.ToolBatchFinished | None = None
        self.settled = True  # the decision that follows the last reply has been recorded
        self.running = False
        self.active_s = 0.0
        self._mark: float | None = None

    @property
    def paused(self) -> bool:
        """The run's clock is paused: it waits for a person or for a usage limit (rules L3, H2)."""
        return bool(self.questions or self.approvals) or (
            self.wait is not None and self.wait.decision == "wait"
        )

    def active(self, now: float) -> float:
        """Seconds of wall clock that count for the deadline, up to `now` (rule L3)."""
        if self._mark is None or self.paused or not self.running:
            return self.active_s
        return self.active_s + max(0.0, now - self._mark)

    def take_answer(self, wanted: Callable[[ev.HumanRequested], bool]) -> ev.HumanAnswered | None:
        """Take an answer that was recorded but not delivered to the tool that asked. Each is taken once."""
        for pair in self.answered:
            if wanted(pair[0]):
                self.answered.remove(pair)
                return pair[1]
        return None

    def apply(self, event: ev.Event) -> None:
        """Update the state with one event."""
        handler = _HANDLERS.get(type(event))
        if handler is None:
            return
        if (
            self._mark is not None
            and self.running
            and not self.paused
            and not isinstance(event, ev.RunStarted)
        ):
            # Time between two processes of one run does not count: hence not for RunStarted.
            self.active_s += max(0.0, event.at - self._mark)
        handler(self, event)
        self._mark = event.at  # after the handler: a run's clock runs from its very start

    def _run_started(self, event: ev.RunStarted) -> None:
        if not event.resumed:
            self._begin()
            self.questions, self.approvals = {}, {}
            self.answered, self.approved = [], {}
            self.prompt = event.prompt
        self.running = True
        self.bounds = Bounds(
            max_turns=event.max_turns,
            max_attempts=event.max_attempts,
            deadline_s=event.deadline_s,
            max_total_tokens=event.max_total_tokens,
            max_cost=event.max_cost,
        )

    def _turn_started(self, event: ev.TurnStarted) -> None:
        self.requests += 1
        self.settled, self.wait = True, None
        if self.pending is not None:
            self.ledger, self.pending = self.pending, None

    def _message_finished(self, event: ev.MessageFinished) -> None:
        message = event.message
        self.last, self.last_batch = message, None
        self.usage += message.usage or event.estimate or Usage()
        known = self.cost is not None and event.cost is not None
        self.cost = self.cost + event.cost if known else None  # type: ignore[operator]
        if event.purpose == "task":
            self.settled = False
            if is_good(message):
                self.ledger = ledgers.after_good_reply(self.ledger)
            if not message.calls:
                self.ledger = ledgers.without_tail(self.ledger)

    def _tool_batch_finished(self, event: ev.ToolBatchFinished) -> None:
        self.answered, self.approved = [], {}
        self.last_batch = event
        if not event.ends:
            self.ledger = ledgers.without_tail(self.ledger)

    def _submission(self, event: ev.Submission) -> None:
        self.judged[event.call_id] = event
        if not event.accepted:
            self.attempts = event.attempt
        elif self.submitted is None:
            self.submitted = event

    def _decided(self, event: ev.Decided) -> None:
        self.settled = True
        self.pending = None if event.decision in ("ask", "finish") else event.after
        if event.decision == "compact":
            self.must_compact = True
        if event.until is not None and event.decision in _PAUSES:
            # The pause counts from here on, even if the program exits before it begins (rules R7, U7).
            self.wait = _wait_of(event, event.until)

    def _wait_started(self, event: ev.WaitStarted) -> None:
        self.wait = event

    def _wait_ended(self, event: ev.WaitEnded) -> None:
        self.wait = None

    def _human_requested(self, event: ev.HumanRequested) -> None:
        self.questions[event.id] = event

    def _human_answered(self, event: ev.HumanAnswered) -> None:
        asked = self.questions.pop(event.id, None)
        usable = event.how in ("resolved", "answered", "declined", "cancelled") and not event.secret
        if asked is not None and asked.call_id is not None and usable:
            self.answered.append((asked, event))

    def _approval_requested(self, event: ev.ApprovalRequested) -> None:
        self.approvals[event.id] = event

    def _approval_answered(self, event: ev.ApprovalAnswered) -> None:
        asked = self.approvals.pop(event.id, None)
        if asked is not None and event.how in ("once", "session", "deny"):
            self.approved[asked.call_id] = (asked, event)
        if event.how == "session" and event.pattern is not None:
            self.patterns.add(event.pattern)

    def _queue_changed(self, event: ev.QueueChanged) -> None:
        self.queue = Queue(event.steering, event.follow_ups)

    def _steered(self, event: ev.Steered) -> None:
        self.settled = True
        self.queue = self.queue.without(event.id)
        if event.kind == "follow_up":
            self.ledger = ev.Ledger()
            self.pending = None
        else:
            self.ledger = ledgers.after_user_message(self.ledger)
            if self.pending is not None:
                self.pending = ledgers.after_user_message(self.pending)

    def _settings_changed(self, event: ev.SettingsChanged) -> None:
        changed: dict[str, Any] = {
            name: getattr(event, name)
            for name in ("max_turns", "max_attempts", "deadline_s", "max_total_tokens", "max_cost")
            if getattr(event, name) is not None
        }
        if changed:
            self.bounds = self.bounds.model_copy(update=changed)

    def _compaction_finished(self, event: ev.CompactionFinished) -> None:
        self.must_compact = False
        if event.ok:
            poor = event.after > POOR_GAIN * event.before
            self.poor_compactions = self.poor_compactions + 1 if poor else 0

    def _run_finished(self, event: ev.RunFinished) -> None:
        self.running = False
        self.settled, self.wait = True, None

    def _run_interrupted(self, event: ev.RunInterrupted) -> None:
        self.running = False


_PAUSES = ("retry", "resume", "wait")


def _wait_of(decided: ev.Decided, until: float) -> ev.WaitStarted:
    """The pause that a decision announces, as an event."""
    return ev.WaitStarted(
        at=decided.at,
        turn=decided.turn,
        seconds=decided.delay_s or 0.0,
        until=until,
        decision=decided.decision,
        reason=decided.reason,
        words=decided.failure.text[:2000] if decided.failure else decided.why,
        number=decided.number,
        limit=decided.limit,
    )


POOR_GAIN = 0.8  # a compaction that leaves a larger share than this gained under 20 % (rule R14)


class Queue:
    """A person's messages that wait to be delivered, in order. Immutable."""

    __slots__ = ("follow_ups", "steering")

    def __init__(
        self, steering: tuple[ev.QueuedMessage, ...] = (), follow_ups: tuple[ev.QueuedMessage, ...] = ()
    ) -> None:
        self.steering, self.follow_ups = steering, follow_ups

    def __bool__(self) -> bool:
        return bool(self.steering or self.follow_ups)

    @property
    def all(self) -> tuple[ev.QueuedMessage, ...]:
        return self.steering + self.follow_ups

    def find(self, id: str) -> ev.QueuedMessage | None:
        return next((m for m in self.all if m.id == id), None)

    def with_steering(self, message: ev.QueuedMessage) -> Queue:
        return Queue((*self.steering, message), self.follow_ups)

    def with_follow_up(self, message: ev.QueuedMessage) -> Queue:
        return Queue(self.steering, (*self.follow_ups, message))

    def without(self, id: str) -> Queue:
        return self._map(lambda lane: tuple(m for m in lane if m.id != id))

    def edited(self, id: str, text: str) -> Queue:
        return self._map(lambda lane: tuple(replace(m, text=text) if m.id == id else m for m in lane))

    def moved(self, id: str, offset: int) -> Queue:
        """Move a message `offset` places later (earlier when negative) among those of its kind."""

        def move(lane: tuple[ev.QueuedMessage, ...]) -> tuple[ev.QueuedMessage, ...]:
            index = next((i for i, m in enumerate(lane) if m.id == id), None)
            if index is None:
                return lane
            rest = [m for m in lane if m.id != id]
            rest.insert(max(0, index + offset), lane[index])
            return tuple(rest)

        return self._map(move)

    def _map(self, change: Callable[[tuple[ev.QueuedMessage, ...]], tuple[ev.QueuedMessage, ...]]) -> Queue:
        return Queue(change(self.steering), change(self.follow_ups))


def is_good(message: AssistantMessage) -> bool:
    """A good reply: stop or tool_use, and not empty (rules, Words)."""
    if message.stop_reason not in ("stop", "tool_use"):
        return False
    return bool(message.calls) or bool(message.text.strip())


_HANDLERS = handlers(RunState)
