"""When the loop itself asks a person: the model says it needs one, or it repeats itself (rules H1, L13)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Literal

from handrail import events as ev
from handrail.loop.calls import BatchResult
from handrail.loop.context import RunConfig, RunContext, RunEnd, interrupted
from handrail.loop.people import HumanAbsent, PendingAnswers, People
from handrail.loop.projection import NO_PROGRESS
from handrail.loop.recover import Recovery
from handrail.loop.request import reply_key
from handrail.messages import AssistantMessage
from handrail.recovery.decide import Decision
from handrail.tools.marked_line import MarkedLine

NAMED = 3  # repeats in a row until a notice names it
ASKED = 5  # repeats in a row until a person is asked


@dataclass(frozen=True, slots=True)
class Repeat:
    """A call or reply that came `times` in a row."""

    what: Literal["call", "reply"]
    name: str
    times: int


class ProgressGuard:
    """Counts how many turns in a row had the same call with the same result, or the same reply."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Start counting again, because a person spoke."""
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
    """Asks a person on behalf of the loop itself."""

    def __init__(
        self, ctx: RunContext, config: RunConfig, recovery: Recovery, answers: PendingAnswers, people: People
    ) -> None:
        self._ctx, self._config, self._recovery, self._answers, self._people = (
            ctx,
            config,
            recovery,
            answers,
            people,
        )
        self._guard = ProgressGuard()

    def steered(self) -> None:
        """A person spoke: repeats are counted from the start."""
        self._guard.reset()

    async def marked(self, line: MarkedLine) -> RunEnd | None:
        """The model's last line says that it needs a person (rule H1)."""
        why = f"the model says: {line.kind}: {line.needed}"
        self._recovery.announce(Decision("ask", "human", why, self._ctx.state.ledger, omits=False))
        return await self.ask(ev.HumanRequested(id="", kind=line.kind, needed=line.needed))

    async def check_progress(self, message: AssistantMessage, batch: BatchResult) -> RunEnd | None:
        """Name what repeats, and ask about it when it goes on (rule L13)."""
        if not self._config.policy.no_progress:
            return None
        calls = [(call.name, call.raw, "".join(map(repr, result.blocks))) for call, result in batch.results]
        repeat = self._guard.turn(calls, reply_key(message), ran=batch.ran)
        if repeat is None:
            return None
        ctx = self._ctx
        if repeat.times in (NAMED, ASKED):
            ctx.emit(ev.NoProgress(**ctx.stamp(), what=repeat.what, times=repeat.times, name=repeat.name))
        return await self._ask_about(repeat) if repeat.times >= ASKED else None

    async def _ask_about(self, repeat: Repeat) -> RunEnd | None:
        what = (
            f"the same call of {repeat.name} with the same result"
            if repeat.what == "call"
            else "the same reply"
        )
        why = f"{what} came {repeat.times} times in a row"
        question = ev.HumanRequested(
            id="", kind="decision", needed=f"{why}: go on, say something, or stop?", tool=NO_PROGRESS
        )
        if not self._answers.attended(question):
            return RunEnd("budget", bound="no_progress", error=why)
        self._recovery.announce(Decision("ask", "human", why, self._ctx.state.ledger, omits=False))
        self._guard.reset()
        end = await self.ask(question)
        return (
            RunEnd("budget", bound="no_progress", error=why)
            if end is not None and end.outcome == "human-required"
            else end
        )

    async def ask(self, question: ev.HumanRequested) -> RunEnd | None:
        """Pause the run until a person answers (rule H2)."""
        answer = None
        with self._ctx.interrupts.scope():
            try:
                answer = await self._people.question(question)
            except HumanAbsent as absent:
                return RunEnd("human-required", question=absent.question, error=absent.question.needed)
        if answer is not None and answer.how == "declined" and question.tool == NO_PROGRESS:
            return RunEnd("budget", bound="no_progress", error=question.needed)
        return interrupted(self._ctx)
