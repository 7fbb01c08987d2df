"""A planned pause: announced with its end, ended at once by whoever may end it (rules R1, R12, U7, U8)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Protocol

from handrail import events as ev
from handrail.loop import compaction
from handrail.loop.context import (
    Cause,
    End,
    RunConfig,
    RunContext,
    Scope,
    bound_end,
    bounded,
    forbids,
    interrupted,
)
from handrail.loop.request import Reply
from handrail.messages import AssistantMessage, Failure
from handrail.policy import RecoveryPolicy
from handrail.providers.base import Request
from handrail.recovery import checkpoint as checkpoints
from handrail.recovery.classify import classify
from handrail.recovery.decide import PERMANENT, Decision, Facts, decide

_HOW: dict[Cause | None, ev.WaitHow] = {
    None: "elapsed",
    "skip": "skipped",
    "steer": "steered",
    "recovery_off": "recovery_off",
}
_GOES_ON = ("elapsed", "skipped", "steered")


class HasPolicy(Protocol):
    @property
    def policy(self) -> RecoveryPolicy: ...


class Backoff:
    """Waits on a stage. One pause at a time."""

    def __init__(self, stage: RunContext, plan: HasPolicy) -> None:
        self._stage, self._plan = stage, plan
        self._scope: Scope | None = None

    async def pause(self, decision: Decision, facts: Facts) -> bool:
        """Wait as decided. False: no request may follow (stopped, or recovery was switched off)."""
        assert decision.until is not None
        guidance = decision.guidance
        return await self._wait(
            ev.WaitStarted(
                **self._stage.stamp(),
                seconds=decision.delay_s,
                until=decision.until,
                decision=decision.kind,
                reason=decision.reason,
                words=facts.failure.text[:2000] if facts.failure else decision.why,
                source=guidance.source if guidance else "",
                number=decision.number,
                limit=decision.limit,
                poll=decision.poll,
                polls=self._plan.policy.max_polls if decision.poll is not None else None,
            )
        )

    async def resume(self, wait: ev.WaitStarted) -> bool:
        """Go on with a wait of a stored run, till the same moment (rule U7)."""
        left = max(0.0, wait.until - self._stage.clock.now())
        again = {
            f: getattr(wait, f) for f in ("until", "decision", "reason", "words", "source", "number", "limit")
        }
        return await self._wait(
            ev.WaitStarted(**self._stage.stamp(), seconds=left, poll=wait.poll, polls=wait.polls, **again)
        )

    def skip(self) -> None:
        """Ask now: a person is tired of waiting."""
        self._end("skip")

    def steered(self) -> None:
        """A message waits: it replaces the rest of a retry's or resume's delay, no other wait (rule R1)."""
        wait = self._stage.state.wait
        if wait is not None and wait.decision in ("retry", "resume"):
            self._end("steer")

    def recovery_off(self) -> None:
        self._end("recovery_off")

    def _end(self, cause: Cause) -> None:
        if self._scope is not None:
            self._scope.interrupt(cause)

    async def _wait(self, started: ev.WaitStarted) -> bool:
        stage = self._stage
        with stage.interrupts.scope() as scope:
            self._scope = scope
            stage.emit(started)
            await stage.commit()
            if not self._plan.policy.enabled:
                scope.interrupt("recovery_off")
            await stage.clock.sleep_until(started.until)
        self._scope = None
        if scope.cause == "suspend":
            return False
        how = _HOW.get(scope.cause, "stopped")
        stage.emit(ev.WaitEnded(**stage.stamp(), how=how))
        return how in _GOES_ON


class Recovery:
    """`step` says that the run wants a submission. `last_class` is that of the last failure."""

    def __init__(self, stage: RunContext, plan: RunConfig, *, step: bool) -> None:
        self._stage, self._plan, self._step = stage, plan, step
        self.backoff = Backoff(stage, plan)
        self.last_class: str | None = None

    def facts(self, message: AssistantMessage, *, ends: bool = False) -> Facts:
        """What `decide` needs of a reply. `ends`: every result of its batch voted for the end."""
        model, usage = self._plan.provider.model, message.usage
        broke = message.stop_reason == "error"
        failure = message.failure or Failure("the provider gave no reason", model.provider) if broke else None
        verdict = classify(failure, now=self._stage.clock.now()) if failure else None
        readable = checkpoints.readable(message)
        return Facts(
            stop_reason=message.stop_reason,
            blank=not message.text.strip(),
            calls=len(message.calls),
            verdict=verdict,
            failure=failure,
            tail=ends and not self._step and not self._stage.state.queue.steering,
            paused=message.stop_detail == "pause_turn",
            context=usage.context if usage else None,
            output=usage.output if usage else None,
            cap=self._plan.cap,
            window=model.window,
            chars=len(readable),
        )

    async def carry_out(self, decision: Decision, facts: Facts) -> End | None:
        """Announce a decision, then do it. A bound that forbids its request ends the run now (rule L1)."""
        self.last_class = decision.class_ or self.last_class
        failed = decision.class_ not in PERMANENT and decision.class_ != "cancelled"
        counted = decision.delay_s if decision.kind in ("retry", "resume") else 0.0
        hit = forbids(self._stage, after_s=counted) if failed else None
        if hit is not None:
            decision = replace(
                decision, kind="finish", reason=hit.outcome, why=hit.why, delay_s=0.0, until=None, spent=None
            )
        self.announce(decision, facts)
        await self._stage.commit()
        if hit is not None:
            return bound_end(hit)
        if decision.kind == "finish":
            return self._finish(decision, facts)
        if decision.delay_s > 0 and decision.until is not None:
            went_on = await self.backoff.pause(decision, facts)
            if not went_on:
                return interrupted(self._stage) or self._finish(
                    replace(decision, why=f"{decision.why}; recovery was switched off"), facts
                )
        return None

    def announce(self, decision: Decision, facts: Facts | None = None) -> None:
        """The decision, the omission and the checkpoint, on record before any pause (rule R7)."""
        stage = self._stage
        stage.emit(
            ev.Decided(
                **stage.stamp(),
                decision=decision.kind,
                reason=decision.reason,
                class_=decision.class_,
                delay_s=decision.delay_s or None,
                until=decision.until,
                why=decision.why,
                number=decision.number,
                limit=decision.limit,
                omits=decision.omits,
                failure=facts.failure if facts else None,
                evidence=_evidence(facts) if facts else {},
                before=stage.state.ledger,
                after=decision.after,
            )
        )
        if facts is not None and decision.omits:
            self._checkpoint()
        if decision.spent is not None:
            limit = getattr(self._plan.policy, _LIMITS.get(decision.spent, ""), 1)
            spent = getattr(stage.state.ledger, decision.spent)
            if decision.spent == "continues":
                spent += stage.state.ledger.resumes
            stage.emit(ev.BudgetSpent(**stage.stamp(), which=decision.spent, spent=spent, limit=limit))

    def _checkpoint(self) -> None:
        stage, reply = self._stage, self._stage.state.last
        if reply is None:
            return
        pieces = checkpoints.merge(stage.projection.pieces, checkpoints.readable(reply))
        calls = [call.name for call in reply.calls]
        made = checkpoints.make(pieces, calls, self._plan.policy.checkpoint_max_chars)
        if made is not None:
            stage.emit(
                ev.CheckpointMade(
                    **stage.stamp(), text=made.text, quoted=made.quoted, of=made.of, pieces=made.pieces
                )
            )

    def _finish(self, decision: Decision, facts: Facts) -> End:
        """The end that a finish means (rules R15, R16, U5)."""
        error = facts.failure.text[:2000] if facts.failure else decision.why
        until = decision.guidance.at if decision.guidance else None
        class_ = decision.class_
        if class_ == "cancelled":
            return End("cancelled", class_, error)
        if class_ == "usage_limit":
            return End("usage-limit", class_, error, until=until)
        if class_ == "empty" and self._step:
            return End("no-submit", class_, error)
        return End("provider", class_, error, until=until)


_LIMITS = {
    "continues": "max_resumes",
    "resumes": "stream_retries",
    "polls": "max_polls",
    "guided_waits": "max_guided_waits",
}


def _evidence(facts: Facts) -> dict[str, Any]:
    """What the decision was made from, for the inspector."""
    shown: dict[str, Any] = {"stop_reason": facts.stop_reason, "chars": facts.chars, "calls": facts.calls}
    for name in ("context", "output", "cap", "window"):
        if getattr(facts, name) is not None:
            shown[name] = getattr(facts, name)
    if facts.verdict is not None:
        shown["classified"] = facts.verdict.why
        if facts.guidance is not None:
            shown["guidance"] = facts.guidance.source
    if facts.failure is not None and facts.failure.status is not None:
        shown["status"] = facts.failure.status
    return shown


class Compactor:
    """`ask(request)` makes the request for a summary; it counts in every bound like any other."""

    def __init__(
        self,
        stage: RunContext,
        plan: RunConfig,
        recovery: Recovery,
        ask: Callable[[Request], Awaitable[Reply]],
    ) -> None:
        self._stage, self._plan, self._recovery, self._ask = stage, plan, recovery, ask

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
            self._recovery.announce(_compact_first(state.ledger, why, by_person=asked))
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
        facts = self._recovery.facts(message)
        if message.stop_reason == "length" or facts.class_ in ("context_overflow", "output_truncated"):
            stage.emit(ev.CompactionFinished(**stage.stamp(), ok=False, why="the summary itself was cut"))
            return self._overflow_end("the summary itself was cut")
        if not facts.good:
            steering = bool(stage.state.queue.steering)
            policy, now = self._plan.policy, stage.clock.now()
            decision = decide(facts, stage.state.ledger, policy, now, steering=steering)
            if decision is None:
                return self._overflow_end("the model gave no summary")
            return await self._recovery.carry_out(replace(decision, omits=False), facts)
        stage.emit(compaction.finished(plan_of, message.text, stage.stamp()))
        await stage.commit()
        if stage.state.poor_compactions >= 2:
            return self._overflow_end("two compactions in a row gained under 20 %")
        return bounded(self._stage)

    def _overflow_end(self, why: str) -> End:
        self._recovery.last_class = "context_overflow"
        return bounded(self._stage) or End("provider", "context_overflow", error=why)


def _compact_first(ledger: ev.Ledger, why: str, *, by_person: bool) -> Decision:
    after = replace(ledger, compactions=ledger.compactions + 1)
    return Decision("compact", "human" if by_person else "overflow", why, after, omits=False)
