"""What a person can do to any session, whoever runs in it: steer, stop, answer, approve, move bounds."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Literal, get_args

from handrail import events as ev
from handrail.clock import Clock
from handrail.forms import read_answer
from handrail.loop.context import RunContext
from handrail.loop.people import AnswerKind, ApprovalChoice, HumanAnswer, PendingAnswers
from handrail.loop.projection import Projection
from handrail.loop.state import Queue, RunState
from handrail.messages import clean
from handrail.policy import Bounds
from handrail.session.who import this_person
from handrail.tools.source import ToolSource


class PersonCommands(ABC):
    """The commands that need nothing but the events, the open questions and the bounds of a session."""

    id: str

    def __init__(self, ctx: RunContext, answers: PendingAnswers, bounds: Bounds) -> None:
        self._ctx, self._answers, self._bounds = ctx, answers, bounds
        self._signal: str | None = None
        self._numbers = 0

    @property
    @abstractmethod
    def running(self) -> bool:
        """Whether a run is under way."""

    @abstractmethod
    def _check_price(self, bounds: Bounds) -> None:
        """Raise ValueError for a cost bound without a known price (rule L3)."""

    @property
    def clock(self) -> Clock:
        return self._ctx.clock

    @property
    def state(self) -> RunState:
        """Counters, ledger, queue and open questions. Read it; do not change it."""
        return self._ctx.state

    @property
    def projection(self) -> Projection:
        """What the model sees. Read it; do not change it."""
        return self._ctx.projection

    @property
    def tool_source(self) -> ToolSource | None:
        """Where the tools of MCP servers come from; None without one."""
        return None

    def start_servers(self) -> None:
        """Start the servers of tools before the first run, where there are any."""
        return

    async def end_servers(self) -> None:
        """End those servers, with everything that they started."""
        return

    def listen(self, listener: ev.Listener) -> Callable[[], None]:
        """Call `listener` with every event from now on, in the event loop. Returns a function that unsubscribes it."""
        return self._ctx.listen(listener)

    def steer(self, text: str) -> str:
        """Queue a message for the next request of the running user request (rule L8). Returns its id."""
        id = self._enqueue(text, Queue.with_steering)
        wait = self._ctx.state.wait
        if wait is not None and wait.decision in ("retry", "resume"):
            # It replaces the rest of a retry's or resume's delay, no other wait (rule R1).
            self._ctx.interrupts.send("steer")
        return id

    def follow_up(self, text: str) -> str:
        """Queue a message that begins a new user request when the run would end (rule L8). Returns its id."""
        return self._enqueue(text, Queue.with_follow_up)

    def withdraw(self, id: str) -> ev.QueuedMessage | None:
        """Take a message off the queue. None: it was delivered already, or does not exist."""
        message = self._ctx.state.queue.find(id)
        if message is not None:
            self._set_queue(self._ctx.state.queue.without(id))
        return message

    def edit_queued(self, id: str, text: str) -> None:
        """Change the text of a queued message."""
        self._set_queue(self._ctx.state.queue.edited(id, clean(text)))

    def move_queued(self, id: str, offset: int) -> None:
        """Move a queued message `offset` places later (earlier when negative) among those of its kind."""
        self._set_queue(self._ctx.state.queue.moved(id, offset))

    def stop(self) -> None:
        """Stop the run. Stream, tools, waits and questions end at once (rule L9)."""
        if self.running:
            self._ctx.interrupts.fire("stop")

    def suspend(self, signal: str | None = None) -> None:
        """End the run so that it can be resumed (rule J7)."""
        if self.running:
            self._signal = signal
            self._ctx.interrupts.fire("suspend")

    def skip_wait(self) -> None:
        """Make the next request now instead of waiting."""
        self._ctx.interrupts.send("skip")

    def postpone_wait(self, until: float) -> bool:
        """Wait until the moment `until` (seconds since the epoch) instead, for whatever is waited for (rule U8).

        False: there is no wait, or the moment has passed.
        """
        if self._ctx.state.wait is None or until <= self._ctx.clock.now():
            return False
        self._ctx.interrupts.send("later", until)
        return True

    def retry_now(self) -> None:
        """Treat the request under way as broken; recovery decides what follows."""
        self._ctx.interrupts.send("retry")

    def answer(
        self, id: str, how: AnswerKind, text: str = "", *, secret: bool = False, by: str | None = None
    ) -> bool:
        """Answer a question (rule H3). A secret text goes only to the tool that asked. False: no such open question.

        The answer to a form is JSON or `name=value` pairs. `by` says who answers, for the record; None: the person at
        this terminal. Raises ValueError for an unknown `how` and FormError for an answer that does not fit; the
        question then stays open (rule H6).
        """
        if not is_known(how, AnswerKind):
            raise ValueError(unknown_word("a question", how, AnswerKind))
        if not self._answers.is_open(id):
            return False
        text = self._checked(id, how, clean(text))
        self._ctx.emit(
            ev.HumanAnswered(
                **self._ctx.stamp(),
                id=id,
                how=how,
                text="" if secret else text,
                secret=secret,
                by=this_person() if by is None else clean(by),
            )
        )
        self._answers.answer(id, HumanAnswer(how, text, secret))
        if how == "stopped":
            self.stop()
        return True

    def _checked(self, id: str, how: AnswerKind, text: str) -> str:
        """The answer to a form as JSON. Raises FormError (rule H6)."""
        asked = self._ctx.state.questions.get(id)
        if asked is None or not asked.fields or how not in ("resolved", "answered"):
            return text
        return json.dumps(read_answer(asked.fields, text), ensure_ascii=False)

    def approve(self, id: str, how: ApprovalChoice, text: str = "", *, by: str | None = None) -> bool:
        """Answer an approval (rule H5). False: no such open approval.

        `by` says who answers, for the record; None: the person at this terminal. Raises ValueError for an unknown
        `how`; the call is then denied (rule H6).
        """
        if not is_known(how, ApprovalChoice):
            words = unknown_word("an approval", how, ApprovalChoice)
            self._answer_approval(id, "deny", words, by)
            raise ValueError(words)
        return self._answer_approval(id, how, text, by)

    def _answer_approval(self, id: str, how: ApprovalChoice, text: str, by: str | None) -> bool:
        asked = self._ctx.state.approvals.get(id)
        if asked is None or not self._answers.is_open(id):
            return False
        if how == "session" and asked.pattern is None:
            how = "once"
        text = clean(text)
        self._ctx.emit(
            ev.ApprovalAnswered(
                **self._ctx.stamp(),
                id=id,
                how=how,
                text=text,
                pattern=asked.pattern if how == "session" else None,
                by=this_person() if by is None else clean(by),
            )
        )
        return self._answers.answer(id, HumanAnswer(how, text))

    def raise_bounds(
        self,
        *,
        max_turns: int = 0,
        max_attempts: int = 0,
        deadline_s: float = 0.0,
        max_total_tokens: int = 0,
        max_cost: float = 0.0,
    ) -> None:
        """Raise bounds by these amounts, during a run or before it is resumed."""
        bounds = self._bounds
        self.set_bounds(
            Bounds(
                max_turns=bounds.max_turns + max_turns,
                max_attempts=bounds.max_attempts + max_attempts,
                deadline_s=_more(bounds.deadline_s, deadline_s),
                max_total_tokens=_more(bounds.max_total_tokens, max_total_tokens),
                max_cost=_more(bounds.max_cost, max_cost),
            )
        )

    def set_bounds(self, bounds: Bounds) -> None:
        """Replace the bounds, during a run or before it is resumed.

        Raises ValueError for a cost bound without a known price (rule L3).
        """
        self._check_price(bounds)
        self._bounds = bounds
        self._ctx.emit(
            ev.SettingsChanged(
                **self._ctx.stamp(),
                max_turns=bounds.max_turns,
                max_attempts=bounds.max_attempts,
                deadline_s=bounds.deadline_s,
                max_total_tokens=bounds.max_total_tokens,
                max_cost=bounds.max_cost,
            )
        )

    def notice(self, text: str, *, level: Literal["info", "warning", "error"] = "info") -> None:
        """Show the person a message that does not come from the run itself."""
        self._ctx.emit(ev.Notice(**self._ctx.stamp(), text=clean(text), level=level))

    def _enqueue(self, text: str, add: Callable[[Queue, ev.QueuedMessage], Queue]) -> str:
        self._numbers += 1
        message = ev.QueuedMessage(f"m{self._numbers}", clean(text))
        self._set_queue(add(self._ctx.state.queue, message))
        return message.id

    def _set_queue(self, queue: Queue) -> None:
        self._ctx.emit(
            ev.QueueChanged(**self._ctx.stamp(), steering=queue.steering, follow_ups=queue.follow_ups)
        )

    def _continue_numbering(self, event: ev.Event) -> None:
        """Continue the numbering of a stored run's queued messages."""
        if isinstance(event, ev.QueueChanged):
            for message in event.steering + event.follow_ups:
                if message.id[1:].isdigit():
                    self._numbers = max(self._numbers, int(message.id[1:]))


def is_known(word: object, words: Any) -> bool:
    return isinstance(word, str) and word in get_args(words)


def unknown_word(what: str, word: object, words: Any) -> str:
    return f"{what} cannot be {clean(str(word))[:40]!r}; it can be: {', '.join(get_args(words))}"


def _more(value: Any, by: Any) -> Any:
    return value + by if value is not None else None
