"""Carries decisions out: says what was decided, keeps what a broken reply held, pauses, or ends the run.

Deciding is `recovery.decide`; this is the doing (house law 2).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from handrail import events as ev
from handrail.loop.bounds import forbids
from handrail.loop.pause import Pauser
from handrail.loop.plan import End, Plan, bound_end, interrupted
from handrail.loop.stage import Stage
from handrail.messages import AssistantMessage, Failure
from handrail.recovery import checkpoint as checkpoints
from handrail.recovery.classify import classify
from handrail.recovery.decide import PERMANENT, Decision, Facts


class Carrier:
    """`step` says that the run wants a submission. `last_class` is that of the last failure."""

    def __init__(self, stage: Stage, plan: Plan, *, step: bool) -> None:
        self._stage, self._plan, self._step = stage, plan, step
        self.pauser = Pauser(stage, plan)
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
            went_on = await self.pauser.pause(decision, facts)
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
