"""A session: one way in (commands), one way out (events). It ties the loop to a record, people and a clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

from handrail import events as ev
from handrail.clock import Clock, RealClock
from handrail.human.approvals import Mode
from handrail.human.ask import NAME as ASK_HUMAN
from handrail.human.ask import AskHuman
from handrail.human.desk import Answer, Asked, Desk, How, Verdict
from handrail.instructions import joined
from handrail.loop.bounds import DeadlineWatch
from handrail.loop.calls import Kit
from handrail.loop.people import People
from handrail.loop.plan import End, Plan
from handrail.loop.run import Run
from handrail.loop.stage import Record, Stage
from handrail.loop.state import Queue
from handrail.mask import Masker
from handrail.messages import clean
from handrail.output import Output
from handrail.policy import Bounds, RecoveryPolicy
from handrail.providers.base import Effort, Provider, ToolChoice, close
from handrail.tools.base import Tool
from handrail.tools.submit import SubmitTool


class Session:
    """Runs of one conversation with a model.

    `tools` are what the model may call besides `submit` (offered when `output` is given) and `ask_human` (offered
    unless `ask_human=False`). `approve` says what asks first (rule H5; None is `ask`), `attended` whether somebody is
    there to answer: a flag, or a function of the question. `record` keeps events (rule J1); None keeps nothing.
    Values of `secrets` are masked in every event (rule J5).

    Raises ValueError for two tools of one name, a tool named `submit` or `ask_human`, and a cost bound without a known
    price (rules L2, L3).
    """

    def __init__(
        self,
        provider: Provider,
        *,
        tools: Iterable[Tool] = (),
        cwd: Path | None = None,
        instructions: Sequence[ev.Instruction] = (),
        bounds: Bounds | None = None,
        recovery: RecoveryPolicy | None = None,
        approve: Mode | None = "ask",
        output: Output[Any] | None = None,
        clock: Clock | None = None,
        record: Record | None = None,
        attended: bool | Callable[[Asked], bool] = False,
        ask_human: bool = True,
        env: Mapping[str, str] | None = None,
        max_output: int | None = None,
        effort: Effort | None = None,
        tool_choice: ToolChoice = "auto",
        id: str | None = None,
        secrets: Iterable[str] = (),
    ) -> None:
        self.id = id or uuid4().hex[:12]
        self.value: Any = None
        self._bounds = bounds or Bounds()
        self._instructions = tuple(instructions)
        system = joined(self._instructions)
        policy = recovery or RecoveryPolicy()
        self._plan = Plan(provider, policy, system, max_output, effort, tool_choice)
        self._kit = Kit(_named(tools, ask_human), cwd or Path.cwd(), _submit(output), approve or "ask", env)
        self._check_price(self._bounds)
        self._stage = Stage(clock or RealClock(), record, Masker(secrets))
        self._desk = Desk(attended if callable(attended) else lambda asked: bool(attended))
        self._people = People(self._stage, self._desk)
        self._run: Run | None = None
        self._replaced: list[Provider] = []
        self._signal: str | None = None
        self._numbers = 0
        self._in_flight: tuple[ev.MessageDelta, ...] = ()

    # What can be seen --------------------------------------------------------------------------------------------

    @property
    def clock(self) -> Clock:
        return self._stage.clock

    @property
    def running(self) -> bool:
        return self._run is not None

    @property
    def stage(self) -> Stage:
        """State and projection of the run at hand; to read, not to change."""
        return self._stage

    @property
    def provider(self) -> Provider:
        return self._plan.provider

    def listen(self, listener: ev.Listener) -> Callable[[], None]:
        """Call `listener` with every event from now on, in order, in the event loop. Returns what ends that."""
        return self._stage.listen(listener)

    # Runs --------------------------------------------------------------------------------------------------------

    async def run(self, prompt: str, *, context: str | None = None) -> ev.RunFinished | ev.RunInterrupted:
        """Run from a prompt to an outcome. `context` is piped input beside it. The validated value is in `value`.

        The provider's connections are closed at the end. Raises only CancelledError, when the caller's own task is
        cancelled (rule S7).
        """
        self.value = None
        self._in_flight = ()  # a new user request leaves no checkpoint of the old one (rule R10)
        return await self._go(clean(prompt), clean(context) if context else None, resumed=False)

    def restore(self, events: Iterable[ev.Event], in_flight: Iterable[ev.MessageDelta] = ()) -> None:
        """Take a stored run up to where it stood, before anything runs. `in_flight`: the pieces of a reply that the
        program did not live to finish; they become the checkpoint (rules J3, R10).

        Raises ValueError when a stored cost bound cannot be held, InvalidSubmission when the accepted value does not
        fit `output` any more."""
        stage = self._stage
        for event in events:
            stage.fold(event)
            self._people.numbered_by(event)
            self._numbered_by(event)
        self._bounds = stage.state.bounds
        self._check_price(self._bounds)
        self._in_flight = tuple(in_flight)
        submitted, submit = stage.state.submitted, self._kit.submit
        if submitted is not None and submit is not None:
            self.value = submit.output.validate(stage.projection.call(submitted.call_id))

    async def go_on(self, *, answer: str | None = None) -> ev.RunFinished | ev.RunInterrupted:
        """Go on with a run that was interrupted or ended before its task was done: every counter is kept.

        `answer` answers the open question, as `resume --answer` does (rule H4).
        """
        if answer is not None:
            self._people.prepared = Answer("answered", clean(answer))
        return await self._go(self._stage.state.prompt, None, resumed=True)

    async def _go(
        self, prompt: str, context: str | None, *, resumed: bool
    ) -> ev.RunFinished | ev.RunInterrupted:
        if self._run is not None:
            raise RuntimeError("this session is already running; steer it, or queue a follow-up")
        stage = self._stage
        stage.interrupts.clear()
        stage.turn = None
        run = Run(stage, self._plan, self._kit, self._desk, self._people, self._keep)
        run.asker.knows(stage.projection.call_ids)
        self._run = run
        stage.emit(self._started(prompt, context, resumed))
        if self._in_flight:
            pieces, self._in_flight = self._in_flight, ()
            run.take_up_pieces(pieces)
        await stage.commit()
        try:
            return await self._ended(await self._play(run))
        finally:
            await self._close_providers()

    async def _play(self, run: Run) -> End:
        stage = self._stage
        watch = DeadlineWatch(stage)
        try:
            return await run.go()
        except BaseException as error:
            stage.turn = None
            stage.emit(ev.RunInterrupted(**stage.stamp(), signal=type(error).__name__, session=self.id))
            raise
        finally:
            watch.close()
            self._run = None

    async def _close_providers(self) -> None:
        """Leave no socket open, nor a server that was started for the run."""
        replaced, self._replaced = self._replaced, []
        for provider in (*replaced, self._plan.provider):
            await close(provider)

    def _started(self, prompt: str, context: str | None, resumed: bool) -> ev.RunStarted:
        model, bounds, kit = self._plan.provider.model, self._bounds, self._kit
        return ev.RunStarted(
            **self._stage.stamp(),
            session=self.id,
            prompt=prompt,
            context=context,
            model=model.name,
            window=model.window,
            max_output=self._plan.max_output or model.max_output,
            cwd=str(kit.cwd),
            approve=kit.mode,
            instructions=self._instructions,
            tools=tuple(kit.tools) + ((kit.submit.name,) if kit.submit else ()),
            output=dict(kit.submit.spec.parameters) if kit.submit else None,
            max_turns=bounds.max_turns,
            max_attempts=bounds.max_attempts,
            deadline_s=bounds.deadline_s,
            max_total_tokens=bounds.max_total_tokens,
            max_cost=bounds.max_cost,
            recovery=self._plan.policy.model_dump(mode="json"),
            resumed=resumed,
        )

    async def _ended(self, end: End) -> ev.RunFinished | ev.RunInterrupted:
        stage, state = self._stage, self._stage.state
        stage.turn = None
        if end.interrupted:
            interrupted = ev.RunInterrupted(**stage.stamp(), signal=self._signal, session=self.id)
            stage.emit(interrupted)
            await stage.commit()
            return interrupted
        submitted = state.submitted is not None
        outcome: ev.Outcome = "submitted" if submitted else end.outcome
        if outcome not in ("submitted", "completed") and state.queue:
            stage.emit(ev.QueueChanged(**stage.stamp(), returned=state.queue.all))
        finished = ev.RunFinished(
            **stage.stamp(),
            outcome=outcome,
            class_=end.class_,
            error=None if submitted else end.error,
            bound=end.bound,
            until=end.until,
            question=end.question,
            value=state.submitted.value if state.submitted else None,
            text=end.text,
            stopped=stage.interrupts.cause == "stop",
            requests=state.requests,
            turns=state.requests,
            attempts=state.attempts,
            usage=state.usage,
            cost=state.cost if self._plan.provider.model.price else None,
            session=self.id,
        )
        stage.emit(finished)
        await stage.commit()
        return finished

    def _keep(self, value: Any) -> None:
        self.value = value

    # Commands ----------------------------------------------------------------------------------------------------

    def steer(self, text: str) -> str:
        """Queue a message for the next request of the running user request (rule L8). Returns its id."""
        id = self._enqueue(text, Queue.with_steering)
        if self._run is not None:
            self._run.pauser.steered()
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
            self._run.pauser.skip()

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
            self._run.pauser.recovery_off()

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

    # Inside ------------------------------------------------------------------------------------------------------

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


def _named(tools: Iterable[Tool], ask_human: bool) -> dict[str, Tool]:
    named: dict[str, Tool] = {}
    for tool in tools:
        if tool.name in (SubmitTool.name, ASK_HUMAN):
            raise ValueError(
                f"a tool may not be named {tool.name!r}: the program offers one of that name itself"
            )
        if tool.name in named:
            raise ValueError(f"two tools are named {tool.name!r}; give one of them another name")
        named[tool.name] = tool
    if ask_human:
        named[ASK_HUMAN] = AskHuman()
    return named


def _submit(output: Output[Any] | None) -> SubmitTool | None:
    return SubmitTool(output) if output is not None else None


def _more(value: Any, by: Any) -> Any:
    return value + by if value is not None else None
