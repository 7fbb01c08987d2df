"""A planned pause: announced with its end, ended at once by whoever may end it (rules R1, R12, U7, U8)."""

from __future__ import annotations

from typing import Protocol

from handrail import events as ev
from handrail.loop.interrupts import Cause, Scope
from handrail.loop.stage import Stage
from handrail.policy import RecoveryPolicy
from handrail.recovery.decide import Decision, Facts

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


class Pauser:
    """Waits on a stage. One pause at a time."""

    def __init__(self, stage: Stage, plan: HasPolicy) -> None:
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

    async def take_up(self, wait: ev.WaitStarted) -> bool:
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
