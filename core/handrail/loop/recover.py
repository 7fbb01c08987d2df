"""Carrying out recovery: `Recovery` does what `decide` decided, `Backoff` waits, `Compactor` makes room.

Every decision is published and stored before anything is done about it (rules R1, R7, R12, R14, U7, U8).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Protocol

from handrail import events as ev
from handrail.loop import compaction
from handrail.loop.context import (
    Cause,
    RunConfig,
    RunContext,
    RunEnd,
    bound_end,
    bounded,
    exceeded,
    interrupted,
)
from handrail.loop.request import ModelReply
from handrail.messages import AssistantMessage, Failure
from handrail.policy import RecoveryPolicy
from handrail.providers.base import Request
from handrail.recovery import checkpoint as checkpoints
from handrail.recovery.classify import Classification, classify
from handrail.recovery.decide import PERMANENT, Decision, Facts, decide
from handrail.recovery.reading.pieces import refuses_a_piece

_HOW: dict[Cause | None, ev.WaitHow] = {
    None: "elapsed",
    "skip": "skipped",
    "later": "postponed",
    "steer": "steered",
    "recovery_off": "recovery_off",
}
_CONTINUES = ("elapsed", "skipped", "steered")


def _refuses(failure: Failure, found: Classification | None) -> bool:
    """Whether a picture of the history is what the provider refuses: nothing else explains the failure (rule W6)."""
    return (
        found is not None
        and found.class_ in ("invalid_request", "unknown", "transient")
        and refuses_a_piece(failure)
    )


class HasPolicy(Protocol):
    @property
    def policy(self) -> RecoveryPolicy: ...


class Backoff:
    """Planned pauses, one at a time. Each is announced with its end, and a person may end it at once."""

    def __init__(self, ctx: RunContext, config: HasPolicy) -> None:
        self._ctx, self._config = ctx, config

    async def pause(self, decision: Decision, facts: Facts) -> bool:
        """Wait as decided. False: no request may follow, because the run was stopped or recovery switched off."""
        assert decision.until is not None
        guidance = decision.guidance
        return await self._wait(
            ev.WaitStarted(
                **self._ctx.stamp(),
                seconds=decision.delay_s,
                until=decision.until,
                decision=decision.kind,
                reason=decision.reason,
                words=facts.failure.text[:2000] if facts.failure else decision.why,
                source=guidance.source if guidance else "",
                number=decision.number,
                limit=decision.limit,
                poll=decision.poll,
                polls=self._config.policy.max_polls if decision.poll is not None else None,
            )
        )

    async def resume(self, wait: ev.WaitStarted) -> bool:
        """Continue a wait of a stored run, until the same moment (rule U7)."""
        left = max(0.0, wait.until - self._ctx.clock.now())
        again = {
            f: getattr(wait, f) for f in ("until", "decision", "reason", "words", "source", "number", "limit")
        }
        return await self._wait(
            ev.WaitStarted(**self._ctx.stamp(), seconds=left, poll=wait.poll, polls=wait.polls, **again)
        )

    async def _wait(self, started: ev.WaitStarted) -> bool:
        ctx = self._ctx
        while True:
            with ctx.interrupts.scope("skip", "later", "steer", "recovery_off") as scope:
                ctx.emit(started)
                await ctx.commit()
                if not self._config.policy.enabled:
                    scope.interrupt("recovery_off")
                await ctx.clock.sleep_until(started.until)
            if scope.cause == "suspend":
                return False
            how = _HOW.get(scope.cause, "stopped")
            ctx.emit(ev.WaitEnded(**ctx.stamp(), how=how))
            if how != "postponed" or scope.moment is None:
                return how in _CONTINUES
            now = ctx.clock.now()
            started = replace(started, **ctx.stamp(), seconds=scope.moment - now, until=scope.moment)


class Recovery:
    """Classifies replies and carries out decisions. `last_class` is the class of the last failure.

    `step`: the run must end with a submission.
    """

    def __init__(self, ctx: RunContext, config: RunConfig, *, step: bool) -> None:
        self._ctx, self._config, self._step = ctx, config, step
        self.backoff = Backoff(ctx, config)
        self.last_class: str | None = None

    def facts(self, message: AssistantMessage, *, ends: bool = False) -> Facts:
        """What `decide` needs to know about a reply. `ends`: every result of its batch voted to end the loop."""
        model, usage = self._config.provider.model, message.usage
        broke = message.stop_reason == "error"
        failure = message.failure or Failure("the provider gave no reason", model.provider) if broke else None
        now, waited_for = self._ctx.clock.now(), self._ctx.state.ledger.waited_for
        found = classify(failure, now=now, waited_for=waited_for) if failure else None
        readable = checkpoints.readable(message)
        return Facts(
            stop_reason=message.stop_reason,
            blank=not message.text.strip(),
            calls=len(message.calls),
            classification=found,
            failure=failure,
            tail=ends and not self._step and not self._ctx.state.queue.steering,
            paused=message.stop_detail == "pause_turn",
            context=usage.context if usage else None,
            output=usage.output if usage else None,
            cap=self._config.cap,
            window=model.window,
            chars=len(readable),
            refused=self._ctx.projection.newest_picture if failure and _refuses(failure, found) else None,
        )

    async def carry_out(self, decision: Decision, facts: Facts) -> RunEnd | None:
        """Announce a decision, then carry it out. A bound that rules out its request ends the run now (rule L1)."""
        self.last_class = decision.class_ or self.last_class
        failed = decision.class_ not in PERMANENT and decision.class_ != "cancelled"
        counted = decision.delay_s if decision.kind in ("retry", "resume") else 0.0
        hit = exceeded(self._ctx, after_s=counted) if failed else None
        if hit is not None:
            decision = replace(
                decision, kind="finish", reason=hit.outcome, why=hit.why, delay_s=0.0, until=None, spent=None
            )
        self.announce(decision, facts)
        await self._ctx.commit()
        if hit is not None:
            return bound_end(hit)
        if decision.kind == "finish":
            return self._finish(decision, facts)
        pauses = decision.delay_s > 0 and decision.until is not None
        if pauses and not await self.backoff.pause(decision, facts):
            switched_off = replace(decision, why=f"{decision.why}; recovery was switched off")
            return interrupted(self._ctx) or self._finish(switched_off, facts)
        return None

    def announce(self, decision: Decision, facts: Facts | None = None) -> None:
        """Publish the decision, the omission and the checkpoint, before any pause (rule R7)."""
        ctx = self._ctx
        ctx.emit(
            ev.Decided(
                **ctx.stamp(),
                decision=decision.kind,
                reason=decision.reason,
                class_=decision.class_,
                delay_s=decision.delay_s or None,
                until=decision.until,
                why=decision.why,
                advice=decision.advice,
                number=decision.number,
                limit=decision.limit,
                omits=decision.omits,
                failure=facts.failure if facts else None,
                evidence=_evidence(facts) if facts else {},
                piece=decision.piece,
                before=ctx.state.ledger,
                after=decision.after,
            )
        )
        if facts is not None and decision.omits:
            self._checkpoint()
        if decision.spent is not None:
            limit = getattr(self._config.policy, _LIMITS.get(decision.spent, ""), 1)
            spent = getattr(ctx.state.ledger, decision.spent)
            if decision.spent == "continues":
                spent += ctx.state.ledger.resumes
            ctx.emit(ev.BudgetSpent(**ctx.stamp(), which=decision.spent, spent=spent, limit=limit))

    def _checkpoint(self) -> None:
        ctx, reply = self._ctx, self._ctx.state.last
        if reply is None:
            return
        pieces = checkpoints.merge(ctx.projection.pieces, checkpoints.readable(reply))
        calls = checkpoints.merge_calls(ctx.projection.interrupted, [call.name for call in reply.calls])
        made = checkpoints.make(pieces, calls, self._config.policy.checkpoint_max_chars)
        if made is not None:
            ctx.emit(
                ev.CheckpointMade(
                    **ctx.stamp(),
                    text=made.text,
                    quoted=made.quoted,
                    of=made.of,
                    pieces=made.pieces,
                    calls=made.calls,
                )
            )

    def _finish(self, decision: Decision, facts: Facts) -> RunEnd:
        """The end that follows from the decision to finish (rules R15, R16, U5)."""
        error = facts.failure.text[:2000] if facts.failure else decision.why
        until = decision.guidance.at if decision.guidance else None
        class_ = decision.class_
        advice = decision.advice
        if class_ == "cancelled":
            return RunEnd("cancelled", class_, error)
        if class_ == "usage_limit":
            return RunEnd("usage-limit", class_, error, advice, until=until)
        if class_ == "empty" and self._step:
            return RunEnd("no-submit", class_, error, advice)
        return RunEnd("provider", class_, error, advice, until=until)


_LIMITS = {
    "continues": "max_resumes",
    "resumes": "stream_retries",
    "polls": "max_polls",
    "guided_waits": "max_guided_waits",
}


def _evidence(facts: Facts) -> dict[str, Any]:
    """What the decision was based on, for the list of decisions."""
    shown: dict[str, Any] = {"stop_reason": facts.stop_reason, "chars": facts.chars, "calls": facts.calls}
    for name in ("context", "output", "cap", "window"):
        if getattr(facts, name) is not None:
            shown[name] = getattr(facts, name)
    if facts.classification is not None:
        shown["classified"] = facts.classification.why
        if facts.guidance is not None:
            shown["guidance"] = facts.guidance.source
    if facts.failure is not None and facts.failure.status is not None:
        shown["status"] = facts.failure.status
    return shown


class Compactor:
    """Summarises older messages. `ask(request)` requests the summary; it counts towards every bound (rule R14)."""

    def __init__(
        self,
        ctx: RunContext,
        config: RunConfig,
        recovery: Recovery,
        ask: Callable[[Request], Awaitable[ModelReply]],
    ) -> None:
        self._ctx, self._config, self._recovery, self._ask = ctx, config, recovery, ask

    async def make_room(self) -> RunEnd | None:
        """Compact when that was decided or asked for, or when the next request would not fit (rule R14)."""
        ctx, config, state = self._ctx, self._config, self._ctx.state
        window = config.provider.model.window
        if not state.must_compact:
            asked, config.compact_now = config.compact_now, False
            may = config.policy.enabled and config.policy.compaction and state.ledger.compactions < 1
            full = may and compaction.overfull(ctx.projection.messages, window, config.cap)
            if not (asked or full):
                return None
            why = "asked for" if asked else "the next request would not fit the window"
            self._recovery.announce(_compact_first(state.ledger, why, by_person=asked))
        summary_plan = compaction.plan(ctx.projection.messages, window)
        ctx.emit(
            ev.CompactionStarted(
                **ctx.stamp(), why="overflow", messages=summary_plan.older, before=summary_plan.before
            )
        )
        if summary_plan.older == 0:
            ctx.emit(
                ev.CompactionFinished(**ctx.stamp(), ok=False, why="there is nothing older to summarise")
            )
            return self._overflow_end("the newest messages alone do not fit the window")
        end = None
        while end is None and state.must_compact:  # a summary that failed is asked for again (rule R2)
            end = interrupted(ctx) or bounded(ctx) or await self._summarise(summary_plan)
        return end

    async def _summarise(self, summary_plan: compaction.CompactionPlan) -> RunEnd | None:
        ctx = self._ctx
        request = compaction.request(
            ctx.projection.messages[: summary_plan.older], self._config.provider.model
        )
        await ctx.commit()
        ended = interrupted(ctx)
        if ended:
            return ended
        reply = await self._ask(request)
        ended = interrupted(ctx)
        if ended:
            return ended
        message = reply.message
        facts = self._recovery.facts(message)
        if message.stop_reason == "length" or facts.class_ in ("context_overflow", "output_truncated"):
            ctx.emit(ev.CompactionFinished(**ctx.stamp(), ok=False, why="the summary itself was cut off"))
            return self._overflow_end("the summary itself was cut off")
        if not facts.good:
            steering = bool(ctx.state.queue.steering)
            policy, now = self._config.policy, ctx.clock.now()
            decision = decide(facts, ctx.state.ledger, policy, now, steering=steering)
            if decision is None:
                return self._overflow_end("the model gave no summary")
            return await self._recovery.carry_out(replace(decision, omits=False), facts)
        ctx.emit(compaction.finished(summary_plan, message.text, ctx.stamp()))
        await ctx.commit()
        if ctx.state.poor_compactions >= 2:
            return self._overflow_end("two compactions in a row freed less than 20 %")
        return bounded(self._ctx)

    def _overflow_end(self, why: str) -> RunEnd:
        self._recovery.last_class = "context_overflow"
        return bounded(self._ctx) or RunEnd("provider", "context_overflow", error=why)


def _compact_first(ledger: ev.Ledger, why: str, *, by_person: bool) -> Decision:
    after = replace(ledger, compactions=ledger.compactions + 1)
    return Decision("compact", "human" if by_person else "overflow", why, after, omits=False)
