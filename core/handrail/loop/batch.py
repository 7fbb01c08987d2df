"""One tool batch: every call of a reply gets exactly one result, in call order (rules L4 to L7, S2 to S6).

Order of things: submissions are judged, then the other calls are validated and approved, all in call order; only then
do tools start. A stop ends what runs and gives the rest a result that says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from handrail import events as ev
from handrail.loop.context import Interrupts, RunContext
from handrail.loop.people import HumanAbsent, People
from handrail.loop.projection import UNKNOWN, answer_text
from handrail.messages import Text, ToolCall, clean, text_of
from handrail.output.types import InvalidSubmission
from handrail.tools.approval import Mode, why_ask
from handrail.tools.ask_human import NAME as ASK_HUMAN
from handrail.tools.base import InvalidArguments, Preview, Tool, ToolContext, ToolError, ToolResult
from handrail.tools.submit import SubmitTool


@dataclass(slots=True)
class ToolSet:
    """What calls may use: tools by name, the submission, the working folder, how approvals go."""

    tools: Mapping[str, Tool]
    cwd: Path
    submit: SubmitTool | None = None
    mode: Mode = "ask"
    env: Mapping[str, str] | None = None
    memory: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class PendingCall:
    """One call on its way to its one result."""

    call: ToolCall
    tool: Tool | None = None
    args: Any = None
    preview: Preview = field(default_factory=lambda: Preview(""))
    wrong: str | None = None  # why it cannot run: unknown tool, bad arguments
    result: ToolResult | None = None
    ctx: ToolContext | None = None
    began: float | None = None
    task: asyncio.Task[None] | None = None
    open: bool = False  # holds for a person who is not there


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What a batch came to. `absent` is a question that found nobody; its call has no result yet (rule H4)."""

    results: tuple[tuple[ToolCall, ToolResult], ...] = ()
    votes: int = 0
    ends: bool = False
    exhausted: bool = False
    absent: ev.HumanRequested | None = None
    ran: bool = False


def stored_result(event: ev.ToolFinished | None) -> ToolResult | None:
    """A result on record, as it counts for the votes."""
    if event is None:
        return None
    return ToolResult(
        (Text(event.text), *event.images), event.is_error, event.terminate, event.summary, event.diff
    )


NOT_EXECUTED = "not executed: {why}. Send the call again, whole, if it is still needed."
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
    "suspend": "the program was told to end",
}


