"""Asking a person: questions and approvals go out as events, and their answers are awaited (rules H2 to H6).

`Escalation` asks on behalf of the loop itself: the marked line, and a run that makes no progress (rules H1, L13).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from handrail import events as ev
from handrail.forms import FormError, read_answer
from handrail.loop.calls import BatchResult
from handrail.loop.context import RunConfig, RunContext, RunEnd, interrupted
from handrail.loop.projection import NO_PROGRESS, answer_text
from handrail.loop.recover import Recovery
from handrail.loop.request import reply_key
from handrail.messages import AssistantMessage, ToolCall, clean
from handrail.recovery.decide import Decision
from handrail.tools.base import WITHDRAWN, AskForm, Form, FormAnswer, Preview, ToolError
from handrail.tools.marked_line import MarkedLine

AnswerKind: TypeAlias = Literal["resolved", "answered", "declined", "cancelled", "stopped"]
ApprovalChoice: TypeAlias = Literal["once", "session", "deny"]
HumanQuestion: TypeAlias = ev.HumanRequested | ev.ApprovalRequested


class HumanAbsent(Exception):
    """Nobody is there to answer; the question stays open (rule H4)."""

    def __init__(self, question: ev.HumanRequested) -> None:
        super().__init__(question.needed)
        self.question = question


@dataclass(frozen=True, slots=True)
class HumanAnswer:
    """What a person answered. A secret `text` goes only to the tool that asked."""

    how: str
    text: str = ""
    secret: bool = False


class PendingAnswers:
    """Open questions and approvals by id. One coroutine awaits each.

    `attended(question)` says whether somebody is there to answer. Tests answer through the session, as people do.
    """

    def __init__(self, attended: Callable[[HumanQuestion], bool]) -> None:
        self.attended = attended
        self._waiting: dict[str, asyncio.Future[HumanAnswer]] = {}

    def open(self, id: str) -> None:
        """Allow `id` to be answered. Call it before the question is published."""
        self._waiting[id] = asyncio.get_running_loop().create_future()

    def close(self, id: str) -> None:
        """Forget `id`: its answer is no longer awaited."""
        self._waiting.pop(id, None)

    async def wait(self, id: str) -> HumanAnswer:
        """Wait until the person has answered `id`, which must be open."""
        try:
            return await self._waiting[id]
        finally:
            self.close(id)

    def is_open(self, id: str) -> bool:
        future = self._waiting.get(id)
        return future is not None and not future.done()

    def answer(self, id: str, answer: HumanAnswer) -> bool:
        """Deliver an answer. False when no question with that id is open."""
        future = self._waiting.get(id)
        if future is None or future.done():
            return False
        future.set_result(answer)
        return True


class People:
    """Asks on behalf of a run. A question left open by a restart is asked again under its old id (rule H6)."""

    def __init__(self, ctx: RunContext, answers: PendingAnswers) -> None:
        self._ctx, self._answers = ctx, answers
        self._number = 0
        self.prepared: HumanAnswer | None = None  # given with the command to resume (rule H4)

    def continue_numbering(self, event: ev.Event) -> None:
        """Continue the numbering of a stored run."""
        if isinstance(event, ev.HumanRequested | ev.ApprovalRequested) and event.id[1:].isdigit():
            self._number = max(self._number, int(event.id[1:]))

    async def question(self, question: ev.HumanRequested) -> HumanAnswer:
        """Pause the run until the person answers. An empty `question.id` is filled in. Raises HumanAbsent (rule H4)."""
        ctx = self._ctx
        known = ctx.state.take_answer(lambda asked: _same(asked, question))
        if known is not None:  # what was answered is not asked again after a restart (rule H6)
            return HumanAnswer(known.how, known.text)
        asked_before = next((q for q in ctx.state.questions.values() if _same(q, question)), None)
        event = asked_before or replace(question, id=self._next("q"))
        event = replace(event, **ctx.stamp())
        if self.prepared is not None:
            answer, self.prepared = self.prepared, None
            ctx.emit(ev.HumanAnswered(**ctx.stamp(), id=event.id, how="answered", text=answer.text))
            await ctx.commit()
            return answer
        self._answers.open(event.id)
        ctx.emit(event)
        await ctx.commit()
        if not self._answers.attended(event):
            self._answers.close(event.id)
            raise HumanAbsent(event)
        try:
            answer = await self._answers.wait(event.id)
        except asyncio.CancelledError as cancelled:
            if ctx.interrupts.cause in ("stop", "deadline"):
                ctx.emit(ev.HumanAnswered(**ctx.stamp(), id=event.id, how="stopped"))
            elif WITHDRAWN in cancelled.args:
                ctx.emit(ev.HumanAnswered(**ctx.stamp(), id=event.id, how="withdrawn"))
            raise
        ctx.state.take_answer(
            lambda asked: asked.id == event.id
        )  # delivered: the same question may be asked again
        await ctx.commit()
        return answer

    async def approval(
        self, call: ToolCall, preview: Preview, why: str, *, again: bool = False
    ) -> HumanAnswer:
        """Ask whether `call` may run. The answer's `how` is once, session, deny, or nobody (rule H5).

        An answer from before a restart counts if it was given to what the preview shows now, and not `again` (H6, H7).
        """
        ctx = self._ctx
        asked, answered = ctx.state.approved.get(call.id, (None, None))
        if answered is not None and not again and (answered.how == "deny" or _shows_same(asked, preview)):
            return HumanAnswer(answered.how, answered.text)
        asked_before = next((a for a in ctx.state.approvals.values() if a.call_id == call.id), None)
        event = ev.ApprovalRequested(
            **ctx.stamp(),
            id=asked_before.id if asked_before else self._next("a"),
            call_id=call.id,
            tool=call.name,
            title=preview.title,
            detail=preview.detail,
            arguments=call.arguments,
            diff=preview.diff,
            why=why,
            pattern=preview.pattern,
            covers=preview.covers,
            asks_again=preview.asks_again,
        )
        self._answers.open(event.id)
        ctx.emit(event)
        await ctx.commit()
        if not self._answers.attended(event):
            self._answers.close(event.id)
            ctx.emit(ev.ApprovalAnswered(**ctx.stamp(), id=event.id, how="nobody"))
            return HumanAnswer("nobody")
        try:
            answer = await self._answers.wait(event.id)
        except asyncio.CancelledError:
            if ctx.interrupts.cause in ("stop", "deadline"):
                ctx.emit(ev.ApprovalAnswered(**ctx.stamp(), id=event.id, how="stopped"))
            raise
        await ctx.commit()
        return answer

    def asker(self, call: ToolCall) -> Callable[..., Awaitable[str]]:
        """The function through which the tool of this call may ask a person (rule H1)."""

        async def ask(
            needed: str, *, kind: str = "information", where: str = "", tried: str = "", secret: bool = False
        ) -> str:
            question = ev.HumanRequested(
                id="",
                kind=kind,  # type: ignore[arg-type]
                needed=clean(needed),
                where=clean(where),
                tried=clean(tried),
                call_id=call.id,
                tool=call.name,
                secret=secret,
            )
            answer = await self.question(question)
            if secret and answer.how == "declined":
                raise ToolError(answer_text(answer.how, answer.text))
            return answer.text if secret else answer_text(answer.how, answer.text, answer.secret)

        return ask

    def form_asker(self, call: ToolCall) -> AskForm:
        """The function through which the tool of this call may ask for typed answers (rule H1)."""

        async def ask(form: Form) -> FormAnswer:
            question = ev.HumanRequested(
                id="",
                kind=form.kind,
                needed=clean(form.needed),
                where=clean(form.where),
                call_id=call.id,
                tool=call.name,
                fields=form.fields,
                resume=dict(form.resume) if form.resume is not None else None,
            )
            while True:
                answer = await self.question(question)
                if answer.how == "declined":
                    return FormAnswer("decline", text=answer.text)
                if answer.how not in ("resolved", "answered"):
                    return FormAnswer("cancel")
                try:
                    return FormAnswer("accept", read_answer(form.fields, answer.text), answer.text)
                except (
                    FormError
                ) as error:  # given with the command to resume, before anybody could look at it
                    question = replace(question, tried=f"the answer did not fit: {error}")

        return ask

    def _next(self, letter: str) -> str:
        self._number += 1
        return f"{letter}{self._number}"


def _shows_same(asked: ev.ApprovalRequested | None, preview: Preview) -> bool:
    return asked is not None and (asked.title, asked.detail, asked.diff) == (
        preview.title,
        preview.detail,
        preview.diff,
    )


def _same(old: ev.HumanRequested, new: ev.HumanRequested) -> bool:
    return (old.call_id, old.kind, old.needed, old.where, old.fields) == (
        new.call_id,
        new.kind,
        new.needed,
        new.where,
        new.fields,
    )


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
