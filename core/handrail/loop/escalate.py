"""The guard against going in circles (rule L13)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Literal

from handrail import events as ev
from handrail.loop.batch import BatchResult
from handrail.loop.context import End, RunConfig, RunContext, interrupted
from handrail.loop.people import HumanAbsent, PendingAnswers, People
from handrail.loop.projection import NO_PROGRESS
from handrail.loop.recover import Recovery
from handrail.loop.request import same_reply
from handrail.messages import AssistantMessage
from handrail.recovery.decide import Decision
from handrail.tools.ask_human import MarkedLine

NAMED = 3  # times in a row until it is named
ASKED = 5  # times in a row until a person is asked


@dataclass(frozen=True, slots=True)
class Repeat:
    """Something that came `times` in a row."""

    what: Literal["call", "reply"]
    name: str
    times: int


class ProgressGuard:
    """Counts in how many turns in a row the same call had the same result, or the same reply came."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """A person spoke, or asked to go on: count anew."""
        self._calls: dict[tuple[str, str, str], int] = {}
        self._reply: Hashable = None
        self._replies = 0

    def turn(self, calls: Iterable[tuple[str, str, str]], reply: Hashable, *, ran: bool) -> Repeat | None:
        """Note one good turn: its calls as (name, raw arguments, result text) and the reply. A reply only counts when
        no tool ran: a call whose results change is progress. Returns what repeats at least three times, worst first.
        """
        seen = {key: self._calls.get(key, 0) + 1 for key in calls}
        self._calls = seen
        same = reply == self._reply and not ran
        self._replies = self._replies + 1 if same else 1
        self._reply = reply
        repeats = [Repeat("call", key[0], times) for key, times in seen.items()]
        if not ran:
            repeats.append(Repeat("reply", "", self._replies))
        worst = max(repeats, key=lambda r: r.times, default=None)
        return worst if worst is not None and worst.times >= NAMED else None


class Escalation:
    """Asks on behalf of the loop itself."""

    def __init__(
        self, stage: RunContext, plan: RunConfig, recovery: Recovery, desk: PendingAnswers, people: People
    ) -> None:
        self._stage, self._plan, self._recovery, self._desk, self._people = (
            stage,
            plan,
            recovery,
            desk,
            people,
        )
        self._guard = ProgressGuard()

    def steered(self) -> None:
        """A person spoke: what repeats is counted anew."""
        self._guard.reset()

    async def marked(self, line: MarkedLine) -> End | None:
        """The model's last line says that only a person can go on (rule H1)."""
        why = f"the model says: {line.kind}: {line.needed}"
        self._recovery.announce(Decision("ask", "human", why, self._stage.state.ledger, omits=False))
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
        self._recovery.announce(Decision("ask", "human", why, self._stage.state.ledger, omits=False))
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
