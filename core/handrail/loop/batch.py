"""One tool batch: every call of a reply gets exactly one result, in call order (rules L4 to L7, S2 to S6).

First submissions are judged, then the other calls are validated and approved, all in call order; only then do tools
start. A stop ends the running tools and gives the other calls a result that says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from handrail import events as ev
from handrail.loop.calls import BatchResult, PendingCall, ToolSet
from handrail.loop.context import Interrupts, RunContext
from handrail.loop.people import HumanAbsent, People
from handrail.loop.projection import UNKNOWN
from handrail.messages import Text, ToolCall, clean, text_of
from handrail.output.types import InvalidSubmission
from handrail.tools.approval import why_allowed, why_ask
from handrail.tools.ask_human import NAME as ASK_HUMAN
from handrail.tools.base import (
    InvalidArguments,
    Preview,
    ShownChanged,
    Tool,
    ToolContext,
    ToolError,
    ToolResult,
)

NOT_EXECUTED = "not executed: {why}. Send the call again, whole, if it is still needed."
_LOOKS = 5  # how often a call is previewed again because what it showed has changed
MAX_ARGUMENTS = 8_000_000  # characters of one call's arguments
GRACE_S = 5.0  # how long a stopped tool may take to end what it started
_CUT = {
    "length": "the reply was cut off at the output cap",
    "refusal": "the reply was a refusal",
    "error": "the reply broke off",
    "aborted": "the reply was stopped",
}
_BY = {
    "stop": "the person stopped the run",
    "deadline": "the run's deadline was reached",
    "suspend": "the program was told to exit",
}


class ToolBatch:
    """Runs the calls of one reply. `on_submitted(value)` receives the first valid submission (rule S3)."""

    def __init__(
        self, ctx: RunContext, toolset: ToolSet, people: People, on_submitted: Callable[[Any], None]
    ) -> None:
        self._ctx, self._toolset, self._people, self._on_submitted = ctx, toolset, people, on_submitted
        self._calls: list[PendingCall] = []
        self._exhausted = False
        self._absent: ev.HumanRequested | None = None
        self._ran = False

    async def run(self, calls: Sequence[ToolCall], stop_reason: str, *, resumed: bool = False) -> BatchResult:
        """Give every call its result. `resumed`: some may have a result already, or may have started (rule J3)."""
        ctx, toolset = self._ctx, self._toolset
        began = ctx.clock.now()
        self._calls = [PendingCall(call, toolset.tools.get(call.name)) for call in calls]
        self._exhausted = toolset.submit is not None and ctx.state.attempts >= ctx.state.bounds.max_attempts
        if resumed:
            self._restore()
        runs = stop_reason not in _CUT
        if runs:
            for pending in self._calls:
                await self._validate(pending)
        sequential = any(s.tool is not None and s.tool.sequential for s in self._calls)
        if not resumed:
            infos = tuple(ev.CallInfo(s.call.id, s.call.name, s.preview.title) for s in self._calls)
            ctx.emit(ev.ToolBatchStarted(**ctx.stamp(), calls=infos, sequential=sequential))
        try:
            if runs:
                self._judge()
                if not self._exhausted:
                    await self._approve_and_start(sequential)
        finally:
            self._fill_missing(stop_reason)
        return await self._close(began)

    def _restore(self) -> None:
        """Restore what a stored run knows about these calls."""
        open_ids = {c.id for c in self._ctx.projection.open_calls}
        for pending in self._calls:
            if pending.call.id not in open_ids:
                pending.result = self._ctx.projection.stored_result(pending.call.id)
            elif self._ctx.projection.started(pending.call.id) and not self._asks_again(pending):
                self._finish(pending, ToolResult(UNKNOWN, is_error=True))

    def _asks_again(self, pending: PendingCall) -> bool:
        """Whether a call that had started only waits for a person, so that it may start again (rule H6)."""
        if pending.call.name == ASK_HUMAN:
            return True
        asking = [q for q in self._ctx.state.questions.values() if q.call_id == pending.call.id]
        if any(question.resume is not None for question in asking):
            return True  # the tool itself knows how to continue
        return bool(asking) and pending.tool is not None and pending.tool.effect == "read"

    async def _validate(self, pending: PendingCall) -> None:
        """Parse the arguments and preview the call. Nothing is changed or asked yet."""
        if pending.result is not None or self._is_submission(pending.call):
            return
        if pending.tool is None:
            submit = self._toolset.submit
            known = ", ".join([*self._toolset.tools, *([submit.name] if submit else [])]) or "none"
            pending.wrong = f"there is no tool named {pending.call.name!r}; the tools are: {known}"
            return
        if len(pending.call.raw) > MAX_ARGUMENTS:
            size = f"{len(pending.call.raw)} characters long, and the limit is {MAX_ARGUMENTS}"
            pending.wrong = f"the arguments of {pending.call.name} are {size}; send them in smaller calls"
            return
        if pending.call.error is not None:
            pending.wrong = pending.call.error
            return
        try:
            pending.args = pending.tool.parse(pending.call)
        except InvalidArguments as error:
            pending.wrong = f"invalid arguments for {pending.call.name}:\n{error}"
            return
        except Exception as error:
            pending.wrong = f"invalid arguments for {pending.call.name}: {type(error).__name__}: {error}"
            return
        pending.tool_context = self._context(pending)
        pending.preview = await self._preview(pending, pending.tool, pending.tool_context)

    async def _preview(self, pending: PendingCall, tool: Tool, tool_context: ToolContext) -> Preview:
        if type(tool).preview is Tool.preview:
            return Preview(tool.name)
        try:
            if tool.effect == "edit":
                return await self._ctx.clock.in_thread(lambda: tool.preview(pending.args, tool_context))
            return tool.preview(pending.args, tool_context)
        except Exception as error:  # what it would touch is unknown: it asks first in every mode
            return Preview(tool.name, outside=(f"an unknown place ({type(error).__name__}: {error})",))

    def _is_submission(self, call: ToolCall) -> bool:
        return self._toolset.submit is not None and call.name == self._toolset.submit.name

    def _judge(self) -> None:
        """Judge submissions in call order; the first valid one is the answer (rules S3 to S5)."""
        state = self._ctx.state
        for pending in self._calls:
            if pending.result is None and self._is_submission(pending.call):
                if self._exhausted:
                    self._finish(pending, ToolResult("not checked: no attempts are left", is_error=True))
                else:
                    self._judge_one(pending)
                    self._exhausted = state.attempts >= state.bounds.max_attempts

    def _judge_one(self, pending: PendingCall) -> None:
        ctx, submit = self._ctx, self._toolset.submit
        assert submit is not None
        state, limit = ctx.state, ctx.state.bounds.max_attempts
        try:
            value = submit.output.validate(pending.call)
        except InvalidSubmission as error:
            if pending.call.id not in state.judged:
                ctx.emit(
                    ev.Submission(
                        **ctx.stamp(),
                        accepted=False,
                        call_id=pending.call.id,
                        attempt=state.attempts + 1,
                        of=limit,
                        errors=error.errors,
                    )
                )
            self._finish(pending, submit.rejected(error.errors, limit - state.attempts))
            return
        if pending.call.id not in state.judged:
            ctx.emit(
                ev.Submission(
                    **ctx.stamp(),
                    accepted=True,
                    call_id=pending.call.id,
                    attempt=state.attempts,
                    of=limit,
                    value=submit.output.to_json(value),
                )
            )
        if state.submitted is not None and state.submitted.call_id == pending.call.id:
            self._on_submitted(value)
        self._finish(pending, submit.accepted())

    async def _approve_and_start(self, sequential: bool) -> None:
        with self._ctx.interrupts.scope() as scope:
            for pending in self._calls:
                await self._admit(pending)
        if scope.cause is not None:
            return
        ready = [s for s in self._calls if s.result is None]
        if sequential:
            for pending in ready:
                if self._ctx.interrupts.cause is None:
                    await self._run_together([pending])
        elif ready:
            await self._run_together(ready)

    async def _admit(self, pending: PendingCall, changed: str = "") -> None:
        """Refuse calls that cannot run, and ask for approval where it is needed (rules L6, H5).

        `changed`: why it is asked again (rule H7).
        """
        if pending.result is not None:
            return
        if pending.wrong is not None or pending.tool is None:
            self._finish(pending, ToolResult(pending.wrong or "", is_error=True))
            return
        mode = pending.tool.approve or self._toolset.mode
        why = why_ask(pending.tool.effect, pending.preview, mode, self._ctx.state.patterns)
        if why is None:
            pending.allowed = why_allowed(pending.tool.effect, pending.preview, self._toolset.mode)
            return
        if changed:
            why = f"{why}; {changed}"
        answer = await self._people.approval(pending.call, pending.preview, why, again=bool(changed))
        if answer.how == "nobody":
            text = f"denied: {why}, and nobody is here to approve it"
            self._finish(pending, ToolResult(text, is_error=True, summary="denied"))
        elif answer.how in ("once", "session"):
            pending.allowed = "once" if answer.how == "once" else f"pattern {pending.preview.pattern}"
        else:  # only these two words allow a call (rule H6)
            said = f" They say: {answer.text}" if answer.text.strip() else ""
            self._finish(pending, ToolResult(f"denied by the person.{said}", is_error=True, summary="denied"))

    async def _run_together(self, pending_calls: Sequence[PendingCall]) -> None:
        """Run these in parallel and wait for all of them; a stop ends them (rules L6, L9)."""
        self._ran = True
        room = asyncio.Semaphore(self._toolset.at_once)
        tasks = []
        for pending in pending_calls:
            pending.task = asyncio.ensure_future(self._run_in_turn(pending, room))
            tasks.append(pending.task)
        try:
            with self._ctx.interrupts.scope():
                await asyncio.wait(tasks)
        finally:
            left = [t for t in tasks if not t.done()]
            if left:
                await self._cancel(left)
        for task in tasks:
            if task.done() and not task.cancelled() and task.exception() is not None:
                task.result()

    async def _cancel(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        for task in tasks:
            task.cancel()
        grace = Interrupts().scope()
        with grace:
            timer = self._ctx.clock.call_later(GRACE_S, lambda: grace.interrupt("stop"))
            try:
                await asyncio.wait(tasks)
            finally:
                timer.cancel()
        for pending in self._calls:
            if pending.task is not None and not pending.task.done() and pending.tool_context is not None:
                pending.tool_context.leave(f"may still be running: {pending.call.name}")
                pending.task.add_done_callback(lambda t: t.cancelled() or t.exception())

    async def _run_in_turn(self, pending: PendingCall, room: asyncio.Semaphore) -> None:
        async with room:
            await self._run_one(pending)

    async def _run_one(self, pending: PendingCall) -> None:
        ctx, tool, tool_context = self._ctx, pending.tool, pending.tool_context
        assert tool is not None and tool_context is not None
        pending.began = ctx.clock.now()
        ctx.emit(
            ev.ToolStarted(
                **ctx.stamp(),
                call_id=pending.call.id,
                name=tool.name,
                title=pending.preview.title,
                effect=tool.effect,
                allowed=pending.allowed,
            )
        )
        if tool.effect != "read":
            await ctx.commit()  # a tool that changes things is recorded as started before it starts (rule J1)
        try:
            result = await self._run_as_shown(pending, tool, tool_context)
        except HumanAbsent as absent:
            pending.open = True
            self._absent = self._absent or absent.question
            return
        except ToolError as error:
            result = ToolResult(str(error), is_error=True)
        except Exception as error:
            result = ToolResult(f"{tool.name} failed: {type(error).__name__}: {error}", is_error=True)
        if result is None:
            return
        try:
            self._finish(pending, result)
        except ValueError as error:  # such as a picture of a type that no record can hold
            pending.result = None
            self._finish(pending, ToolResult(f"{tool.name} failed: its result: {error}", is_error=True))

    async def _run_as_shown(
        self, pending: PendingCall, tool: Tool, tool_context: ToolContext
    ) -> ToolResult | None:
        """Run the call. If it is no longer what was shown, preview it and ask again, as if it were new (rule H7).

        None: it was not allowed, and has its result.
        """
        words = ""
        for _ in range(_LOOKS):
            tool_context.shown = pending.preview.shows or None
            try:
                if tool.time_limit is None:
                    return await tool.run(pending.args, tool_context)
                return await self._limited(tool, tool.time_limit, pending.args, tool_context)
            except ShownChanged as changed:
                words = str(changed)
            pending.preview = await self._preview(pending, tool, tool_context)
            await self._admit(pending, words)
            if pending.result is not None:
                return None
        raise ToolError(f"not executed: {words}, again and again")

    async def _limited(self, tool: Tool, limit: float, args: Any, tool_context: ToolContext) -> ToolResult:
        scope = Interrupts().scope()
        result: ToolResult | None = None
        with scope:
            timer = self._ctx.clock.call_later(limit, lambda: scope.interrupt("deadline"))
            try:
                result = await tool.run(args, tool_context)
            finally:
                timer.cancel()
        if result is None:
            text = "\n".join([f"stopped: it exceeded its time limit of {limit:g} s", *tool_context.left])
            return ToolResult(text, is_error=True, summary="timed out")
        return result

    def _context(self, pending: PendingCall) -> ToolContext:
        ctx, call_id = self._ctx, pending.call.id

        def progress(text: str) -> None:
            ctx.pass_on(ev.ToolProgress(**ctx.stamp(), call_id=call_id, text=clean(text)))

        toolset = self._toolset
        asked = (q.resume for q in ctx.state.questions.values() if q.call_id == call_id)
        return ToolContext(
            toolset.cwd,
            ctx.clock,
            call_id,
            progress,
            toolset.env,
            toolset.memory,
            self._people.asker(pending.call),
            ask_form=self._people.form_asker(pending.call),
            resume=next(asked, None),
        )

    def _finish(self, pending: PendingCall, result: ToolResult) -> None:
        """Publish the one result of a call."""
        if pending.result is not None:
            return
        text = clean(text_of(result.blocks))
        pending.result = result
        images = tuple(b for b in result.blocks if not isinstance(b, Text))
        ctx = self._ctx
        ctx.emit(
            ev.ToolFinished(
                **ctx.stamp(),
                call_id=pending.call.id,
                name=pending.call.name,
                is_error=result.is_error,
                terminate=result.terminate and not result.is_error,
                text=text,
                images=images,
                seconds=0.0 if pending.began is None else ctx.since(pending.began),
                summary=result.summary,
                diff=result.diff,
                executed=pending.began is not None,
            )
        )

    def _fill_missing(self, stop_reason: str) -> None:
        """Give each call without a result one that says why (rules L4, L5, S5, L9).

        When the program exits (suspend), calls that have not started and open questions stay open (rules J7, L5).
        """
        cause = self._ctx.interrupts.cause
        asking = {q.call_id for q in self._ctx.state.questions.values()}
        for pending in self._calls:
            if pending.result is not None or pending.open:
                continue
            if cause == "suspend" and (pending.began is None or pending.call.id in asking):
                continue
            if stop_reason in _CUT:
                text = NOT_EXECUTED.format(why=_CUT[stop_reason])
            elif self._exhausted:
                text = NOT_EXECUTED.format(why="the attempts to submit are used up")
            else:
                by = _BY.get(cause or "stop", "the run was stopped")
                left = pending.tool_context.left if pending.tool_context else []
                if pending.began is not None:
                    text = "\n".join([f"stopped before it finished: {by}", *left])
                else:
                    text = NOT_EXECUTED.format(why=by)
            self._finish(
                pending,
                ToolResult(text, is_error=True, summary="not run" if pending.began is None else "stopped"),
            )

    async def _close(self, began: float) -> BatchResult:
        ctx = self._ctx
        done = [(s.call, s.result) for s in self._calls if s.result is not None]
        votes = sum(1 for _, r in done if r.terminate and not r.is_error)
        ends = votes == len(self._calls) and votes > 0
        if len(done) == len(self._calls):
            ctx.emit(
                ev.ToolBatchFinished(
                    **ctx.stamp(), votes=votes, of=len(done), ends=ends, seconds=ctx.since(began)
                )
            )
            await ctx.commit()
        return BatchResult(tuple(done), votes, ends, self._exhausted, self._absent, self._ran)
