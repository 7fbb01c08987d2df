"""One run of a foreign agent: started, led through the gateway, prompted until nothing more is to be said, ended."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from handrail import events as ev
from handrail.agents._ask_desk import AskDesk
from handrail.agents._connection import AgentConnection, AgentFailed
from handrail.agents._folder import FolderWatch
from handrail.agents._permissions import Permissions
from handrail.agents._stalled import StallWatch
from handrail.agents._updates import Spent, UpdateFold
from handrail.agents.acp_client import PromptEnded
from handrail.agents.gateway import Gateway
from handrail.agents.gateway_session import GatewaySession, ModelInfoOf
from handrail.agents.limits import AccountLimits
from handrail.agents.registry import AgentEntry
from handrail.agents.routes import Route
from handrail.loop.context import RunContext, RunEnd, exceeded, interrupted
from handrail.loop.people import HumanAbsent, People
from handrail.loop.projection import answer_text
from handrail.loop.recover import Backoff
from handrail.messages import Failure, Usage
from handrail.policy import Bounds, RecoveryPolicy
from handrail.recovery.classify import classify
from handrail.recovery.decide import Facts, decide
from handrail.tools.ask_human import NAME as ASK_HUMAN
from handrail.tools.marked_line import marked_line

GO_ON: Final = "Go on with the task from where you were interrupted."
LET_END_S: Final = 5.0
"""How long an agent may take to end its turn by itself once a limit or a bound stops its requests."""


@dataclass(frozen=True, slots=True)
class AgentSetup:
    """What a session of an agent is made of. `folder` is the session's own, `routes` lead its requests."""

    id: str
    entry: AgentEntry
    cwd: Path
    environ: Mapping[str, str]
    folder: Path | None
    routes: Mapping[str, Route]
    limits: AccountLimits | None
    model_info: ModelInfoOf

    @property
    def name(self) -> str:
        """The agent, for people."""
        return self.entry.title or self.entry.name

    @property
    def counted(self) -> bool:
        """Whether its requests go through the gateway."""
        return self.entry.behind_gateway(self.environ)


@dataclass(slots=True)
class AgentConfig:
    """What a person may change in mid-run."""

    policy: RecoveryPolicy
    bounds: Bounds


