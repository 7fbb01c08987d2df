"""A session in which an agent of others works: the same commands, the same events (rules L1, L3, L9, H, U, J).

What the agent says becomes events; what it asks for becomes an approval; its requests go through the gateway, where
its bounds hold and a usage limit is seen. It keeps its own history: what it did before is its own business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from handrail import events as ev
from handrail.agents._ask_desk import AskDesk
from handrail.agents._connection import AgentConnection, AgentFailed
from handrail.agents._permissions import Permissions
from handrail.agents._updates import Spent, UpdateFold
from handrail.agents.acp_client import PromptEnded
from handrail.agents.gateway import Gateway
from handrail.agents.gateway_session import GatewaySession, ModelInfoOf
from handrail.agents.limits import AccountLimits
from handrail.agents.registry import AgentEntry
from handrail.agents.routes import Route
from handrail.clock import Clock, RealClock
from handrail.loop.context import DeadlineWatch, Recorder, RunContext, RunEnd, exceeded, interrupted
from handrail.loop.people import HumanAbsent, HumanQuestion, PendingAnswers, People
from handrail.loop.projection import answer_text
from handrail.loop.recover import Backoff
from handrail.mask import Masker
from handrail.messages import Failure, Usage, clean
from handrail.policy import Approve, Bounds, RecoveryPolicy
from handrail.providers.base import ModelInfo, Provider
from handrail.recovery.classify import classify
from handrail.recovery.decide import Facts, decide
from handrail.session.person import PersonCommands
from handrail.tools.ask_human import NAME as ASK_HUMAN
from handrail.tools.ask_human import marked_line

GO_ON: Final = "Go on with the task from where you were interrupted."
LET_END_S: Final = 5.0
"""How long an agent may take to end its turn by itself once a limit or a bound stops its requests."""


@dataclass(slots=True)
class _Policy:
    policy: RecoveryPolicy


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
        self._entry, self._cwd, self._environ, self._folder = entry, cwd, environ, folder
        self._routes, self._limits, self._model_info = routes, limits, model_info
        self._config = _Policy(recovery or RecoveryPolicy())
        self._people = People(ctx, answers)
        self._permissions = Permissions(ctx, self._people, entry.title or entry.name, approve or "ask")
        self._backoff = Backoff(ctx, self._config)
        self._gateway: GatewaySession | None = None
        self._fold: UpdateFold | None = None
        self._told = Spent()
        self._running = False
        self._questions = 0
        self._check_price(self._bounds)

    # -- commands beside those of every session

    @property
    def running(self) -> bool:
        return self._running

    @property
    def entry(self) -> AgentEntry:
        """The agent."""
        return self._entry

    def set_bounds(self, bounds: Bounds) -> None:
        super().set_bounds(bounds)
        if self._gateway is not None:
            self._gateway.raise_bounds(bounds)

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
        raise ValueError(f"{self._name} chooses its model by itself")

    def compact(self) -> None:
        """An agent makes room by itself."""
        self.notice(f"{self._name} makes room by itself when its window is full")

    def _check_price(self, bounds: Bounds) -> None:
        if bounds.max_cost is not None and not self._entry.behind_gateway(self._environ):
            raise ValueError(
                f"max_cost: the requests of {self._name} cannot be counted, so it cannot be enforced"
            )

    @property
    def _name(self) -> str:
        return self._entry.title or self._entry.name

    # -- runs

    async def run(self, prompt: str, *, context: str | None = None) -> ev.RunEnded:
        """Run from a prompt to an outcome. `context` is piped input for it. Raises ConfigError when the agent cannot
        be started, and CancelledError."""
        return await self._start(clean(prompt), clean(context) if context else None, resumed=False)

    async def resume(self, *, answer: str | None = None) -> ev.RunEnded:
        """Take up the agent's session and go on, with `answer` as the next words where there is one."""
        return await self._start(self._ctx.state.prompt, clean(answer) if answer else None, resumed=True)

    def load(self, events: Iterable[ev.Event]) -> None:
        """Restore a stored run, before anything runs. What it had asked is asked again by the agent itself."""
        for event in events:
            self._ctx.fold(event)
            self._people.continue_numbering(event)
            self._continue_numbering(event)
        self._bounds = self._ctx.state.bounds

    async def _start(self, prompt: str, context: str | None, *, resumed: bool) -> ev.RunEnded:
        if self._running:
            raise RuntimeError("this session is already running; steer it, or queue a follow-up")
        ctx = self._ctx
        ctx.interrupts.clear()
        ctx.turn, self._running, self._told = None, True, Spent()
        wait = ctx.state.wait if resumed else None
        words = "\n\n".join(filter(None, (prompt, context)))
        first = (context or GO_ON) if resumed else words
        ctx.emit(self._run_started(prompt, context, resumed))
        self._close_stale()
        await ctx.commit()
        watch = DeadlineWatch(ctx)
        try:
            going = wait is None or await self._backoff.resume(wait)
            end = await self._work(first, words) if going else interrupted(ctx) or RunEnd("cancelled")
        except BaseException as error:
            ctx.turn = None
            ctx.emit(ev.RunInterrupted(**ctx.stamp(), signal=type(error).__name__, session=self.id))
            raise
        finally:
            watch.close()
            self._running = False
        return await self._finish(end)

    async def _work(self, first: str, whole: str) -> RunEnd:
        """The agent's whole life in this run."""
        ctx = self._ctx
        async with AsyncExitStack() as stack:
            environ, arguments = await self._lead(stack)
            desk = await stack.enter_async_context(AskDesk(self._ask))
            agent: AgentConnection | None = None
            end: RunEnd | None = None
            try:
                with ctx.interrupts.scope():
                    agent = await AgentConnection.start(
                        self._entry,
                        arguments,
                        cwd=self._cwd,
                        environ=environ,
                        mark=self.id,
                        folder=self._folder,
                        clock=ctx.clock,
                        update=self._update,
                        permission=self._permissions.asked,
                    )
                    old = await agent.open(self._cwd, [desk.server], environ)
                    if first == GO_ON and not old:
                        self.notice(
                            f"{self._name} cannot take up its session: it is asked anew", level="warning"
                        )
                        first = (
                            f"{whole}\n\n(This was begun before and interrupted. Look first at what is done.)"
                        )
                if agent is not None and interrupted(ctx) is None:
                    self._permissions.client = agent.client
                    end = await self._converse(agent, first)
            except AgentFailed as failed:
                end = RunEnd("provider", "unknown", f"{self._name}: {failed}")
            finally:
                await self._permissions.close()
                if agent is not None and (left := await agent.close()):
                    self.notice(f"may still be running: {', '.join(left)}", level="warning")
            return interrupted(ctx) or end or RunEnd("cancelled")

    async def _lead(self, stack: AsyncExitStack) -> tuple[dict[str, str], tuple[str, ...]]:
        """The environment and the arguments that lead the agent's requests through the gateway, where it can be."""
        environ = self._entry.environ(self._environ)
        provider = self._entry.provider
        if provider is None or not self._entry.behind_gateway(self._environ):
            self.notice(
                f"the requests of {self._name} are not seen: bounds hold after the fact, by what it tells itself",
                level="warning",
            )
            self._gateway = None
            return environ, ()
        gateway = await stack.enter_async_context(Gateway())
        self._gateway = GatewaySession(
            self.id,
            clock=self._ctx.clock,
            routes=self._routes,
            bounds=self._bounds,
            policy=self._config.policy,
            emit=self._at_gateway,
            limits=self._limits,
            model_info=self._model_info,
        )
        gateway.add(self._gateway)
        url = gateway.base_url(self._gateway, provider)
        arguments = tuple(part.replace("{url}", url) for part in self._entry.gateway_arguments)
        return gateway.environ(self._gateway, environ), arguments

    async def _converse(self, agent: AgentConnection, text: str) -> RunEnd:
        """Prompt after prompt, until nothing more is to be said."""
        ctx = self._ctx
        self._fold = UpdateFold(ctx, self._entry.name, self._spent, str(self._cwd))
        self._permissions.fold = self._fold
        while True:
            end, failure = await self._prompt(agent, text)
            if (stopped := interrupted(ctx)) is not None:
                return stopped
            if (bound := self._bound()) is not None:
                return bound
            limited = await self._limited(failure or self._limit_seen())
            if limited is not None:
                text = GO_ON
                if isinstance(limited, RunEnd):
                    return limited
                continue
            if failure is not None:
                return self._failed(failure)
            follow = await self._next(end.stop if end else "")
            if isinstance(follow, RunEnd):
                return follow
            text = follow

    async def _prompt(self, agent: AgentConnection, text: str) -> tuple[PromptEnded | None, Failure | None]:
        """One prompt, to its end: by the agent, by a person, by a bound or a limit."""
        ctx, fold = self._ctx, self._fold
        assert fold is not None
        prompting = asyncio.create_task(agent.prompt(text))
        ended: PromptEnded | None = None
        failure: Failure | None = None
        try:
            with ctx.interrupts.scope("cut", "retry"):
                ended = await asyncio.shield(prompting)
            if ended is None:
                await self._permissions.cancel()
                if not await agent.cancel(prompting):
                    self.notice(f"{self._name} does not stop: it is ended", level="warning")
                    await agent.close()
                ended = await prompting
        except AgentFailed as failed:
            failure = Failure(str(failed), self._entry.provider, "connect" if failed.gone else "response")
        finally:
            prompting.cancel()
            await asyncio.gather(prompting, return_exceptions=True)
        await self._permissions.cancel()
        if self._gateway is not None:
            await self._gateway.settled()
        elif ended is not None:
            self._told.usage += _usage(ended.usage)
        stopped = interrupted(ctx) is not None
        fold.end("cancelled" if stopped else ended.stop if ended else "", None if stopped else failure)
        await ctx.commit()
        return ended, failure

    # -- what follows a prompt

    def _bound(self) -> RunEnd | None:
        """The bound that stopped the agent's requests, if one did (rules L1, L3)."""
        if self._gateway is not None:
            refusal = self._gateway.refusal
            if refusal is None or refusal.limit is not None:
                return None
            outcome: ev.Outcome = "turn-limit" if refusal.code == "max_turns" else "budget"
            return RunEnd(outcome, bound=refusal.code, error=refusal.words)
        hit = exceeded(self._ctx) if self._over() else None
        return RunEnd(hit.outcome, bound=hit.bound, error=hit.why) if hit else None

    def _over(self) -> bool:
        return self._ctx.state.requests > self._bounds.max_turns

    def _limit_seen(self) -> Failure | None:
        """The usage limit that the gateway saw, in the provider's own words."""
        if self._gateway is None or self._gateway.limit is None:
            return None
        last = self._gateway.last_failure
        return (
            last[1] if last and last[0] == "usage_limit" else Failure(self._gateway.limit.words, status=429)
        )

    async def _limited(self, failure: Failure | None) -> Literal[True] | RunEnd | None:
        """Wait out a usage limit (rules U1 to U5). True: go on; None: it is none."""
        ctx = self._ctx
        seen = self._limit_seen() or failure
        if seen is None:
            return None
        now = ctx.clock.now()
        verdict = classify(seen, now=now)
        if verdict.class_ != "usage_limit":
            return None
        facts = Facts("error", blank=True, verdict=verdict, failure=seen)
        decision = decide(facts, ctx.state.ledger, self._config.policy, now)
        assert decision is not None
        ctx.emit(
            ev.Decided(
                **ctx.stamp(),
                decision=decision.kind,
                reason=decision.reason,
                class_=decision.class_,
                delay_s=decision.delay_s or None,
                until=decision.until,
                why=decision.why,
                number=decision.number,
                limit=decision.limit,
                failure=seen,
                before=ctx.state.ledger,
                after=decision.after,
            )
        )
        await ctx.commit()
        until = decision.guidance.at if decision.guidance else None
        if decision.kind != "wait" or not await self._backoff.pause(decision, facts):
            return interrupted(ctx) or RunEnd("usage-limit", "usage_limit", seen.text[:2000], until=until)
        if self._gateway is not None:
            self._gateway.lift()
        return True

    def _failed(self, failure: Failure) -> RunEnd:
        """The agent's turn ended in an error: the provider's own words where the gateway saw them."""
        seen = self._gateway.last_failure if self._gateway is not None else None
        words = failure.text if seen is None else f"{failure.text}\n{seen[1].text}"
        class_ = seen[0] if seen is not None else classify(failure, now=self._ctx.clock.now()).class_
        return RunEnd("provider", class_, f"{self._name}: {words}"[:2000])

    async def _next(self, stop: str) -> str | RunEnd:
        """What is said next: an answer to the marked line, words of a person; else the run is over (rules L8, H1)."""
        ctx, fold = self._ctx, self._fold
        last = fold.last.text if fold is not None and fold.last is not None else ""
        said = self._permissions.take_words()
        if said:
            return said
        if (message := next(iter(ctx.state.queue.all), None)) is not None:
            kind: Literal["steer", "follow_up"] = (
                "steer" if message in ctx.state.queue.steering else "follow_up"
            )
            ctx.emit(ev.Steered(**ctx.stamp(), id=message.id, text=message.text, kind=kind))
            await ctx.commit()
            return message.text
        line = marked_line(last)
        if line is not None:
            try:
                with ctx.interrupts.scope():
                    answer = await self._people.question(
                        ev.HumanRequested(id="", kind=line.kind, needed=line.needed)
                    )
                    return answer_text(answer.how, answer.text)
            except HumanAbsent as absent:
                return RunEnd("human-required", question=absent.question, error=absent.question.needed)
            return interrupted(ctx) or RunEnd("cancelled")
        if stop in ("max_tokens", "max_turn_requests"):
            return RunEnd("provider", "output_truncated", f"{self._name} was cut: {stop}")
        if stop == "refusal":
            return RunEnd("provider", "content_filter", f"{self._name}: the model refused")
        if stop == "cancelled":
            return RunEnd("cancelled", error=f"{self._name} ended its turn by itself")
        return RunEnd("completed", text=last)

    # -- what the agent says

    def _update(self, update: Mapping[str, Any]) -> None:
        if update.get("sessionUpdate") == "usage_update":
            used, size, cost = update.get("used"), update.get("size"), update.get("cost")
            if isinstance(used, int) and isinstance(size, int) and size > 0:
                self._told.context = used / size
            if isinstance(cost, dict) and isinstance(cost.get("amount"), int | float):
                self._told.cost = float(cost["amount"])
            return
        if self._fold is not None:
            self._fold.take(update)
        if self._gateway is None and self._over():
            self._ctx.interrupts.send("cut")

    def _spent(self) -> Spent:
        gateway = self._gateway
        if gateway is None:
            return self._told
        return Spent(gateway.usage, gateway.cost, self._told.context)

    def _at_gateway(self, event: ev.Event) -> None:
        """A limit or a bound stops the agent's requests: it may end its turn by itself, and soon must."""
        if isinstance(event, ev.WaitStarted) or (isinstance(event, ev.Notice) and event.level == "warning"):
            if isinstance(event, ev.Notice):
                self._ctx.emit(event)
            self._ctx.clock.call_later(LET_END_S, lambda: self._ctx.interrupts.send("cut"))

    async def _ask(self, kind: ev.HumanKind, needed: str, where: str, tried: str) -> str:
        """A question of the agent's tool `ask_human` (rules H1 to H3)."""
        self._questions += 1
        question = ev.HumanRequested(
            id="",
            kind=kind,
            needed=needed,
            where=where,
            tried=tried,
            call_id=f"{ASK_HUMAN}-{self._questions}",
            tool=ASK_HUMAN,
        )
        try:
            answer = await self._people.question(question)
        except HumanAbsent as absent:
            self._absent = absent.question
            raise LookupError("Nobody is there to answer. Say what is needed, and stop.") from None
        return answer_text(answer.how, answer.text, answer.secret)

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
            model=self._entry.name,
            cwd=str(self._cwd),
            approve=self._permissions.mode,
            recovery=self._config.policy.model_dump(mode="json"),
            resumed=resumed,
            **self._bounds.model_dump(),
        )

    async def _finish(self, end: RunEnd) -> ev.RunEnded:
        ctx = self._ctx
        ctx.turn = None
        last: ev.RunEnded
        if end.interrupted:
            last = ev.RunInterrupted(**ctx.stamp(), signal=self._signal, session=self.id)
        else:
            if end.outcome != "completed" and ctx.state.queue:
                ctx.emit(ev.QueueChanged(**ctx.stamp(), returned=ctx.state.queue.all))
            gateway, sums = self._gateway, self._spent()
            last = ev.RunFinished(
                **ctx.stamp(),
                outcome=end.outcome,
                class_=end.class_,
                error=end.error,
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


def _usage(told: Mapping[str, Any]) -> Usage:
    """Tokens as an agent tells them at the end of a prompt."""

    def count(name: str) -> int:
        value = told.get(name)
        return value if isinstance(value, int) and value > 0 else 0

    return Usage(
        count("inputTokens"), count("outputTokens"), count("cachedReadTokens"), count("cachedWriteTokens")
    )
