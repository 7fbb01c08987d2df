"""A session: one way in (commands), one way out (events). It ties the loop to a record, people and a clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from handrail import events as ev
from handrail.clock import Clock, RealClock
from handrail.instructions import joined
from handrail.loop.batch import ToolSet
from handrail.loop.context import DeadlineWatch, End, Record, RunConfig, RunContext
from handrail.loop.people import Answer, Asked, PendingAnswers, People
from handrail.loop.run import Run
from handrail.mask import Masker
from handrail.messages import clean
from handrail.output.types import Output
from handrail.policy import Bounds, Effort, RecoveryPolicy
from handrail.providers.base import Provider, ToolChoice, close
from handrail.session.commands import Commands
from handrail.tools.approval import Mode
from handrail.tools.ask_human import NAME as ASK_HUMAN
from handrail.tools.ask_human import AskHuman
from handrail.tools.base import Tool
from handrail.tools.submit import SubmitTool


class Session(Commands):
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
        self._instructions = tuple(instructions)
        policy = recovery or RecoveryPolicy()
        plan = RunConfig(provider, policy, joined(self._instructions), max_output, effort, tool_choice)
        kit = ToolSet(_named(tools, ask_human), cwd or Path.cwd(), _submit(output), approve or "ask", env)
        stage = RunContext(clock or RealClock(), record, Masker(secrets))
        desk = PendingAnswers(attended if callable(attended) else lambda asked: bool(attended))
        super().__init__(stage, plan, kit, desk, bounds or Bounds())
        self._check_price(self._bounds)
        self._people = People(stage, desk)
        self._in_flight: tuple[ev.MessageDelta, ...] = ()

    async def run(self, prompt: str, *, context: str | None = None) -> ev.RunFinished | ev.RunInterrupted:
        """Run from a prompt to an outcome. `context` is piped input beside it. The validated value is in `value`.

        The provider's connections are closed at the end. Raises only CancelledError, when the caller's own task is
        cancelled (rule S7).
        """
        self.value = None
        self._in_flight = ()  # a new user request leaves no checkpoint of the old one (rule R10)
        return await self._go(clean(prompt), clean(context) if context else None, resumed=False)

    def load(self, events: Iterable[ev.Event], in_flight: Iterable[ev.MessageDelta] = ()) -> None:
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

    async def resume(self, *, answer: str | None = None) -> ev.RunFinished | ev.RunInterrupted:
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
            session=self.id if stage.record is not None else None,
        )
        stage.emit(finished)
        await stage.commit()
        return finished

    def _keep(self, value: Any) -> None:
        self.value = value


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
