"""A session in which an agent of others works: the same commands, the same events (rules L1, L3, L9, H, U, J).

What the agent says becomes events; what it asks for becomes an approval; its requests go through the gateway, where
its bounds hold and a usage limit is seen. It keeps its own history: what it did before is its own business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from handrail import events as ev
from handrail.agents._permissions import Permissions
from handrail.agents._run import GO_ON, AgentConfig, AgentRun, AgentSetup
from handrail.agents.gateway_session import ModelInfoOf
from handrail.agents.limits import AccountLimits
from handrail.agents.registry import AgentEntry
from handrail.agents.routes import Route
from handrail.clock import Clock, RealClock
from handrail.loop.context import DeadlineWatch, Recorder, RunContext, RunEnd, interrupted
from handrail.loop.people import HumanQuestion, PendingAnswers, People
from handrail.loop.recover import Backoff
from handrail.mask import Masker
from handrail.messages import clean
from handrail.policy import Approve, Bounds, RecoveryPolicy
from handrail.providers.base import ModelInfo, Provider
from handrail.session.person import PersonCommands


class AgentSession(PersonCommands):
    """Runs of one conversation with the agent `entry` in `cwd`.

    `folder` is the session's own: the agent's stderr and the id of its session are kept there. `routes` are where the
    gateway leads its requests. A bound on cost needs the gateway (rule L3): without it ValueError is raised.
    """

    def __init__(
        self,
        entry: AgentEntry,
        *,
        cwd: Path,
        environ: Mapping[str, str],
        routes: Mapping[str, Route],
        id: str,
        folder: Path | None = None,
        bounds: Bounds | None = None,
        recovery: RecoveryPolicy | None = None,
        approve: Approve | None = None,
        clock: Clock | None = None,
        record: Recorder | None = None,
        attended: bool | Callable[[HumanQuestion], bool] = False,
        secrets: Iterable[str] = (),
        limits: AccountLimits | None = None,
        model_info: ModelInfoOf = ModelInfo,
    ) -> None:
        ctx = RunContext(clock or RealClock(), record, Masker(secrets))
        answers = PendingAnswers(attended if callable(attended) else lambda question: bool(attended))
        super().__init__(ctx, answers, bounds or Bounds())
        self.id = id
        self._setup = AgentSetup(id, entry, cwd, environ, folder, routes, limits, model_info)
        self._config = AgentConfig(recovery or RecoveryPolicy(), self._bounds)
        self._people = People(ctx, answers)
        self._permissions = Permissions(ctx, self._people, self._setup.name, approve or "ask")
        self._backoff = Backoff(ctx, self._config)
        self._run: AgentRun | None = None
        self._check_price(self._bounds)

    # -- commands beside those of every session

    @property
    def running(self) -> bool:
        return self._run is not None

    @property
    def provider(self) -> None:
        """An agent asks its model by itself."""
        return None

    @property
    def requests(self) -> int:
        """Requests of the run at hand that the gateway let through; the agent's turns where it sees none."""
        gateway = self._run.gateway if self._run is not None else None
        return gateway.requests if gateway is not None else self._ctx.state.requests

    @property
    def entry(self) -> AgentEntry:
        """The agent."""
        return self._setup.entry

    def set_bounds(self, bounds: Bounds) -> None:
        """Replace the bounds, the gateway's too. Raises ValueError for a bound on cost that nobody can count."""
        super().set_bounds(bounds)
        self._config.bounds = bounds
        if self._run is not None and self._run.gateway is not None:
            self._run.gateway.raise_bounds(bounds)

    def set_recovery(self, on: bool) -> None:
        """Switch waiting for limits on or off (rule R12)."""
        self._config.policy = self._config.policy.model_copy(update={"enabled": on})
        self._ctx.emit(ev.SettingsChanged(**self._ctx.stamp(), recovery=on))
        if not on:
            self._ctx.interrupts.send("recovery_off")

    def set_approve(self, mode: Approve) -> None:
        """Change what the agent may do without asking (rule H5)."""
        self._permissions.mode = mode
        self._ctx.emit(ev.SettingsChanged(**self._ctx.stamp(), approve=mode))

    def set_provider(self, provider: Provider) -> None:
        """An agent chooses its model by itself: raises ValueError."""
        raise ValueError(f"{self._setup.name} chooses its model by itself")

    def compact(self) -> None:
        """An agent makes room by itself."""
        self.notice(f"{self._setup.name} makes room by itself when its window is full")

    def _check_price(self, bounds: Bounds) -> None:
        if bounds.max_cost is not None and not self._setup.counted:
            raise ValueError(
                f"max_cost: the requests of {self._setup.name} cannot be counted, so it cannot be enforced"
            )

    # -- runs

    async def run(self, prompt: str, *, context: str | None = None) -> ev.RunEnded:
        """Run from a prompt to an outcome. `context` is piped input for it. Raises ConfigError when the agent cannot
        be started, and CancelledError."""
        return await self._start(clean(prompt), clean(context) if context else None, resumed=False)

    async def resume(self, *, answer: str | None = None) -> ev.RunEnded:
        """Take up the agent's session and go on, with `answer` as the next words where there is one."""
        return await self._start(self._ctx.state.prompt, clean(answer) if answer else None, resumed=True)

    def load(self, events: Iterable[ev.Event], in_flight: Iterable[ev.MessageDelta] = ()) -> None:
        """Restore a stored run, before anything runs. What it had asked, and was saying (`in_flight`), the agent
        knows by itself."""
        for event in events:
            self._ctx.fold(event)
            self._people.continue_numbering(event)
            self._continue_numbering(event)
        self._bounds = self._config.bounds = self._ctx.state.bounds

    async def _start(self, prompt: str, context: str | None, *, resumed: bool) -> ev.RunEnded:
        if self._run is not None:
            raise RuntimeError("this session is already running; steer it, or queue a follow-up")
        ctx = self._ctx
        ctx.interrupts.clear()
        ctx.turn = None
        wait = ctx.state.wait if resumed else None
        whole = "\n\n".join(filter(None, (prompt, context)))
        first = (context or GO_ON) if resumed else whole
        ctx.emit(self._run_started(prompt, context, resumed))
        run = AgentRun(self._setup, ctx, self._config, self._people, self._permissions, self._backoff)
        self._run = run
        self._close_stale()
        await ctx.commit()
        watch = DeadlineWatch(ctx)
        try:
            going = wait is None or await self._backoff.resume(wait)
            end = await run.play(first, whole) if going else interrupted(ctx) or RunEnd("cancelled")
        except BaseException as error:
            ctx.turn = None
            ctx.emit(ev.RunInterrupted(**ctx.stamp(), signal=type(error).__name__, session=self.id))
            raise
        finally:
            watch.close()
            self._run = None
        return await self._finish(end, run)

    # -- the first and the last event

    def _close_stale(self) -> None:
        """What a program that was killed had asked is not open any more."""
        ctx = self._ctx
        for id in tuple(ctx.state.approvals):
            ctx.emit(ev.ApprovalAnswered(**ctx.stamp(), id=id, how="stopped"))
        for id in tuple(ctx.state.questions):
            ctx.emit(ev.HumanAnswered(**ctx.stamp(), id=id, how="stopped"))

    def _run_started(self, prompt: str, context: str | None, resumed: bool) -> ev.RunStarted:
        return ev.RunStarted(
            **self._ctx.stamp(),
            session=self.id,
            prompt=prompt,
            context=context,
            model=self._setup.entry.name,
            cwd=str(self._setup.cwd),
            approve=self._permissions.mode,
            recovery=self._config.policy.model_dump(mode="json"),
            resumed=resumed,
            **self._bounds.model_dump(),
        )

    async def _finish(self, end: RunEnd, run: AgentRun) -> ev.RunEnded:
        ctx = self._ctx
        ctx.turn = None
        last: ev.RunEnded
        if end.interrupted:
            last = ev.RunInterrupted(**ctx.stamp(), signal=self._signal, session=self.id)
        else:
            if end.outcome != "completed" and ctx.state.queue:
                ctx.emit(ev.QueueChanged(**ctx.stamp(), returned=ctx.state.queue.all))
            gateway, sums = run.gateway, run.spent()
            last = ev.RunFinished(
                **ctx.stamp(),
                outcome=end.outcome,
                class_=end.class_,
                error=end.error,
                advice=end.advice,
                bound=end.bound,
                until=end.until,
                question=end.question,
                text=end.text,
                stopped=ctx.interrupts.cause == "stop",
                requests=gateway.requests if gateway is not None else ctx.state.requests,
                turns=ctx.state.requests,
                usage=sums.usage,
                cost=sums.cost,
                session=self.id if ctx.record is not None else None,
            )
        ctx.emit(last)
        await ctx.commit()
        return last