class Batch:
    """Runs the calls of one reply. `keep(value)` is told the first valid submission (rule S3)."""

    def __init__(self, stage: RunContext, kit: ToolSet, people: People, keep: Callable[[Any], None]) -> None:
        self._stage, self._kit, self._people, self._keep = stage, kit, people, keep
        self._slots: list[PendingCall] = []
        self._exhausted = False
        self._absent: ev.HumanRequested | None = None
        self._ran = False

    async def run(self, calls: Sequence[ToolCall], stop_reason: str, *, resumed: bool = False) -> BatchResult:
        """Give every call its result. `resumed`: some may have one already, or may have begun (rule J3)."""
        stage, kit = self._stage, self._kit
        began = stage.clock.now()
        self._slots = [PendingCall(call, kit.tools.get(call.name)) for call in calls]
        self._exhausted = kit.submit is not None and stage.state.attempts >= stage.state.bounds.max_attempts
        if resumed:
            self._take_up()
        runs = stop_reason not in _CUT
        if runs:
            for slot in self._slots:
                await self._look(slot)
        sequential = any(s.tool is not None and s.tool.sequential for s in self._slots)
        if not resumed:
            infos = tuple(ev.CallInfo(s.call.id, s.call.name, s.preview.title) for s in self._slots)
            stage.emit(ev.ToolBatchStarted(**stage.stamp(), calls=infos, sequential=sequential))
        try:
            if runs:
                self._judge()
                if not self._exhausted:
                    await self._approve_and_start(sequential)
        finally:
            self._fill(stop_reason)
        return await self._close(began)

    def _take_up(self) -> None:
        """Set what a stored run already knows of these calls."""
        open_ids = {c.id for c in self._stage.projection.open_calls}
        for slot in self._slots:
            if slot.call.id not in open_ids:
                slot.result = stored_result(self._stage.projection.stored_result(slot.call.id))
            elif self._stage.projection.started(slot.call.id) and not self._asks_again(slot):
                self._finish(slot, ToolResult(UNKNOWN, is_error=True))

    def _asks_again(self, slot: PendingCall) -> bool:
        """Whether a call that had begun only waits for a person, so that it may begin again (rule H6)."""
        if slot.call.name == ASK_HUMAN:
            return True
        asking = any(q.call_id == slot.call.id for q in self._stage.state.questions.values())
        return asking and slot.tool is not None and slot.tool.effect == "read"

    async def _look(self, slot: PendingCall) -> None:
        """Parse arguments and preview the call. Nothing is changed and nobody is asked yet."""
        if slot.result is not None or self._is_submission(slot.call):
            return
        if slot.tool is None:
            submit = self._kit.submit
            known = ", ".join([*self._kit.tools, *([submit.name] if submit else [])]) or "none"
            slot.wrong = f"there is no tool named {slot.call.name!r}; the tools are: {known}"
            return
        if slot.call.error is not None:
            slot.wrong = slot.call.error
            return
        try:
            slot.args = slot.tool.parse(slot.call)
        except InvalidArguments as error:
            slot.wrong = f"invalid arguments for {slot.call.name}:\n{error}"
            return
        except Exception as error:
            slot.wrong = f"invalid arguments for {slot.call.name}: {type(error).__name__}: {error}"
            return
        slot.ctx = self._context(slot)
        slot.preview = await self._preview(slot, slot.tool, slot.ctx)

    async def _preview(self, slot: PendingCall, tool: Tool, ctx: ToolContext) -> Preview:
        if type(tool).preview is Tool.preview:
            return Preview(tool.name)
        try:
            if tool.effect == "edit":
                return await self._stage.clock.in_thread(lambda: tool.preview(slot.args, ctx))
            return tool.preview(slot.args, ctx)
        except Exception as error:  # nobody knows what it would touch: it asks first, whatever the mode
            return Preview(tool.name, outside=(f"nobody knows where ({type(error).__name__}: {error})",))

    def _is_submission(self, call: ToolCall) -> bool:
        return self._kit.submit is not None and call.name == self._kit.submit.name

    def _judge(self) -> None:
        """Judge submissions in call order; the first valid one is the answer (rules S3 to S5)."""
        state = self._stage.state
        for slot in self._slots:
            if slot.result is None and self._is_submission(slot.call):
                if self._exhausted:
                    self._finish(slot, ToolResult("not judged: no try is left", is_error=True))
                else:
                    self._judge_one(slot)
                    self._exhausted = state.attempts >= state.bounds.max_attempts

    def _judge_one(self, slot: PendingCall) -> None:
        stage, submit = self._stage, self._kit.submit
        assert submit is not None
        state, limit = stage.state, stage.state.bounds.max_attempts
        try:
            value = submit.output.validate(slot.call)
        except InvalidSubmission as error:
            if slot.call.id not in state.judged:
                stage.emit(
                    ev.Submission(
                        **stage.stamp(),
                        accepted=False,
                        call_id=slot.call.id,
                        attempt=state.attempts + 1,
                        of=limit,
                        errors=error.errors,
                    )
                )
            self._finish(slot, submit.rejected(error.errors, limit - state.attempts))
            return
        if slot.call.id not in state.judged:
            stage.emit(
                ev.Submission(
                    **stage.stamp(),
                    accepted=True,
                    call_id=slot.call.id,
                    attempt=state.attempts,
                    of=limit,
                    value=submit.output.to_json(value),
                )
            )
        if state.submitted is not None and state.submitted.call_id == slot.call.id:
            self._keep(value)
        self._finish(slot, submit.accepted())

    async def _approve_and_start(self, sequential: bool) -> None:
        with self._stage.interrupts.scope() as scope:
            for slot in self._slots:
                await self._admit(slot)
        if scope.cause is not None:
            return
        ready = [s for s in self._slots if s.result is None]
        if sequential:
            for slot in ready:
                if self._stage.interrupts.cause is None:
                    await self._run_together([slot])
        elif ready:
            await self._run_together(ready)

    async def _admit(self, slot: PendingCall) -> None:
        """Refuse what cannot run and ask about what asks first (rules L6, H5)."""
        if slot.result is not None:
            return
        if slot.wrong is not None or slot.tool is None:
            self._finish(slot, ToolResult(slot.wrong or "", is_error=True))
            return
        why = why_ask(slot.tool.effect, slot.preview, self._kit.mode, self._stage.state.patterns)
        if why is None:
            return
        answer = await self._people.approval(slot.call, slot.preview, why)
        if answer.how == "nobody":
            text = f"denied: {why}, and nobody is here to approve it"
            self._finish(slot, ToolResult(text, is_error=True, summary="denied"))
        elif answer.how == "deny":
            word = f" They say: {answer.text}" if answer.text.strip() else ""
            self._finish(slot, ToolResult(f"denied by the person.{word}", is_error=True, summary="denied"))

    async def _run_together(self, slots: Sequence[PendingCall]) -> None:
        """Run these at once and wait for all; a stop ends them (rules L6, L9)."""
        self._ran = True
        tasks = []
        for slot in slots:
            slot.task = asyncio.ensure_future(self._run_one(slot))
            tasks.append(slot.task)
        try:
            with self._stage.interrupts.scope():
                await asyncio.wait(tasks)
        finally:
            left = [t for t in tasks if not t.done()]
            if left:
                await self._end(left)
        for task in tasks:
            if task.done() and not task.cancelled() and task.exception() is not None:
                task.result()

    async def _end(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        for task in tasks:
            task.cancel()
        grace = Interrupts().scope()
        with grace:
            timer = self._stage.clock.call_later(GRACE_S, lambda: grace.interrupt("stop"))
            try:
                await asyncio.wait(tasks)
            finally:
                timer.cancel()
        for slot in self._slots:
            if slot.task is not None and not slot.task.done() and slot.ctx is not None:
                slot.ctx.leave(f"may still be running: {slot.call.name}")
                slot.task.add_done_callback(lambda t: t.cancelled() or t.exception())

    async def _run_one(self, slot: PendingCall) -> None:
        stage, tool, ctx = self._stage, slot.tool, slot.ctx
        assert tool is not None and ctx is not None
        slot.began = stage.clock.now()
        stage.emit(
            ev.ToolStarted(
                **stage.stamp(),
                call_id=slot.call.id,
                name=tool.name,
                title=slot.preview.title,
                effect=tool.effect,
            )
        )
        if tool.effect != "read":
            await stage.commit()  # the start of what changes things is on disk before it starts (rule J1)
        try:
            if tool.time_limit is None:
                result = await tool.run(slot.args, ctx)
            else:
                result = await self._limited(tool, tool.time_limit, slot.args, ctx)
        except HumanAbsent as absent:
            slot.open = True
            self._absent = self._absent or absent.question
            return
        except ToolError as error:
            result = ToolResult(str(error), is_error=True)
        except Exception as error:
            result = ToolResult(f"{tool.name} failed: {type(error).__name__}: {error}", is_error=True)
        self._finish(slot, result)

    async def _limited(self, tool: Tool, limit: float, args: Any, ctx: ToolContext) -> ToolResult:
        scope = Interrupts().scope()
        result: ToolResult | None = None
        with scope:
            timer = self._stage.clock.call_later(limit, lambda: scope.interrupt("deadline"))
            try:
                result = await tool.run(args, ctx)
            finally:
                timer.cancel()
        if result is None:
            words = "\n".join([f"stopped: it ran past its time limit of {limit:g} s", *ctx.left])
            return ToolResult(words, is_error=True, summary="timed out")
        return result

    def _context(self, slot: PendingCall) -> ToolContext:
        stage, call_id = self._stage, slot.call.id

        def progress(text: str) -> None:
            stage.pass_on(ev.ToolProgress(**stage.stamp(), call_id=call_id, text=clean(text)))

        async def ask(
            needed: str, *, kind: str = "information", where: str = "", tried: str = "", secret: bool = False
        ) -> str:
            question = ev.HumanRequested(
                id="",
                kind=kind,  # type: ignore[arg-type]
                needed=clean(needed),
                where=clean(where),
                tried=clean(tried),
                call_id=call_id,
                tool=slot.call.name,
                secret=secret,
            )
            answer = await self._people.question(question)
            if secret and answer.how == "declined":
                raise ToolError(answer_text(answer.how, answer.text))
            return answer.text if secret else answer_text(answer.how, answer.text, answer.secret)

        kit = self._kit
        return ToolContext(kit.cwd, stage.clock, call_id, progress, kit.env, kit.memory, ask)

    def _finish(self, slot: PendingCall, result: ToolResult) -> None:
        """The one result of a call."""
        if slot.result is not None:
            return
        text = clean(text_of(result.blocks))
        slot.result = result
        images = tuple(b for b in result.blocks if not isinstance(b, Text))
        stage = self._stage
        stage.emit(
            ev.ToolFinished(
                **stage.stamp(),
                call_id=slot.call.id,
                name=slot.call.name,
                is_error=result.is_error,
                terminate=result.terminate and not result.is_error,
                text=text,
                images=images,
                seconds=0.0 if slot.began is None else stage.since(slot.began),
                summary=result.summary,
                diff=result.diff,
                executed=slot.began is not None,
            )
        )

    def _fill(self, stop_reason: str) -> None:
        """Give a result to what has none, and say why (rules L4, L5, S5, L9).

        When the program ends (suspend), calls that have not begun and open questions stay open (rules J7, L5).
        """
        cause = self._stage.interrupts.cause
        asking = {q.call_id for q in self._stage.state.questions.values()}
        for slot in self._slots:
            if slot.result is not None or slot.open:
                continue
            if cause == "suspend" and (slot.began is None or slot.call.id in asking):
                continue
            if stop_reason in _CUT:
                text = NOT_EXECUTED.format(why=_CUT[stop_reason])
            elif self._exhausted:
                text = NOT_EXECUTED.format(why="the attempts to submit are used up")
            else:
                by = _BY.get(cause or "stop", "the run was stopped")
                left = slot.ctx.left if slot.ctx else []
                if slot.began is not None:
                    text = "\n".join([f"stopped before it finished: {by}", *left])
                else:
                    text = NOT_EXECUTED.format(why=by)
            self._finish(
                slot, ToolResult(text, is_error=True, summary="not run" if slot.began is None else "stopped")
            )

    async def _close(self, began: float) -> BatchResult:
        stage = self._stage
        done = [(s.call, s.result) for s in self._slots if s.result is not None]
        votes = sum(1 for _, r in done if r.terminate and not r.is_error)
        ends = votes == len(self._slots) and votes > 0
        if len(done) == len(self._slots):
            stage.emit(
                ev.ToolBatchFinished(
                    **stage.stamp(), votes=votes, of=len(done), ends=ends, seconds=stage.since(began)
                )
            )
            await stage.commit()
        return BatchResult(tuple(done), votes, ends, self._exhausted, self._absent, self._ran)
