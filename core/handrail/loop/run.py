"""The bounded loop (rules L, R). `Run.go` is the page to read; each step is a method below it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from handrail import events as ev
from handrail.human.ask import MarkedLine, marked_line
from handrail.human.desk import Desk, HumanAbsent
from handrail.loop import compaction
from handrail.loop.batch import Batch, BatchResult, Kit
from handrail.loop.bounds import Hit, forbids
from handrail.loop.pause import Pauser
from handrail.loop.people import People
from handrail.loop.progress import ASKED, NAMED, ProgressGuard, Repeat
from handrail.loop.projection import NO_PROGRESS
from handrail.loop.reply import Asker, Reply, same_reply
from handrail.loop.stage import Stage
from handrail.messages import AssistantMessage
from handrail.policy import RecoveryPolicy
from handrail.providers.base import Effort, Provider, Request, ToolChoice
from handrail.recovery import checkpoint as checkpoints
from handrail.recovery.classify import classify
from handrail.recovery.decide import PERMANENT, Decision, Facts, decide


@dataclass(slots=True)
class Plan:
    """What a run works with. A person may change the provider and the policy in mid-run; the next request sees it."""

    provider: Provider
    policy: RecoveryPolicy
    system: str = ""
    max_output: int | None = None
    effort: Effort | None = None
    tool_choice: ToolChoice = "auto"
    compact_now: bool = False


@dataclass(frozen=True, slots=True)
class End:
    """Why a run ends. `interrupted`: the program was told to end; there is no outcome yet (rule J7)."""

    outcome: ev.Outcome
    class_: str | None = None
    error: str | None = None
    bound: str | None = None
    until: float | None = None
    question: ev.HumanRequested | None = None
    text: str | None = None
    interrupted: bool = False


_GO_ON = None  # a step of the loop that found no reason to end


class Run:
    """One run on a stage, from a prompt to an outcome."""

    def __init__(
        self, stage: Stage, plan: Plan, kit: Kit, desk: Desk, people: People, keep: Callable[[Any], None]
    ) -> None:
        self._stage, self._plan, self._kit, self._desk, self._people, self._keep = (
            stage,
            plan,
            kit,
            desk,
            people,
            keep,
        )
        self.asker = Asker(stage)
        self.pauser = Pauser(stage, plan)
        self._guard = ProgressGuard()
        self._follow_up_due = False
        self._last_class: str | None = None
        specs = [tool.spec for tool in kit.tools.values()]
        self._specs = [*specs, kit.submit.spec] if kit.submit else specs

    async def go(self) -> End:
        """Turn after turn until something ends it. Never raises for what a model, a provider or a tool does."""
        end = await self._take_up()
        while end is _GO_ON:
            end = self._interrupted() or self._bounded() or await self._make_room()
            if end is not _GO_ON:
                break
            self._deliver()
            reply = await self._ask()
            batch = await self._batch(reply)
            end = await self._after(reply, batch)
        return replace(end, class_=end.class_ or self._last_class)

    # Before a request ------------------------------------------------------------------------------------------

    def _interrupted(self) -> End | None:
        cause = self._stage.interrupts.cause
        if cause == "suspend":
            return End("cancelled", interrupted=True)
        if cause == "stop":
            return End("cancelled", error="stopped by the person")
        if cause == "deadline":
            limit = self._stage.state.bounds.deadline_s
            return End("budget", bound="deadline_s", error=f"the deadline of {limit:g} s is reached")
        return None

    def _bounded(self) -> End | None:
        """Rule L1: checked before every request, whoever asked for it."""
        hit = forbids(self._stage)
        return _bound_end(hit) if hit else None

    def _deliver(self) -> None:
        """One message of the person enters with this request (rule L8)."""
        stage, queue = self._stage, self._stage.state.queue
        kind: Any = "steer" if queue.steering else "follow_up"
        lane = queue.steering or (queue.follow_ups if self._follow_up_due else ())
        self._follow_up_due = False
        if lane:
            stage.turn = None
            stage.emit(ev.Steered(**stage.stamp(), id=lane[0].id, text=lane[0].text, kind=kind))
            self._guard.reset()

    async def _make_room(self) -> End | None:
        """Compact when that was decided, asked for, or when the request is known not to fit (rule R14)."""
        stage, plan, state = self._stage, self._plan, self._stage.state
        window = plan.provider.model.window
        if not state.must_compact:
            asked, plan.compact_now = plan.compact_now, False
            may = plan.policy.enabled and plan.policy.compaction and state.ledger.compactions < 1
            full = may and compaction.overfull(stage.projection.messages, window, self._cap())
            if not (asked or full):
                return _GO_ON
            why = "asked for" if asked else "the next request would not fit the window"
            self._announce(_compact_first(state.ledger, why, by_person=asked))
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
        return await self._summarise(plan_of)

    async def _summarise(self, plan_of: compaction.Plan) -> End | None:
        stage = self._stage
        request = compaction.request(stage.projection.messages[: plan_of.older], self._plan.provider.model)
        reply = await self._ask(request, summary=True)
        ended = self._interrupted()
        if ended:
            return ended
        message = reply.message
        facts = self._facts(message, BatchResult())
        if message.stop_reason == "length" or facts.class_ in ("context_overflow", "output_truncated"):
            stage.emit(ev.CompactionFinished(**stage.stamp(), ok=False, why="the summary itself was cut"))
            return self._overflow_end("the summary itself was cut")
        if not facts.good:
            decision = decide(facts, stage.state.ledger, self._plan.policy, stage.clock.now())
            return (
                await self._carry_out(replace(decision, omits=False), facts)
                if decision
                else self._overflow_end("")
            )
        stage.emit(compaction.finished(plan_of, message.text, stage.stamp()))
        await stage.commit()
        if stage.state.poor_compactions >= 2:
            return self._overflow_end("two compactions in a row gained under 20 %")
        return self._bounded()

    def _overflow_end(self, why: str) -> End:
        self._last_class = "context_overflow"
        return self._bounded() or End(
            "provider", "context_overflow", error=why or "the request does not fit the window"
        )

    # The request -----------------------------------------------------------------------------------------------

    async def _ask(self, request: Request | None = None, *, summary: bool = False) -> Reply:
        stage, plan, state = self._stage, self._plan, self._stage.state
        stage.turn = state.requests + 1
        attempt = (state.pending or state.ledger).unbroken + 1
        if request is None:
            request = Request(
                stage.projection.request(),
                plan.system,
                self._specs,
                self._cap(),
                plan.tool_choice,
                plan.effort,
            )
        stage.emit(
            ev.TurnStarted(
                **stage.stamp(),
                purpose="summary" if summary else "task",
                attempt=attempt,
                checkpoint=stage.projection.has_checkpoint,
            )
        )
        await stage.commit()
        reply = await self.asker.ask(
            plan.provider,
            request,
            purpose="summary" if summary else "task",
            idle_s=plan.policy.idle_timeout_s,
        )
        await stage.commit()
        return reply

    def _cap(self) -> int | None:
        """The output cap to ask for."""
        return self._plan.max_output or self._plan.provider.model.max_output

    async def _batch(self, reply: Reply) -> BatchResult:
        calls = reply.message.calls
        if not calls or reply.cause == "suspend":
            return BatchResult()
        batch = Batch(self._stage, self._kit, self._people, self._keep)
        return await batch.run(calls, reply.message.stop_reason)

    # After a reply ---------------------------------------------------------------------------------------------

    async def _after(self, reply: Reply, batch: BatchResult) -> End | None:
        """What follows from a reply and its results: recovery first, then the loop's own rules."""
        self._finish_turn()
        message = reply.message
        end = self._ended_by_batch(batch)
        if end is not None:
            return end
        state = self._stage.state
        facts = self._facts(message, batch)
        tool_turn = bool(message.calls) and facts.good and not batch.ends
        if state.submitted is not None and not tool_turn:
            return End("submitted")
        decision = decide(
            facts,
            state.ledger,
            self._plan.policy,
            self._stage.clock.now(),
            steering=bool(state.queue.steering),
        )
        if decision is not None:
            return await self._carry_out(decision, facts)
        if tool_turn or message.stop_reason == "length":
            return await self._check_progress(message, batch)
        marked = None if message.calls else marked_line(message.text)
        if marked is not None:
            return await self._ask_marked(marked)
        return self._would_end(message)

    def _finish_turn(self) -> None:
        stage, state = self._stage, self._stage.state
        window = self._plan.provider.model.window
        usage = state.last.usage if state.last else None
        share = usage.context / window if usage and window else None
        cost = state.cost if self._plan.provider.model.price else None
        stage.emit(ev.TurnFinished(**stage.stamp(), usage=state.usage, cost=cost, context=share))

    def _ended_by_batch(self, batch: BatchResult) -> End | None:
        """The failures that outrank the rest, in the order of precedence (rule S7)."""
        cause = self._stage.interrupts.cause
        if cause == "suspend":
            return End("cancelled", interrupted=True)
        if batch.exhausted:
            attempts = self._stage.state.attempts
            return End("invalid-submissions", error=f"all {attempts} attempts to submit were invalid")
        if cause == "stop":
            return self._interrupted()
        if batch.absent is not None:
            return End("human-required", question=batch.absent, error=batch.absent.needed)
        return self._interrupted()

    def _facts(self, message: AssistantMessage, batch: BatchResult) -> Facts:
        model, usage = self._plan.provider.model, message.usage
        verdict = classify(message.failure, now=self._stage.clock.now()) if message.failure else None
        readable = checkpoints.readable(message)
        return Facts(
            stop_reason=message.stop_reason,
            blank=not message.text.strip(),
            calls=len(message.calls),
            verdict=verdict,
            failure=message.failure,
            tail=batch.ends and self._kit.submit is None,
            paused=message.stop_detail == "pause_turn",
            context=usage.context if usage else None,
            output=usage.output if usage else None,
            cap=self._cap(),
            window=model.window,
            chars=len(readable),
        )

    def _would_end(self, message: AssistantMessage) -> End | None:
        """The run would end here: only the queue goes on (rules L8, L12)."""
        queue = self._stage.state.queue
        if queue:
            self._follow_up_due = not queue.steering
            return _GO_ON
        if self._kit.submit is not None:
            return self._bounded() or End(
                "no-submit", text=message.text, error="the model ended without a submission"
            )
        return End("completed", text="" if message.calls else message.text)

    # Carrying a decision out -----------------------------------------------------------------------------------

    async def _carry_out(self, decision: Decision, facts: Facts) -> End | None:
        """Announce a decision, then do it. A bound that forbids its request ends the run now (rule L1)."""
        self._last_class = decision.class_ or self._last_class
        failed = decision.class_ not in PERMANENT and decision.class_ != "cancelled"
        counted = decision.delay_s if decision.kind in ("retry", "resume") else 0.0
        hit = forbids(self._stage, after_s=counted) if failed else None
        if hit is not None:
            decision = replace(
                decision, kind="finish", reason=hit.outcome, why=hit.why, delay_s=0.0, until=None, spent=None
            )
        self._announce(decision, facts)
        await self._stage.commit()
        if hit is not None:
            return _bound_end(hit)
        if decision.kind == "finish":
            return self._finish(decision, facts)
        if decision.delay_s > 0 and decision.until is not None:
            went_on = await self.pauser.pause(decision, facts)
            if not went_on:
                return self._interrupted() or self._finish(
                    replace(decision, why=f"{decision.why}; recovery was switched off"), facts
                )
        return _GO_ON

    def _announce(self, decision: Decision, facts: Facts | None = None) -> None:
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
        if class_ == "empty" and self._kit.submit is not None:
            return End("no-submit", class_, error)
        return End("provider", class_, error, until=until)

    # People ----------------------------------------------------------------------------------------------------

    async def _ask_marked(self, line: MarkedLine) -> End | None:
        """The model's last line says that only a person can go on (rule H1)."""
        why = f"the model says: {line.kind}: {line.needed}"
        self._announce(Decision("ask", "human", why, self._stage.state.ledger, omits=False))
        return await self._hold(ev.HumanRequested(id="", kind=line.kind, needed=line.needed))

    async def _check_progress(self, message: AssistantMessage, batch: BatchResult) -> End | None:
        """Name what goes in circles, and ask about it (rule L13)."""
        if not self._plan.policy.no_progress:
            return _GO_ON
        calls = [(call.name, call.raw, "".join(map(repr, result.blocks))) for call, result in batch.results]
        repeat = self._guard.turn(calls, same_reply(message), ran=batch.ran)
        if repeat is None:
            return _GO_ON
        stage = self._stage
        if repeat.times in (NAMED, ASKED):
            stage.emit(ev.NoProgress(**stage.stamp(), what=repeat.what, times=repeat.times, name=repeat.name))
        return await self._ask_about(repeat) if repeat.times >= ASKED else _GO_ON

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
        self._announce(Decision("ask", "human", why, self._stage.state.ledger, omits=False))
        self._guard.reset()
        end = await self._hold(question)
        return (
            End("budget", bound="no_progress", error=why)
            if end is not None and end.outcome == "human-required"
            else end
        )

    async def _hold(self, question: ev.HumanRequested) -> End | None:
        """Hold the run for a person (rule H2)."""
        answer = None
        with self._stage.interrupts.scope():
            try:
                answer = await self._people.question(question)
            except HumanAbsent as absent:
                return End("human-required", question=absent.question, error=absent.question.needed)
        if answer is not None and answer.how == "declined" and question.tool == NO_PROGRESS:
            return End("budget", bound="no_progress", error=question.needed)
        return self._interrupted()

    # Taking a stored run up ------------------------------------------------------------------------------------

    async def _take_up(self) -> End | None:
        """Go on where a stored run stood: a wait, an open question, a batch (rules U7, H6, J3)."""
        stage, state = self._stage, self._stage.state
        if state.wait is not None:
            if not await self.pauser.take_up(state.wait):
                return self._interrupted() or End("provider", error="recovery was switched off")
        elif stage.projection.batch_open and stage.projection.last_reply is not None:
            reply = stage.projection.last_reply
            batch = await Batch(stage, self._kit, self._people, self._keep).run(
                reply.calls, reply.stop_reason, resumed=True
            )
            return await self._after(Reply(reply), batch)
        elif loop_question := next((q for q in state.questions.values() if q.call_id is None), None):
            return await self._hold(loop_question)
        return _GO_ON


_LIMITS = {
    "continues": "max_resumes",
    "resumes": "stream_retries",
    "polls": "max_polls",
    "guided_waits": "max_guided_waits",
}


def _bound_end(hit: Hit) -> End:
    return End(hit.outcome, bound=hit.bound, error=hit.why)


def _compact_first(ledger: ev.Ledger, why: str, *, by_person: bool) -> Decision:
    after = replace(ledger, compactions=ledger.compactions + 1)
    return Decision("compact", "human" if by_person else "overflow", why, after, omits=False)


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
