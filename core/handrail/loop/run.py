"""The bounded loop (rules L, R). `Run.go` is the page to read; its steps are methods below it or parts beside
it: `room` (compaction), `reply` (one request), `batch` (its calls), `carry` (decisions), `hold` (people)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from handrail import events as ev
from handrail.loop.batch import Batch, BatchResult, ToolSet
from handrail.loop.context import End, RunConfig, RunContext, bounded, interrupted
from handrail.loop.escalate import Escalation
from handrail.loop.people import PendingAnswers, People
from handrail.loop.recover import Compactor, Recovery
from handrail.loop.request import Asker, Reply, is_lost
from handrail.messages import AssistantMessage
from handrail.providers.base import Request
from handrail.recovery.decide import Decision, decide
from handrail.tools.ask_human import marked_line

_GO_ON = None  # a step of the loop that found no reason to end


class Run:
    """One run on a stage, from a prompt to an outcome. `keep` is told the validated submission."""

    def __init__(
        self,
        stage: RunContext,
        plan: RunConfig,
        kit: ToolSet,
        desk: PendingAnswers,
        people: People,
        keep: Callable[[Any], None],
    ) -> None:
        self._stage, self._plan, self._kit, self._people, self._keep = stage, plan, kit, people, keep
        self.asker = Asker(stage)
        self._recovery = Recovery(stage, plan, step=kit.submit is not None)
        self._escalation = Escalation(stage, plan, self._recovery, desk, people)
        self._compactor = Compactor(stage, plan, self._recovery, self._ask_summary)
        self.backoff = self._recovery.backoff
        self._follow_up_due = False
        self._began = stage.clock.now()
        specs = [tool.spec for tool in kit.tools.values()]
        self._specs = [*specs, kit.submit.spec] if kit.submit else specs

    def take_up_pieces(self, pieces: Iterable[ev.MessageDelta]) -> None:
        """A reply that the program did not live to finish, as far as it came (rule J3)."""
        message = self.asker.rebuild(self._plan.provider.model.name, pieces)
        self._stage.emit(ev.MessageFinished(**self._stage.stamp(), message=message))

    async def go(self) -> End:
        """Turn after turn until something ends it. Never raises for what a model, a provider or a tool does."""
        stage = self._stage
        end = await self._take_up()
        while end is _GO_ON:
            end = interrupted(stage) or bounded(stage) or await self._compactor.make_room()
            if end is not _GO_ON:
                break
            self._deliver()
            await stage.commit()  # what the person said is on the disk before it is sent (rule J1)
            end = interrupted(stage)
            if end is not _GO_ON:
                break
            reply = await self._ask()
            batch = await self._batch(reply)
            end = await self._after(reply, batch)
        return replace(end, class_=end.class_ or self._recovery.last_class)

    def _deliver(self) -> None:
        """One message of the person enters with this request (rule L8)."""
        stage, queue = self._stage, self._stage.state.queue
        due, self._follow_up_due = self._follow_up_due, False
        if queue.steering:
            message = queue.steering[0]
            stage.emit(ev.Steered(**stage.stamp(), id=message.id, text=message.text, kind="steer"))
        elif due and queue.follow_ups:
            message = queue.follow_ups[0]
            stage.emit(ev.Steered(**stage.stamp(), id=message.id, text=message.text, kind="follow_up"))
        else:
            return
        self._escalation.steered()

    async def _ask(self) -> Reply:
        plan = self._plan
        messages = self._stage.projection.request()
        request = Request(messages, plan.system, self._specs, plan.cap, plan.tool_choice, plan.effort)
        return await self._request(request, "task")

    async def _ask_summary(self, request: Request) -> Reply:
        reply = await self._request(request, "summary")
        self._finish_turn()
        return reply

    async def _request(self, request: Request, purpose: Any) -> Reply:
        stage, plan, state = self._stage, self._plan, self._stage.state
        stage.turn = state.requests + 1
        self._began = stage.clock.now()
        attempt = (state.pending or state.ledger).unbroken + 1
        stage.emit(
            ev.TurnStarted(
                **stage.stamp(),
                purpose=purpose,
                attempt=attempt,
                checkpoint=stage.projection.has_checkpoint,
            )
        )
        reply = await self.asker.ask(
            plan.provider, request, purpose=purpose, idle_s=plan.policy.idle_timeout_s
        )
        await stage.commit()
        return reply

    async def _batch(self, reply: Reply) -> BatchResult:
        calls = reply.message.calls
        if not calls or reply.cause == "suspend":
            return BatchResult()
        batch = Batch(self._stage, self._kit, self._people, self._keep)
        return await batch.run(calls, reply.message.stop_reason)

    async def _after(self, reply: Reply, batch: BatchResult) -> End | None:
        """What follows from a reply and its results: recovery first, then the loop's own rules."""
        self._finish_turn()
        stage, state, message = self._stage, self._stage.state, reply.message
        end = self._ended_by_batch(batch)
        if end is not None:
            return end
        if message.calls and message.stop_reason == "length" and not self._plan.policy.enabled:
            return _GO_ON  # a tool turn: its calls were not run and the model is told so (rule L4)
        facts = self._recovery.facts(message, ends=batch.ends)
        tool_turn = bool(message.calls) and facts.good and not batch.ends
        if state.submitted is not None and not tool_turn:
            return End("submitted")
        steering = bool(state.queue.steering)
        decision = decide(facts, state.ledger, self._plan.policy, stage.clock.now(), steering=steering)
        if decision is not None:
            return await self._recovery.carry_out(decision, facts)
        if tool_turn:
            return await self._escalation.check_progress(message, batch)
        marked = None if message.calls else marked_line(message.text)
        if marked is not None:
            return await self._escalation.marked(marked)
        return self._would_end(message)

    def _ended_by_batch(self, batch: BatchResult) -> End | None:
        """The failures that outrank the rest, in the order of precedence (rule S7)."""
        cause = self._stage.interrupts.cause
        if batch.exhausted and cause != "suspend":
            attempts = self._stage.state.attempts
            return End("invalid-submissions", error=f"all {attempts} attempts to submit were invalid")
        if batch.absent is not None and cause not in ("suspend", "stop"):
            return End("human-required", question=batch.absent, error=batch.absent.needed)
        return interrupted(self._stage)

    def _would_end(self, message: AssistantMessage) -> End | None:
        """The run would end here: only the queue goes on (rules L8, L12)."""
        queue = self._stage.state.queue
        if queue:
            self._follow_up_due = True
            return _GO_ON
        if self._kit.submit is not None:
            error = "the model ended without a submission"
            return bounded(self._stage) or End("no-submit", text=message.text, error=error)
        return End("completed", text="" if message.calls else message.text)

    def _finish_turn(self) -> None:
        """Sums so far."""
        stage, state, model = self._stage, self._stage.state, self._plan.provider.model
        usage = state.last.usage if state.last else None
        share = usage.context / model.window if usage and model.window else None
        cost = state.cost if model.price else None
        seconds = stage.since(self._began)
        stage.emit(
            ev.TurnFinished(**stage.stamp(), seconds=seconds, usage=state.usage, cost=cost, context=share)
        )

    async def _take_up(self) -> End | None:
        """Go on where a stored run stood: a wait, an open question, a batch (rules U7, H6, J3)."""
        stage, state, last = self._stage, self._stage.state, self._stage.projection.last_reply
        if state.wait is not None:
            if await self.backoff.resume(state.wait):
                return _GO_ON
            return interrupted(stage) or End("provider", error="recovery was switched off")
        if last is not None and (stage.projection.batch_open or not state.settled):
            batch = await self._rest_of_batch(last)
            return self._ask_anew(last) if is_lost(last) else await self._after(Reply(last), batch)
        question = next((q for q in state.questions.values() if q.call_id is None), None)
        return await self._escalation.hold(question) if question is not None else _GO_ON

    def _ask_anew(self, lost: AssistantMessage) -> End | None:
        """The program ended while this reply was streaming: the same task is asked again, with what it had said as the
        checkpoint. It costs no allowance: nothing of the provider failed (rules J3, R10)."""
        why = "the program ended while the reply was streaming"
        decision = Decision("resume", "transient", why, self._stage.state.ledger, "transient")
        self._recovery.announce(decision, self._recovery.facts(lost))
        return interrupted(self._stage)

    async def _rest_of_batch(self, last: AssistantMessage) -> BatchResult:
        """The batch of a stored run's last reply: what is left of it runs now."""
        stage, state = self._stage, self._stage.state
        if stage.projection.batch_open:
            batch = Batch(stage, self._kit, self._people, self._keep)
            return await batch.run(last.calls, last.stop_reason, resumed=True)
        exhausted = self._kit.submit is not None and state.attempts >= state.bounds.max_attempts
        known = state.last_batch
        return BatchResult(ends=known is not None and known.ends, exhausted=exhausted)
