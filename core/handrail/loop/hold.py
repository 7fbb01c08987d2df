"""Holds the run for a person: the marked last line, and what goes in circles (rules H1, H2, L13)."""

from __future__ import annotations

from handrail import events as ev
from handrail.human.ask import MarkedLine
from handrail.human.desk import Desk, HumanAbsent
from handrail.loop.calls import BatchResult
from handrail.loop.carry import Carrier
from handrail.loop.people import People
from handrail.loop.plan import End, Plan, interrupted
from handrail.loop.progress import ASKED, NAMED, ProgressGuard, Repeat
from handrail.loop.projection import NO_PROGRESS
from handrail.loop.reply import same_reply
from handrail.loop.stage import Stage
from handrail.messages import AssistantMessage
from handrail.recovery.decide import Decision


class Holder:
    """Asks on behalf of the loop itself."""

    def __init__(self, stage: Stage, plan: Plan, carrier: Carrier, desk: Desk, people: People) -> None:
        self._stage, self._plan, self._carrier, self._desk, self._people = stage, plan, carrier, desk, people
        self._guard = ProgressGuard()

    def steered(self) -> None:
        """A person spoke: what repeats is counted anew."""
        self._guard.reset()

    async def marked(self, line: MarkedLine) -> End | None:
        """The model's last line says that only a person can go on (rule H1)."""
        why = f"the model says: {line.kind}: {line.needed}"
        self._carrier.announce(Decision("ask", "human", why, self._stage.state.ledger, omits=False))
        return await self.hold(ev.HumanRequested(id="", kind=line.kind, needed=line.needed))

    async def check_progress(self, message: AssistantMessage, batch: BatchResult) -> End | None:
        """Name what goes in circles, and ask about it (rule L13)."""
        if not self._plan.policy.no_progress:
            return None
        calls = [(call.name, call.raw, "".join(map(repr, result.blocks))) for call, result in batch.results]
        repeat = self._guard.turn(calls, same_reply(message), ran=batch.ran)
        if repeat is None:
            return None
        stage = self._stage
        if repeat.times in (NAMED, ASKED):
            stage.emit(ev.NoProgress(**stage.stamp(), what=repeat.what, times=repeat.times, name=repeat.name))
        return await self._ask_about(repeat) if repeat.times >= ASKED else None

    async def _ask_about(self, repeat: Repeat) -> End | None:
        what = (
            f"the same call of {repeat.name} with the same result"
            if repeat.what == "call"
            else "the same reply"
        )
        why = f"{what} came {repeat.times} times in a row"
        question = ev.HumanRequested(
            id="", kind="decision", needed=f"{why}: go on, say something, or stop?", tool=NO_PROGRESS
        )
        if not self._desk.attended(question):
            return End("budget", bound="no_progress", error=why)
        self._carrier.announce(Decision("ask", "human", why, self._stage.state.ledger, omits=False))
        self._guard.reset()
        end = await self.hold(question)
        return (
            End("budget", bound="no_progress", error=why)
            if end is not None and end.outcome == "human-required"
            else end
        )

    async def hold(self, question: ev.HumanRequested) -> End | None:
        """Hold the run for a person (rule H2)."""
        answer = None
        with self._stage.interrupts.scope():
            try:
                answer = await self._people.question(question)
            except HumanAbsent as absent:
                return End("human-required", question=absent.question, error=absent.question.needed)
        if answer is not None and answer.how == "declined" and question.tool == NO_PROGRESS:
            return End("budget", bound="no_progress", error=question.needed)
        return interrupted(self._stage)
