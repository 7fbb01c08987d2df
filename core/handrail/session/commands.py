"""What a person may say to a session: every command, and what can be seen of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from handrail import events as ev
from handrail.clock import Clock
from handrail.loop.batch import ToolSet
from handrail.loop.context import RunConfig, RunContext
from handrail.loop.people import Answer, How, PendingAnswers, Verdict
from handrail.loop.run import Run
from handrail.loop.state import Queue
from handrail.messages import clean
from handrail.policy import Bounds
from handrail.providers.base import Provider


class Commands:
    """The commands of a session. `Session` adds the runs that they speak to."""

    def __init__(
        self, stage: RunContext, plan: RunConfig, kit: ToolSet, desk: PendingAnswers, bounds: Bounds
    ) -> None:
        self._stage, self._plan, self._kit, self._desk = stage, plan, kit, desk
        self._bounds = bounds
        self._run: Run | None = None
        self._replaced: list[Provider] = []
        self._signal: str | None = None
        self._numbers = 0

    @property
    def clock(self) -> Clock:
        return self._stage.clock

    @property
    def running(self) -> bool:
        return self._run is not None

    @property
    def stage(self) -> RunContext:
        """State and projection of the run at hand; to read, not to change."""
        return self._stage

    @property
    def provider(self) -> Provider:
        return self._plan.provider

    def listen(self, listener: ev.Listener) -> Callable[[], None]:
        """Call `listener` with every event from now on, in order, in the event loop. Returns what ends that."""
        return self._stage.listen(listener)

    def steer(self, text: str) -> str:
        """Queue a message for the next request of the running user request (rule L8). Returns its id."""
        id = self._enqueue(text, Queue.with_steering)
        if self._run is not None:
            self._run.backoff.steered()
        return id

    def follow_up(self, text: str) -> str:
        """Queue a message that begins a new user request when the run would end (rule L8). Returns its id."""
        return self._enqueue(text, Queue.with_follow_up)

    def withdraw(self, id: str) -> ev.QueuedMessage | None:
        """Take a message off the queue. None: it was delivered already, or never there."""
        message = self._stage.state.queue.find(id)
        if message is not None:
            self._set_queue(self._stage.state.queue.without(id))
        return message

    def edit_queued(self, id: str, text: str) -> None:
        """Change the words of a message that waits."""
        self._set_queue(self._stage.state.queue.edited(id, clean(text)))

    def move_queued(self, id: str, offset: int) -> None:
        """Move a message that waits by `offset` places in its lane."""
        self._set_queue(self._stage.state.queue.moved(id, offset))

    def stop(self) -> None:
        """Stop the run: stream, tools, waits, questions end at once (rule L9)."""
        if self._run is not None:
            self._stage.interrupts.fire("stop")

    def suspend(self, signal: str | None = None) -> None:
        """End the run so that it can be resumed (rule J7)."""
        if self._run is not None:
            self._signal = signal
            self._stage.interrupts.fire("suspend")

    def skip_wait(self) -> None:
        """Ask now instead of waiting on."""
        if self._run is not None:
            self._run.backoff.skip()

    def retry_now(self) -> None:
        """Give up on a stalled stream; recovery decides what follows."""
        if self._run is not None:
            self._run.asker.retry_now()

    def answer(self, id: str, how: How, text: str = "", *, secret: bool = False) -> bool:
        """Answer a question (rule H3). A secret text reaches only the tool that asked. False: no such open question."""
        if not self._desk.is_open(id):
            return False
        text = clean(text)
        self._stage.emit(
            ev.HumanAnswered(
                **self._stage.stamp(), id=id, how=how, text="" if secret else text, secret=secret
            )
        )
        self._desk.answer(id, Answer(how, text, secret))
        if how == "stopped":
            self.stop()
        return True

    def approve(self, id: str, how: Verdict, text: str = "") -> bool:
        """Answer an approval (rule H5). False: no such open approval."""
        asked = self._stage.state.approvals.get(id)
        if asked is None or not self._desk.is_open(id):
            return False
        if how == "session" and asked.pattern is None:
            how = "once"
        pattern = asked.pattern if how == "session" else None
        self._stage.emit(
            ev.ApprovalAnswered(**self._stage.stamp(), id=id, how=how, text=clean(text), pattern=pattern)
        )
        return self._desk.answer(id, Answer(how, clean(text)))

    def set_recovery(self, on: bool) -> None:
        """Switch recovery on or off; off ends a pause and no request follows (rule R12)."""
        self._plan.policy = self._plan.policy.model_copy(update={"enabled": on})
        self._stage.emit(ev.SettingsChanged(**self._stage.stamp(), recovery=on))
        if not on and self._run is not None:
            self._run.backoff.recovery_off()

    def set_provider(self, provider: Provider) -> None:
        """Ask another model from the next request on. Raises ValueError when a cost bound needs its unknown price."""
        old, self._plan.provider = self._plan.provider, provider
        try:
            self._check_price(self._stage.state.bounds if self.running else self._bounds)
        except ValueError:
            self._plan.provider = old
            raise
        self._replaced.append(old)
        model = provider.model
        self._stage.emit(ev.SettingsChanged(**self._stage.stamp(), model=model.name, window=model.window))

    def set_approve(self, mode: Literal["ask", "edits", "all"]) -> None:
        """Change what asks first."""
        self._kit.mode = mode
        self._stage.emit(ev.SettingsChanged(**self._stage.stamp(), approve=mode))

    def raise_bounds(
        self,
        *,
        max_turns: int = 0,
        max_attempts: int = 0,
        deadline_s: float = 0.0,
        max_total_tokens: int = 0,
        max_cost: float = 0.0,
    ) -> None:
        """Raise bounds by these amounts, in a run or before it goes on."""
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
        """Put other bounds in force, in a run or before it goes on.

        Raises ValueError for a cost bound without a known price (rule L3).
        """
        self._check_price(bounds)
        self._bounds = bounds
        self._stage.emit(
            ev.SettingsChanged(
                **self._stage.stamp(),
                max_turns=bounds.max_turns,
                max_attempts=bounds.max_attempts,
                deadline_s=bounds.deadline_s,
                max_total_tokens=bounds.max_total_tokens,
                max_cost=bounds.max_cost,
            )
        )

    def notice(self, text: str, *, level: Literal["info", "warning", "error"] = "info") -> None:
        """Tell the person something that the run itself does not say."""
        self._stage.emit(ev.Notice(**self._stage.stamp(), text=clean(text), level=level))

    def compact(self) -> None:
        """Summarise older messages before the next request (rule R14, by hand)."""
        self._plan.compact_now = True

    def _enqueue(self, text: str, add: Callable[[Queue, ev.QueuedMessage], Queue]) -> str:
        self._numbers += 1
        message = ev.QueuedMessage(f"m{self._numbers}", clean(text))
        self._set_queue(add(self._stage.state.queue, message))
        return message.id

    def _set_queue(self, queue: Queue) -> None:
        self._stage.emit(
            ev.QueueChanged(**self._stage.stamp(), steering=queue.steering, follow_ups=queue.follow_ups)
        )

    def _numbered_by(self, event: ev.Event) -> None:
        """Go on numbering queued messages after a stored run."""
        if isinstance(event, ev.QueueChanged):
            for message in event.steering + event.follow_ups:
                if message.id[1:].isdigit():
                    self._numbers = max(self._numbers, int(message.id[1:]))

    def _check_price(self, bounds: Bounds) -> None:
        if bounds.max_cost is not None and self._plan.provider.model.price is None:
            name = self._plan.provider.model.name
            raise ValueError(
                f"max_cost: the price of {name} is unknown, so a cost bound cannot be held; set its price"
            )


def _more(value: Any, by: Any) -> Any:
    return value + by if value is not None else None
