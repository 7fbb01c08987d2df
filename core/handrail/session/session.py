"""A session: commands go in, events come out. It connects the loop to a record, a person and a clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

from handrail import events as ev
from handrail.clock import Clock, RealClock
from handrail.instructions import joined
from handrail.loop.calls import ToolSet
from handrail.loop.context import DeadlineWatch, Recorder, RunConfig, RunContext, RunEnd
from handrail.loop.people import HumanAnswer, HumanQuestion, PendingAnswers, People
from handrail.loop.run import Run
from handrail.mask import Masker
from handrail.messages import clean
from handrail.output.types import Output
from handrail.policy import Bounds, Effort, RecoveryPolicy
from handrail.providers.base import Provider, ToolChoice, close
from handrail.session._commands import Commands
from handrail.tools.approval import Mode
from handrail.tools.ask_human import NAME as ASK_HUMAN
from handrail.tools.ask_human import AskHuman
from handrail.tools.base import Tool
from handrail.tools.kept import memory_with
from handrail.tools.source import ToolSource
from handrail.tools.submit import SubmitTool


class Session(Commands):
    """Runs of one conversation with a model.

    `tools` are what the model may call besides `submit` (offered when `output` is given) and `ask_human` (offered
    unless `ask_human=False`). `approve` says which calls need approval (rule H5; None is `ask`), `attended` whether
    somebody is there to answer: a flag, or a function of the question. `record` stores events (rule J1); None stores
    nothing. Values of `secrets` are masked in every event (rule J5). At most `calls_at_once` calls of a reply run at
    the same time (rule L6). Long output of commands is kept in `output_folder`; None: until the session is gone.
    `source` has tools that come and go: MCP servers. They run as long as a run, or as the session is held with
    `async with`.

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
        record: Recorder | None = None,
        attended: bool | Callable[[HumanQuestion], bool] = False,
        ask_human: bool = True,
        calls_at_once: int | None = None,
        output_folder: Path | None = None,
        env: Mapping[str, str] | None = None,
        max_output: int | None = None,
        effort: Effort | None = None,
        tool_choice: ToolChoice = "auto",
        id: str | None = None,
        secrets: Iterable[str] = (),
        source: ToolSource | None = None,
    ) -> None:
        self.id = id or uuid4().hex[:12]
        self.value: Any = None
        self._instructions = tuple(instructions)
        policy = recovery or RecoveryPolicy()
        config = RunConfig(provider, policy, joined(self._instructions), max_output, effort, tool_choice)
        toolset = ToolSet(
            _tools_by_name(tools, ask_human),
            cwd or Path.cwd(),
            _submit(output),
            approve or "ask",
            env,
            source=source,
        )
        toolset.at_once = calls_at_once or toolset.at_once
        toolset.memory.update(memory_with(output_folder))
        ctx = RunContext(clock or RealClock(), record, Masker(secrets))
        answers = PendingAnswers(attended if callable(attended) else lambda question: bool(attended))
        super().__init__(ctx, config, toolset, answers, bounds or Bounds())
        self._check_price(self._bounds)
        self._people = People(ctx, answers)
        self._in_flight: tuple[ev.MessageDelta, ...] = ()
        self._held = False

    async def __aenter__(self) -> Self:
        self.start_servers()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.end_servers()

    def start_servers(self) -> None:
        """Start the MCP servers in the background; they live until `end_servers`, from one prompt to the next."""
        self._held = True
        if self._toolset.source is not None:
            self._toolset.source.start()

    async def end_servers(self) -> None:
        """End the MCP servers, with everything that they started."""
        self._held = False
        if self._toolset.source is not None:
            await self._toolset.source.close()

    async def run(self, prompt: str, *, context: str | None = None) -> ev.RunEnded:
        """Run from a prompt to an outcome. `context` is piped input for it. The validated value is then in `value`.

        The provider's connections are closed at the end. Raises only CancelledError, when the caller's own task is
        cancelled (rule S7).
        """
        self.value = None
        self._in_flight = ()  # a new user request leaves no checkpoint of the old one (rule R10)
        return await self._start(clean(prompt), clean(context) if context else None, resumed=False)

    def load(self, events: Iterable[ev.Event], in_flight: Iterable[ev.MessageDelta] = ()) -> None:
        """Restore a stored run, before anything runs. `in_flight`: the pieces of a reply that was still streaming when
        the program exited; they become the checkpoint (rules J3, R10).

        Raises ValueError when a stored cost bound cannot be enforced, InvalidSubmission when the accepted value no
        longer fits `output`."""
        ctx = self._ctx
        for event in events:
            ctx.fold(event)
            self._people.continue_numbering(event)
            self._continue_numbering(event)
        self._bounds = ctx.state.bounds
        self._check_price(self._bounds)
        self._in_flight = tuple(in_flight)
        submitted, submit = ctx.state.submitted, self._toolset.submit
        if submitted is not None and submit is not None:
            self.value = submit.output.validate(ctx.projection.call(submitted.call_id))

    async def resume(self, *, answer: str | None = None) -> ev.RunEnded:
        """Continue a run that was interrupted or ended before its task was done. Every counter is kept.

        `answer` answers the open question, as `resume --answer` does (rule H4).
        """
        if answer is not None:
            self._people.prepared = HumanAnswer("answered", clean(answer))
        return await self._start(self._ctx.state.prompt, None, resumed=True)

    async def _start(self, prompt: str, context: str | None, *, resumed: bool) -> ev.RunEnded:
        if self._run is not None:
            raise RuntimeError("this session is already running; steer it, or queue a follow-up")
        ctx = self._ctx
        ctx.interrupts.clear()
        ctx.turn = None
        source = self._toolset.source
        if source is not None:
            source.start()
        run = Run(ctx, self._config, self._toolset, self._answers, self._people, self._accept)
        self._run = run
        ctx.emit(self._run_started(prompt, context, resumed))
        if self._in_flight:
            pieces, self._in_flight = self._in_flight, ()
            run.finish_partial_reply(pieces)
        await ctx.commit()
        try:
            return await self._finish(await self._run_until_end(run))
        finally:
            await self._close_providers()
            if source is not None and not self._held:
                await source.close()

    async def _run_until_end(self, run: Run) -> RunEnd:
        ctx = self._ctx
        watch = DeadlineWatch(ctx)
        try:
            return await run.run()
        except BaseException as error:
            ctx.turn = None
            ctx.emit(ev.RunInterrupted(**ctx.stamp(), signal=type(error).__name__, session=self.id))
            raise
        finally:
            watch.close()
            self._run = None

    async def _close_providers(self) -> None:
        """Close every connection, and a server that was started for the run."""
        replaced, self._replaced = self._replaced, []
        for provider in (*replaced, self._config.provider):
            await close(provider)

    def _run_started(self, prompt: str, context: str | None, resumed: bool) -> ev.RunStarted:
        model, bounds, toolset = self._config.provider.model, self._bounds, self._toolset
        return ev.RunStarted(
            **self._ctx.stamp(),
            session=self.id,
            prompt=prompt,
            context=context,
            model=model.name,
            window=model.window,
            max_output=self._config.max_output or model.max_output,
            cwd=str(toolset.cwd),
            approve=toolset.mode,
            sandbox="; ".join(dict.fromkeys(tool.held for tool in toolset.tools.values() if tool.held)),
            instructions=self._instructions,
            tools=tuple(toolset.tools) + ((toolset.submit.name,) if toolset.submit else ()),
            output=dict(toolset.submit.spec.parameters) if toolset.submit else None,
            max_turns=bounds.max_turns,
            max_attempts=bounds.max_attempts,
            deadline_s=bounds.deadline_s,
            max_total_tokens=bounds.max_total_tokens,
            max_cost=bounds.max_cost,
            recovery=self._config.policy.model_dump(mode="json"),
            resumed=resumed,
        )

    async def _finish(self, end: RunEnd) -> ev.RunEnded:
        ctx, state = self._ctx, self._ctx.state
        ctx.turn = None
        if end.interrupted:
            interrupted = ev.RunInterrupted(**ctx.stamp(), signal=self._signal, session=self.id)
            ctx.emit(interrupted)
            await ctx.commit()
            return interrupted
        submitted = state.submitted is not None
        outcome: ev.Outcome = "submitted" if submitted else end.outcome
        if outcome not in ("submitted", "completed") and state.queue:
            ctx.emit(ev.QueueChanged(**ctx.stamp(), returned=state.queue.all))
        finished = ev.RunFinished(
            **ctx.stamp(),
            outcome=outcome,
            class_=end.class_,
            error=None if submitted else end.error,
            advice="" if submitted else end.advice,
            bound=end.bound,
            until=end.until,
            question=end.question,
            value=state.submitted.value if state.submitted else None,
            text=end.text,
            stopped=ctx.interrupts.cause == "stop",
            requests=state.requests,
            turns=state.requests,
            attempts=state.attempts,
            usage=state.usage,
            cost=state.cost if self._config.provider.model.price else None,
            session=self.id if ctx.record is not None else None,
        )
        ctx.emit(finished)
        await ctx.commit()
        return finished

    def _accept(self, value: Any) -> None:
        self.value = value


def _tools_by_name(tools: Iterable[Tool], ask_human: bool) -> dict[str, Tool]:
    named: dict[str, Tool] = {}
    for tool in tools:
        if tool.name in (SubmitTool.name, ASK_HUMAN):
            raise ValueError(
                f"a tool may not be named {tool.name!r}: Handrail provides a tool with that name"
            )
        if tool.name in named:
            raise ValueError(f"two tools are named {tool.name!r}; rename one of them")
        named[tool.name] = tool
    if ask_human:
        named[ASK_HUMAN] = AskHuman()
    return named


def _submit(output: Output[Any] | None) -> SubmitTool | None:
    return SubmitTool(output) if output is not None else None
