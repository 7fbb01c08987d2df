"""The loop's side of asking a person: questions and approvals as events, answers awaited (rules H2 to H6)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from handrail import events as ev
from handrail.loop.context import RunContext
from handrail.messages import ToolCall
from handrail.tools.base import Preview

How: TypeAlias = Literal["resolved", "answered", "declined", "stopped"]
Verdict: TypeAlias = Literal["once", "session", "deny"]
Asked: TypeAlias = ev.HumanRequested | ev.ApprovalRequested


class HumanAbsent(Exception):
    """Nobody is there to answer; the question stays open (rule H4)."""

    def __init__(self, question: ev.HumanRequested) -> None:
        super().__init__(question.needed)
        self.question = question


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person said. `text` may be secret: it goes to who asked and nowhere else."""

    how: str
    text: str = ""
    secret: bool = False


class PendingAnswers:
    """Open questions and approvals by id, each waited for by one coroutine.

    `attended` tells whether somebody is there to answer this one. A test or a scripted person answers through the
    session like anybody else.
    """

    def __init__(self, attended: Callable[[Asked], bool]) -> None:
        self.attended = attended
        self._waiting: dict[str, asyncio.Future[Answer]] = {}

    def open(self, id: str) -> None:
        """From now on `id` can be answered: before anybody hears of the question."""
        self._waiting[id] = asyncio.get_running_loop().create_future()

    def close(self, id: str) -> None:
        """Nobody waits for `id` any more."""
        self._waiting.pop(id, None)

    async def wait(self, id: str) -> Answer:
        """Return when the person has answered `id`, which must be open."""
        try:
            return await self._waiting[id]
        finally:
            self.close(id)

    def is_open(self, id: str) -> bool:
        future = self._waiting.get(id)
        return future is not None and not future.done()

    def answer(self, id: str, answer: Answer) -> bool:
        """Hand an answer in. False when nothing of that id is open."""
        future = self._waiting.get(id)
        if future is None or future.done():
            return False
        future.set_result(answer)
        return True


class People:
    """Asks on a stage. What was asked and not answered before a restart is asked again under its old id (rule H6)."""

    def __init__(self, stage: RunContext, desk: PendingAnswers) -> None:
        self._stage, self._desk = stage, desk
        self._number = 0
        self.prepared: Answer | None = None  # the answer that a resumed run brings along (rule H4)

    def numbered_by(self, event: ev.Event) -> None:
        """Go on numbering after a stored run."""
        if isinstance(event, ev.HumanRequested | ev.ApprovalRequested) and event.id[1:].isdigit():
            self._number = max(self._number, int(event.id[1:]))

    async def question(self, question: ev.HumanRequested) -> Answer:
        """Hold for the person. `question.id` may be empty: it gets one. Raises HumanAbsent when nobody is there."""
        stage = self._stage
        known = stage.state.take_answer(lambda asked: _same(asked, question))
        if known is not None:  # a restart does not ask what was answered (rule H6)
            return Answer(known.how, known.text)
        asked_before = next((q for q in stage.state.questions.values() if _same(q, question)), None)
        event = asked_before or replace(question, id=self._next("q"))
        event = replace(event, **stage.stamp())
        if self.prepared is not None:
            answer, self.prepared = self.prepared, None
            stage.emit(ev.HumanAnswered(**stage.stamp(), id=event.id, how="answered", text=answer.text))
            await stage.commit()
            return answer
        self._desk.open(event.id)
        stage.emit(event)
        await stage.commit()
        if not self._desk.attended(event):
            self._desk.close(event.id)
            raise HumanAbsent(event)
        try:
            answer = await self._desk.wait(event.id)
        except asyncio.CancelledError:
            if stage.interrupts.cause in ("stop", "deadline"):
                stage.emit(ev.HumanAnswered(**stage.stamp(), id=event.id, how="stopped"))
            raise
        stage.state.take_answer(lambda asked: asked.id == event.id)  # delivered: the same may be asked anew
        await stage.commit()
        return answer

    async def approval(self, call: ToolCall, preview: Preview, why: str) -> Answer:
        """Ask whether `call` may run. The answer's `how` is once, session, deny, or nobody (rule H5)."""
        stage = self._stage
        answered = stage.state.approved.get(call.id)
        if answered is not None:
            return Answer(answered.how, answered.text)
        asked_before = next((a for a in stage.state.approvals.values() if a.call_id == call.id), None)
        event = ev.ApprovalRequested(
            **stage.stamp(),
            id=asked_before.id if asked_before else self._next("a"),
            call_id=call.id,
            tool=call.name,
            title=preview.title,
            detail=preview.detail,
            arguments=call.arguments,
            diff=preview.diff,
            why=why,
            pattern=preview.pattern,
        )
        self._desk.open(event.id)
        stage.emit(event)
        await stage.commit()
        if not self._desk.attended(event):
            self._desk.close(event.id)
            stage.emit(ev.ApprovalAnswered(**stage.stamp(), id=event.id, how="nobody"))
            return Answer("nobody")
        try:
            answer = await self._desk.wait(event.id)
        except asyncio.CancelledError:
            if stage.interrupts.cause in ("stop", "deadline"):
                stage.emit(ev.ApprovalAnswered(**stage.stamp(), id=event.id, how="stopped"))
            raise
        await stage.commit()
        return answer

    def _next(self, letter: str) -> str:
        self._number += 1
        return f"{letter}{self._number}"


def _same(old: ev.HumanRequested, new: ev.HumanRequested) -> bool:
    return (old.call_id, old.kind, old.needed, old.where) == (new.call_id, new.kind, new.needed, new.where)
