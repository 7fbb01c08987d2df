"""The bounded loop (rules L and R). Read `Run.run` first: it is the whole loop on one page.

Its steps are the methods below it, and the modules beside it: `request` streams a reply, `batch` runs its calls,
`recover` carries out decisions, `people` asks a person.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from handrail import events as ev
from handrail.instructions import with_servers
from handrail.loop.batch import ToolBatch
from handrail.loop.calls import BatchResult, ToolSet
from handrail.loop.context import RunConfig, RunContext, RunEnd, bounded, interrupted
from handrail.loop.people import Escalation, PendingAnswers, People
from handrail.loop.recover import Compactor, Recovery
from handrail.loop.request import ModelReply, is_rebuilt, rebuild_reply, stream_reply
from handrail.messages import AssistantMessage
from handrail.providers.base import Request
from handrail.recovery.decide import Decision, decide
from handrail.tools.marked_line import marked_line

_CONTINUE = None  # a step of the loop found no reason to end


class Run:
    """One run, from a prompt to an outcome. `on_submitted` receives the validated submission."""

    def __init__(
        self,
        ctx: RunContext,
        config: RunConfig,
        toolset: ToolSet,
        answers: PendingAnswers,
        people: People,
        on_submitted: Callable[[Any], None],
    ) -> None:
        self._ctx, self._config, self._toolset = ctx, config, toolset
        self._people, self._on_submitted = people, on_submitted
        self._recovery = Recovery(ctx, config, step=toolset.submit is not None)
        self._escalation = Escalation(ctx, config, self._recovery, answers, people)
        self._compactor = Compactor(ctx, config, self._recovery, self._request_summary)
        self._follow_up_due = False
        self._began = ctx.clock.now()

    def finish_partial_reply(self, pieces: Iterable[ev.MessageDelta]) -> None:
        """Publish a reply that was still streaming when the program exited, as far as it had come (rule J3)."""
        model = self._config.provider.model.name
        message = rebuild_reply(model, pieces, self._ctx.projection)
        self._ctx.emit(ev.MessageFinished(**self._ctx.stamp(), message=message))

    async def run(self) -> RunEnd:
        """Turn after turn until something ends the run. No model, provider or tool makes it raise."""
        ctx = self._ctx
        await self._wait_for_tools()
        end = await self._resume()
        while end is _CONTINUE:
            end = interrupted(ctx) or bounded(ctx) or await self._compactor.make_room()
            if end is not _CONTINUE:
                break
            self._deliver_queued()
            self._look_for_tools()
            await ctx.commit()  # what the person said is on disk before it is sent (rule J1)
            end = interrupted(ctx)
            if end is not _CONTINUE:
                break
            reply = await self._request_task()
            batch = await self._run_batch(reply)
            end = await self._decide(reply, batch)
        return replace(end, class_=end.class_ or self._recovery.last_class)

    def _deliver_queued(self) -> None:
        """Add at most one queued message of the person to this request (rule L8)."""
        ctx, queue = self._ctx, self._ctx.state.queue
        due, self._follow_up_due = self._follow_up_due, False
        if queue.steering:
            message = queue.steering[0]
            ctx.emit(ev.Steered(**ctx.stamp(), id=message.id, text=message.text, kind="steer"))
        elif due and queue.follow_ups:
            message = queue.follow_ups[0]
            ctx.emit(ev.Steered(**ctx.stamp(), id=message.id, text=message.text, kind="follow_up"))
        else:
            return
        self._escalation.steered()

    async def _request_task(self) -> ModelReply:
        config, specs = self._config, self._toolset.specs
        messages, system = self._ctx.projection.request(), config.system
        if self._toolset.source is not None:
            system = with_servers(system, self._toolset.source.instructions())
        request = Request(messages, system, specs, config.cap, config.tool_choice, config.effort)
        return await self._request(request, "task")

    async def _wait_for_tools(self) -> None:
        """Give servers that are starting a moment; a batch that continues needs all of them."""
        source = self._toolset.source
        if source is not None:
            with self._ctx.interrupts.scope():
                await source.settle(patiently=self._ctx.projection.batch_open)
            self._look_for_tools()

    def _look_for_tools(self) -> None:
        """Offer the tools that servers have now, and say what changed."""
        ctx, toolset = self._ctx, self._toolset
        for change in toolset.look():
            of = sum(1 for tool in toolset.tools.values() if getattr(tool, "server", None) == change.server)
            ctx.emit(
                ev.ToolsChanged(
                    **ctx.stamp(),
                    server=change.server,
                    state=change.state,
                    added=change.added,
                    removed=change.removed,
                    of=of,
                    why=change.why,
                )
            )

    async def _request_summary(self, request: Request) -> ModelReply:
        reply = await self._request(request, "summary")
        self._finish_turn()
        return reply

    async def _request(self, request: Request, purpose: Any) -> ModelReply:
        ctx, config, state = self._ctx, self._config, self._ctx.state
        ctx.turn = state.requests + 1
        self._began = ctx.clock.now()
        attempt = (state.pending or state.ledger).unbroken + 1
        ctx.emit(
            ev.TurnStarted(
                **ctx.stamp(),
                purpose=purpose,
                attempt=attempt,
                checkpoint=ctx.projection.has_checkpoint,
            )
        )
        idle_s = config.policy.idle_timeout_s
        reply = await stream_reply(ctx, config.provider, request, purpose=purpose, idle_s=idle_s)
        await ctx.commit()
        return reply

    async def _run_batch(self, reply: ModelReply) -> BatchResult:
        calls = reply.message.calls
        if not calls or reply.cause == "suspend":
            return BatchResult()
        batch = ToolBatch(self._ctx, self._toolset, self._people, self._on_submitted)
        return await batch.run(calls, reply.message.stop_reason)

    async def _decide(self, reply: ModelReply, batch: BatchResult) -> RunEnd | None:
        """Decide what follows a reply and its results, and do it: recovery first, then the loop's own rules."""
        self._finish_turn()
        ctx, state, message = self._ctx, self._ctx.state, reply.message
        end = self._ended_by_batch(batch)
        if end is not None:
            return end
        if message.calls and message.stop_reason == "length" and not self._config.policy.enabled:
            return _CONTINUE  # a tool turn: the results say that the calls were not run (rule L4)
        facts = self._recovery.facts(message, ends=batch.ends)
        tool_turn = bool(message.calls) and facts.good and not batch.ends
        if state.submitted is not None and not tool_turn:
            return RunEnd("submitted")
        steering = bool(state.queue.steering)
        decision = decide(facts, state.ledger, self._config.policy, ctx.clock.now(), steering=steering)
        if decision is not None:
            return await self._recovery.carry_out(decision, facts)
        if tool_turn:
            return await self._escalation.check_progress(message, batch)
        marked = None if message.calls else marked_line(message.text)
        if marked is not None:
            return await self._escalation.marked(marked)
        return self._end_unless_queued(message)

    def _ended_by_batch(self, batch: BatchResult) -> RunEnd | None:
        """The ends that take precedence over everything else, in their order (rule S7)."""
        cause = self._ctx.interrupts.cause
        if batch.exhausted and cause != "suspend":
            attempts = self._ctx.state.attempts
            return RunEnd("invalid-submissions", error=f"all {attempts} attempts to submit were invalid")
        if batch.absent is not None and cause not in ("suspend", "stop"):
            return RunEnd("human-required", question=batch.absent, error=batch.absent.needed)
        return interrupted(self._ctx)

    def _end_unless_queued(self, message: AssistantMessage) -> RunEnd | None:
        """The end of the run, unless messages are queued (rules L8, L12)."""
        queue = self._ctx.state.queue
        if queue:
            self._follow_up_due = True
            return _CONTINUE
        if self._toolset.submit is not None:
            error = "the model ended without a submission"
            return bounded(self._ctx) or RunEnd("no-submit", text=message.text, error=error)
        return RunEnd("completed", text="" if message.calls else message.text)

    def _finish_turn(self) -> None:
        """Publish the sums so far."""
        ctx, state, model = self._ctx, self._ctx.state, self._config.provider.model
        usage = state.last.usage if state.last else None
        share = usage.context / model.window if usage and model.window else None
        cost = state.cost if model.price else None
        seconds = ctx.since(self._began)
        ctx.emit(ev.TurnFinished(**ctx.stamp(), seconds=seconds, usage=state.usage, cost=cost, context=share))

    async def _resume(self) -> RunEnd | None:
        """Continue where a stored run stopped: in a wait, an open question, a batch (rules U7, H6, J3)."""
        ctx, state, last = self._ctx, self._ctx.state, self._ctx.projection.last_reply
        if state.wait is not None:
            if await self._recovery.backoff.resume(state.wait):
                return _CONTINUE
            return interrupted(ctx) or RunEnd("provider", error="recovery was switched off")
        if last is not None and (ctx.projection.batch_open or not state.settled):
            batch = await self._rest_of_batch(last)
            return self._ask_again(last) if is_rebuilt(last) else await self._decide(ModelReply(last), batch)
        question = next((q for q in state.questions.values() if q.call_id is None), None)
        return await self._escalation.ask(question) if question is not None else _CONTINUE

    def _ask_again(self, partial: AssistantMessage) -> RunEnd | None:
        """The program exited while this reply was streaming: make the request again, with the partial reply as the
        checkpoint. It costs no allowance, since the provider did not fail (rules J3, R10)."""
        why = "the program ended while the reply was streaming"
        decision = Decision("resume", "transient", why, self._ctx.state.ledger, "transient")
        self._recovery.announce(decision, self._recovery.facts(partial))
        return interrupted(self._ctx)

    async def _rest_of_batch(self, last: AssistantMessage) -> BatchResult:
        """Run what is left of the batch of a stored run's last reply."""
        ctx, state = self._ctx, self._ctx.state
        if ctx.projection.batch_open:
            batch = ToolBatch(ctx, self._toolset, self._people, self._on_submitted)
            return await batch.run(last.calls, last.stop_reason, resumed=True)
        exhausted = self._toolset.submit is not None and state.attempts >= state.bounds.max_attempts
        known = state.last_batch
        return BatchResult(ends=known is not None and known.ends, exhausted=exhausted)
