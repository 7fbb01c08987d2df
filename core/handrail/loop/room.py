"""Makes room in the window: when it was decided, asked for, or is known to be needed (rule R14)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from handrail import events as ev
from handrail.loop import compaction
from handrail.loop.carry import Carrier
from handrail.loop.plan import End, Plan, bounded, interrupted
from handrail.loop.reply import Reply
from handrail.loop.stage import Stage
from handrail.providers.base import Request
from handrail.recovery.decide import Decision, decide


class Room:
    """`ask(request)` makes the request for a summary; it counts in every bound like any other."""

    def __init__(
        self, stage: Stage, plan: Plan, carrier: Carrier, ask: Callable[[Request], Awaitable[Reply]]
    ) -> None:
        self._stage, self._plan, self._carrier, self._ask = stage, plan, carrier, ask

    async def make_room(self) -> End | None:
        """Compact when that was decided, asked for, or when the request is known not to fit (rule R14)."""
        stage, plan, state = self._stage, self._plan, self._stage.state
        window = plan.provider.model.window
        if not state.must_compact:
            asked, plan.compact_now = plan.compact_now, False
            may = plan.policy.enabled and plan.policy.compaction and state.ledger.compactions < 1
            full = may and compaction.overfull(stage.projection.messages, window, plan.cap)
            if not (asked or full):
                return None
            why = "asked for" if asked else "the next request would not fit the window"
            self._carrier.announce(_compact_first(state.ledger, why, by_person=asked))
        plan_of = compaction.plan(stage.projection.messages, window)
        stage.emit(
            ev.CompactionStarted(
                **stage.stamp(), why="overflow", messages=plan_of.older, before=plan_of.before
            )
        )
        if plan_of.older == 0:
            stage.emit(
                ev.CompactionFinished(**stage.stamp(), ok=False, why="there is nothing older to summarise")
            )
            return self._overflow_end("the newest messages alone do not fit the window")
        end = None
        while end is None and state.must_compact:  # a summary that failed is asked for again (rule R2)
            end = interrupted(stage) or bounded(stage) or await self._summarise(plan_of)
        return end

    async def _summarise(self, plan_of: compaction.Plan) -> End | None:
        stage = self._stage
        request = compaction.request(stage.projection.messages[: plan_of.older], self._plan.provider.model)
        await stage.commit()
        ended = interrupted(stage)
        if ended:
            return ended
        reply = await self._ask(request)
        ended = interrupted(stage)
        if ended:
            return ended
        message = reply.message
        facts = self._carrier.facts(message)
        if message.stop_reason == "length" or facts.class_ in ("context_overflow", "output_truncated"):
            stage.emit(ev.CompactionFinished(**stage.stamp(), ok=False, why="the summary itself was cut"))
            return self._overflow_end("the summary itself was cut")
        if not facts.good:
            steering = bool(stage.state.queue.steering)
            policy, now = self._plan.policy, stage.clock.now()
            decision = decide(facts, stage.state.ledger, policy, now, steering=steering)
            if decision is None:
                return self._overflow_end("the model gave no summary")
            return await self._carrier.carry_out(replace(decision, omits=False), facts)
        stage.emit(compaction.finished(plan_of, message.text, stage.stamp()))
        await stage.commit()
        if stage.state.poor_compactions >= 2:
            return self._overflow_end("two compactions in a row gained under 20 %")
        return bounded(self._stage)

    def _overflow_end(self, why: str) -> End:
        self._carrier.last_class = "context_overflow"
        return bounded(self._stage) or End("provider", "context_overflow", error=why)


def _compact_first(ledger: ev.Ledger, why: str, *, by_person: bool) -> Decision:
    after = replace(ledger, compactions=ledger.compactions + 1)
    return Decision("compact", "human" if by_person else "overflow", why, after, omits=False)
