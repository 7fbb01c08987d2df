"""The loop's side of asking a person: questions and approvals as events, answers awaited (rules H2 to H6)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from handrail import events as ev
from handrail.human.desk import Answer, Desk, HumanAbsent
from handrail.loop.stage import Stage
from handrail.messages import ToolCall
from handrail.tools.base import Preview


class People:
    """Asks on a stage. What was asked and not answered before a restart is asked again under its old id (rule H6)."""

    def __init__(self, stage: Stage, desk: Desk) -> None:
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
