"""One session of the gateway: its bounds, its books, its limits, and its events.

Every request that asks a model is one turn. Bounds are checked before each (rules L1, L3), by the same books that a
run of our own keeps; what a reply used and why one failed is read while it passes.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from handrail import events as ev
from handrail.agents._exchange import Exchange, ModelBill, Refusal, deltas
from handrail.agents._stage import TurnOrder
from handrail.agents._tap import Tap
from handrail.agents._wires import WireName
from handrail.agents.limits import AccountLimits, Limit, LimitsHere
from handrail.agents.routes import Route
from handrail.clock import Clock, Timer
from handrail.loop.compaction import CHARS, tokens
from handrail.loop.context import RunContext, exceeded
from handrail.messages import AssistantMessage, Failure, Usage
from handrail.policy import Bounds, RecoveryPolicy
from handrail.providers.base import ModelInfo, Part
from handrail.recovery.classify import classify

ModelInfoOf = Callable[[str], ModelInfo]


class GatewaySession:
    """Bounds, limits and events of one client of the gateway, or of several that count together.

    `emit` hears every event, in order, one turn after the other. `model_info` tells window and price of a model by
    `provider/name`. A bound on cost refuses a model without a known price (rule L3).
    """

    def __init__(
        self,
        id: str,
        *,
        clock: Clock,
        routes: Mapping[str, Route],
        bounds: Bounds | None = None,
        policy: RecoveryPolicy | None = None,
        emit: ev.Listener = lambda event: None,
        limits: AccountLimits | None = None,
        model_info: ModelInfoOf = ModelInfo,
    ) -> None:
        self.id, self.token = id, secrets.token_urlsafe(24)
        self.routes = routes
        self.refused = 0
        self.bill: dict[str, ModelBill] = {}
        self.last_activity = clock.now()
        self.refusal: Refusal | None = None
        self.last_failure: tuple[str, Failure] | None = None
        self.limit: Limit | None = None
        self.limited_until: float | None = None
        self._clock, self._emit, self._limits = clock, emit, limits or LimitsHere()
        self._policy, self._model_info = policy or RecoveryPolicy(), model_info
        self._books = RunContext(clock)
        self._order = TurnOrder(emit)
        self._accounts: set[str] = set()
        self._reading: set[asyncio.Task[None]] = set()
        self._wait_over: Timer | None = None
        self._note(_bounded(bounds or Bounds(), clock.now()))

    # -- what the books say

    @property
    def requests(self) -> int:
        """Requests that were let through."""
        return self._books.state.requests

    @property
    def usage(self) -> Usage:
        """Tokens of all replies; an estimate where a provider told none."""
        return self._books.state.usage

    @property
    def cost(self) -> float | None:
        """US dollars of all replies, None when a price was unknown."""
        return self._books.state.cost

    @property
    def bounds(self) -> Bounds:
        return self._books.state.bounds

    def raise_bounds(self, bounds: Bounds) -> None:
        """Other bounds from the next request on."""
        self._note(replace(_bounded(bounds, self._clock.now()), resumed=True))

    def carry(self, requests: int, usage: Usage, cost: float | None) -> None:
        """Count what was spent before, in an earlier life of the same run (rule L1: resuming keeps every counter)."""
        state = self._books.state
        state.requests, state.usage, state.cost = requests, usage, cost

    def lift(self) -> None:
        """Ask again, whatever limit was seen: a person or a plan says that it is time."""
        for account in tuple(self._accounts):
            self._limits.clear(account)
        self._end_wait("skipped")

    # -- the first and the last event of a run of this session

    def started(self, prompt: str = "", cwd: str = "") -> ev.RunStarted:
        """The run begins. What is behind the gateway asks nobody: it may do everything."""
        bounded = _bounded(self.bounds, self._clock.now())
        return replace(bounded, session=self.id, prompt=prompt, cwd=cwd, approve="all")

    def finished(
        self,
        outcome: ev.Outcome,
        *,
        class_: str | None = None,
        error: str | None = None,
        bound: str | None = None,
        until: float | None = None,
        stopped: bool = False,
    ) -> ev.RunFinished:
        """The run ends, with the sums of the books."""
        return ev.RunFinished(
            at=self._clock.now(),
            outcome=outcome,
            class_=class_,
            error=error,
            bound=bound,
            until=until,
            stopped=stopped,
            requests=self.requests,
            turns=self.requests,
            usage=self.usage,
            cost=self.cost if all(row.cost is not None for row in self.bill.values()) else None,
            session=self.id,
        )

    def interrupted(self, signal: str) -> ev.RunInterrupted:
        """The program was told to end."""
        return ev.RunInterrupted(at=self._clock.now(), signal=signal, session=self.id)

    # -- a request

    async def admit(
        self, wire: WireName, route: Route, account: str, model: str, sent: int
    ) -> Exchange | Refusal:
        """Let a request of `sent` bytes through, or say why not (rules L1, L3, U1). What came of earlier requests is in
        the books before: a client that asks again at once meets the bound that its last reply filled."""
        await self.settled()
        now = self._clock.now()
        self.last_activity = now
        self._accounts.add(account)
        limit = self._limits.current(account, now)
        if limit is not None:
            self._wait(limit)
            return self._refuse(Refusal(limit.status, limit.words, "usage_limit", limit))
        info = self._model_info(f"{route.provider}/{model}")
        info = info if route.at_home else replace(info, price=None)
        hit = exceeded(self._books)
        if hit is not None:
            return self._refuse(Refusal(400, f"Handrail refuses this request: {hit.why}.", hit.bound))
        if self.bounds.max_cost is not None and info.price is None:
            words = f"Handrail refuses this request: a bound on cost is set and the price of {info.name} is not known."
            return self._refuse(Refusal(400, words, "max_cost"))
        turn = self._order.open()
        tap = Tap(wire, info, lambda parts: self._told(exchange, parts))
        exchange = Exchange(turn, route, account, info, sent, now, tap, self._over)
        for event in (
            ev.TurnStarted(at=now, turn=turn.number),
            ev.MessageStarted(at=now, turn=turn.number, model=info.name),
        ):
            self._note(event)
            self._order.emit(turn, event)
        return exchange

    def _over(self, exchange: Exchange) -> None:
        """The reply is read to its end, then it stands in the books."""
        task = asyncio.create_task(self._finish(exchange))
        self._reading.add(task)
        task.add_done_callback(self._reading.discard)

    async def settled(self) -> None:
        """Return when every reply that has passed is in the books."""
        while self._reading:
            await asyncio.wait(set(self._reading))

    async def close(self) -> None:
        """Nothing more comes: the books are closed and the wait for a limit is over."""
        await self.settled()
        self._end_wait("stopped")

    # -- what came of it

    async def _finish(self, exchange: Exchange) -> None:
        message = await exchange.tap.message()
        if message is None:
            failure = exchange.unreached or Failure("no reply came", exchange.route.provider, "connect")
            message = AssistantMessage((), "error", None, exchange.model.name, None, failure)
        if exchange.client_left:
            message = replace(
                message, stop_reason="aborted", failure=None, stop_detail="the client went away"
            )
        now, turn = self._clock.now(), exchange.turn
        guess = None
        if message.usage is None and message.content:
            guess = Usage(exchange.sent // CHARS, tokens(message))
        used = message.usage or guess
        price = exchange.model.price
        cost = price.cost(used) if price else None
        finished = ev.MessageFinished(
            at=now,
            turn=turn.number,
            message=message,
            seconds=round(now - exchange.began, 6),
            cost=cost,
            estimate=guess,
        )
        self._note(finished)
        self._charge(exchange.model.name, used, cost)
        self._order.emit(turn, finished)
        self._order.emit(
            turn,
            ev.TurnFinished(
                at=now,
                turn=turn.number,
                seconds=finished.seconds,
                usage=self.usage,
                cost=self.cost if price else None,
            ),
        )
        self._order.close(turn)
        self._judge(exchange, message)

    def _charge(self, model: str, used: Usage | None, cost: float | None) -> None:
        row = self.bill.setdefault(model, ModelBill())
        row.requests += 1
        row.usage += used or Usage()
        row.cost = row.cost + cost if row.cost is not None and cost is not None else None

    def _judge(self, exchange: Exchange, message: AssistantMessage) -> None:
        """Whether a failure is a usage limit, which then holds for all of its account."""
        failure = message.failure
        if failure is None or message.stop_reason != "error":
            if message.stop_reason in ("stop", "tool_use", "length"):
                self._limits.clear(exchange.account)
                self.last_failure = None
            return
        now = self._clock.now()
        verdict = classify(failure, now=now)
        self.last_failure = (verdict.class_, failure)
        if verdict.class_ != "usage_limit":
            return
        guidance = verdict.guidance
        limit = Limit(
            guidance.due() if guidance else now + self._policy.poll_s,
            failure.text[:2000],
            guidance.source if guidance else "",
            guidance is not None,
            exchange.status if exchange.status >= 400 else 429,
            exchange.headers,
            bytes(exchange.error),
        )
        self._limits.hit(exchange.account, limit)
        self._wait(limit)

    # -- the wait for a limit, as a person sees it

    def _wait(self, limit: Limit) -> None:
        if self.limit is not None:
            return
        now = self._clock.now()
        self.limit, self.limited_until = limit, limit.until
        event = ev.WaitStarted(
            at=now,
            seconds=limit.until - now,
            until=limit.until,
            reason="usage-limit",
            words=limit.words,
            source=limit.source,
        )
        self._note(event)
        self._emit(event)
        self._wait_over = self._clock.call_at(limit.until, lambda: self._end_wait("elapsed"))

    def _end_wait(self, how: ev.WaitHow) -> None:
        if self.limit is None:
            return
        self.limit = None
        if self._wait_over is not None:
            self._wait_over.cancel()
            self._wait_over = None
        event = ev.WaitEnded(at=self._clock.now(), how=how)
        self._note(event)
        self._emit(event)

    # -- events

    def _told(self, exchange: Exchange, parts: Sequence[Part]) -> None:
        at = self.last_activity = self._clock.now()
        for event in deltas(parts, at, exchange.turn.number):
            self._order.emit(exchange.turn, event)

    def _refuse(self, refusal: Refusal) -> Refusal:
        """The first refusal of a kind is said; a client that goes on asking fills no screen."""
        self.refused += 1
        if self.refusal is None or self.refusal.code != refusal.code:
            self.refusal = refusal
            if refusal.limit is None:
                self._emit(ev.Notice(at=self._clock.now(), level="warning", text=refusal.words))
        return refusal

    def _note(self, event: ev.Event) -> None:
        self._books.state.apply(event)


def _bounded(bounds: Bounds, at: float) -> ev.RunStarted:
    return ev.RunStarted(at=at, **bounds.model_dump())