class AgentRun:
    """From the first prompt to an end. `play` once."""

    def __init__(
        self,
        setup: AgentSetup,
        ctx: RunContext,
        config: AgentConfig,
        people: People,
        permissions: Permissions,
        backoff: Backoff,
    ) -> None:
        self._setup, self._ctx, self._config = setup, ctx, config
        self._people, self._permissions, self._backoff = people, permissions, backoff
        self._told = Spent()
        self._questions = 0
        self._folder = FolderWatch(ctx, setup.cwd, setup.folder, setup.name)
        self.gateway: GatewaySession | None = None
        self.fold = UpdateFold(ctx, setup.entry.name, self.spent, str(setup.cwd))
        self.fold.turns = ctx.state.requests
        permissions.fold = self.fold
        self._stall = StallWatch(ctx, people, setup.name, self.fold)

    async def play(self, first: str, whole: str) -> RunEnd:
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
                        self._setup.entry,
                        arguments,
                        cwd=self._setup.cwd,
                        environ=environ,
                        mark=self._setup.id,
                        folder=self._setup.folder,
                        clock=ctx.clock,
                        update=self._update,
                        permission=self._permissions.asked,
                    )
                    began = await agent.open(self._setup.cwd, [desk.server], environ)
                    if began == "lost" or (first == GO_ON and began == "new"):
                        self._notice(f"{self._setup.name} cannot take up its session: it begins anew")
                        if first == GO_ON:
                            first = f"{whole}\n\n(This was begun before and interrupted. Look first at what is done.)"
                if agent is not None and interrupted(ctx) is None:
                    self._permissions.client = agent.client
                    end = await self._converse(agent, first)
            except AgentFailed as failed:
                end = RunEnd("provider", "unknown", f"{self._setup.name}: {failed}")
            finally:
                await self._permissions.close()
                if agent is not None and (left := await agent.close()):
                    self._notice(f"may still be running: {', '.join(left)}")
            return interrupted(ctx) or end or RunEnd("cancelled")

    async def _lead(self, stack: AsyncExitStack) -> tuple[dict[str, str], tuple[str, ...]]:
        """The environment and the arguments that lead the agent's requests through the gateway, where it can be."""
        environ = self._setup.entry.environ(self._setup.environ)
        provider = self._setup.entry.provider
        if provider is None or not self._setup.counted:
            self._notice(
                f"the requests of {self._setup.name} are not seen: bounds hold after the fact, by what it tells itself"
            )
            self.gateway = None
            return environ, ()
        gateway = await stack.enter_async_context(Gateway())
        self.gateway = GatewaySession(
            self._setup.id,
            clock=self._ctx.clock,
            routes=self._setup.routes,
            bounds=self._config.bounds,
            policy=self._config.policy,
            emit=self._at_gateway,
            limits=self._setup.limits,
            model_info=self._setup.model_info,
        )
        state = self._ctx.state
        self.gateway.carry(state.requests, state.usage, state.cost)
        gateway.add(self.gateway)
        url, base = gateway.base_url(self.gateway, provider), gateway.base_url(self.gateway)

        def led(text: str) -> str:
            return text.replace("{url}", url).replace("{base}", base)

        entry = self._setup.entry
        environ |= {name: led(value) for name, value in entry.gateway_environment.items()}
        return gateway.environ(self.gateway, environ), tuple(map(led, entry.gateway_arguments))

    async def _converse(self, agent: AgentConnection, text: str) -> RunEnd:
        """Prompt after prompt, until nothing more is to be said."""
        ctx = self._ctx
        self._permissions.fold = self.fold
        while True:
            end, failure, again = await self._prompt(agent, text)
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
            if self._stall.gave_up:
                silent = f"{self._setup.name} said nothing for {self._config.policy.idle_timeout_s:g} s"
                return RunEnd("provider", "transient", silent)
            if again:
                text = GO_ON
                continue
            if failure is not None:
                return self._failed(failure)
            follow = await self._next(end.stop if end else "")
            if isinstance(follow, RunEnd):
                return follow
            text = follow

    async def _prompt(
        self, agent: AgentConnection, text: str
    ) -> tuple[PromptEnded | None, Failure | None, bool]:
        """One prompt, to its end: by the agent, by a person, by a bound or a limit. The last of the three: a person
        wants the same asked again."""
        ctx, fold = self._ctx, self.fold
        await self._folder.before(fold)
        prompting = asyncio.create_task(agent.prompt(text))
        ended: PromptEnded | None = None
        failure: Failure | None = None
        try:
            self._stall.start(self._config.policy.idle_timeout_s)
            with ctx.interrupts.scope("cut", "retry") as scope:
                ended = await asyncio.shield(prompting)
            await self._stall.stop()
            if ended is None:
                await self._permissions.cancel()
                if not await agent.cancel(prompting):
                    self._notice(f"{self._setup.name} does not stop: it is ended")
                    await agent.close()
                ended = await prompting
        except AgentFailed as failed:
            failure = Failure(
                str(failed), self._setup.entry.provider, "connect" if failed.gone else "response"
            )
        finally:
            await self._stall.stop()
            prompting.cancel()
            await asyncio.gather(prompting, return_exceptions=True)
        await self._permissions.cancel()
        if self.gateway is not None:
            await self.gateway.settled()
        elif ended is not None:
            self._told.usage += _usage(ended.usage)
        stopped = interrupted(ctx) is not None
        fold.end("cancelled" if stopped else ended.stop if ended else "", None if stopped else failure)
        await self._folder.after(fold)
        await ctx.commit()
        return ended, failure, scope.cause == "retry"

    def _bound(self) -> RunEnd | None:
        """The bound that stopped the agent's requests, if one did (rules L1, L3)."""
        if self.gateway is not None:
            refusal = self.gateway.refusal
            if refusal is None or refusal.limit is not None:
                return None
            outcome: ev.Outcome = "turn-limit" if refusal.code == "max_turns" else "budget"
            return RunEnd(outcome, bound=refusal.code, error=refusal.words)
        hit = exceeded(self._ctx) if self._over() else None
        return RunEnd(hit.outcome, bound=hit.bound, error=hit.why) if hit else None

    def _over(self) -> bool:
        return self._ctx.state.requests > self._config.bounds.max_turns

    def _limit_seen(self) -> Failure | None:
        """The usage limit that the gateway saw, in the provider's own words."""
        if self.gateway is None or self.gateway.limit is None:
            return None
        last = self.gateway.last_failure
        return last[1] if last and last[0] == "usage_limit" else Failure(self.gateway.limit.words, status=429)

    async def _limited(self, failure: Failure | None) -> Literal[True] | RunEnd | None:
        """Wait out a usage limit (rules U1 to U5). True: go on; None: it is none."""
        ctx = self._ctx
        seen = self._limit_seen() or failure
        if seen is None:
            return None
        now = ctx.clock.now()
        verdict = classify(seen, now=now, waited_for=ctx.state.ledger.waited_for)
        if verdict.class_ != "usage_limit":
            return None
        facts = Facts("error", blank=True, classification=verdict, failure=seen)
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
                advice=decision.advice,
            )
        )
        await ctx.commit()
        until = decision.guidance.at if decision.guidance else None
        if decision.kind != "wait" or not await self._backoff.pause(decision, facts):
            return interrupted(ctx) or RunEnd("usage-limit", "usage_limit", seen.text[:2000], until=until)
        if self.gateway is not None:
            self.gateway.lift()
        return True

    def _failed(self, failure: Failure) -> RunEnd:
        """The agent's turn ended in an error: the provider's own words where the gateway saw them."""
        seen = self.gateway.last_failure if self.gateway is not None else None
        words = failure.text if seen is None else f"{failure.text}\n{seen[1].text}"
        found = classify(seen[1] if seen is not None else failure, now=self._ctx.clock.now())
        return RunEnd("provider", found.class_, f"{self._setup.name}: {words}"[:2000], found.advice)

    async def _next(self, stop: str) -> str | RunEnd:
        """What is said next: an answer to the marked line, words of a person; else the run is over (rules L8, H1)."""
        ctx, fold = self._ctx, self.fold
        last = fold.last.text if fold.last is not None else ""
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
            return RunEnd("provider", "output_truncated", f"{self._setup.name} was cut: {stop}")
        if stop == "refusal":
            return RunEnd("provider", "content_filter", f"{self._setup.name}: the model refused")
        if stop == "cancelled":
            return RunEnd("cancelled", error=f"{self._setup.name} ended its turn by itself")
        return RunEnd("completed", text=last)

    def _update(self, update: Mapping[str, Any]) -> None:
        if update.get("sessionUpdate") == "usage_update":
            used, size, cost = update.get("used"), update.get("size"), update.get("cost")
            if isinstance(used, int) and isinstance(size, int) and size > 0:
                self._told.context = used / size
            if isinstance(cost, dict) and isinstance(cost.get("amount"), int | float):
                self._told.cost = float(cost["amount"])
            return
        self._stall.heard()
        self.fold.take(update)
        if self.gateway is None and self._over():
            self._ctx.interrupts.send("cut")

    def spent(self) -> Spent:
        gateway = self.gateway
        if gateway is None:
            return self._told
        return Spent(gateway.usage, gateway.cost, self._told.context)

    def _notice(self, text: str) -> None:
        self._ctx.emit(ev.Notice(**self._ctx.stamp(), text=text, level="warning"))

    def _at_gateway(self, event: ev.Event) -> None:
        """A limit or a bound stops the agent's requests: it may end its turn by itself, and soon must."""
        self._stall.heard()
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


def _usage(told: Mapping[str, Any]) -> Usage:
    """Tokens as an agent tells them at the end of a prompt."""

    def count(name: str) -> int:
        value = told.get(name)
        return value if isinstance(value, int) and value > 0 else 0

    return Usage(
        count("inputTokens"), count("outputTokens"), count("cachedReadTokens"), count("cachedWriteTokens")
    )
