"""One call of a server's tool, from its start to its one result, with the questions and the breaks on its way.

A call that may have begun is not made again unless that does no harm: then its outcome is unknown, as rule J3 has it.
A question that was open when the program ended is asked again, and the call goes on with the answer where the protocol
allows it (2026-07-28); else it begins anew with that answer at hand, once.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, Protocol

import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter, ValidationError

from handrail.mcp._connection import SESSION_GONE, CallAnswer, Connection
from handrail.mcp._deadline import Patience
from handrail.mcp._questions import form_of, key_of, reply_of
from handrail.mcp._results import ResultReader, capped
from handrail.mcp._supervisor import Lost, NotRunning, Supervisor
from handrail.messages import clean
from handrail.tools.base import WITHDRAWN, Form, FormAnswer, ToolContext, ToolError, ToolResult
from handrail.tools.output import one_line

MAX_ROUNDS: Final = 20
"""How often a server may ask before it gives a result."""

STATE_PAUSE_S: Final = 0.25
"""Before a call goes on that the server only gave a state for."""

UNKNOWN: Final = "outcome unknown: {why}; look before doing it again"
_REQUESTS: Final[TypeAdapter[dict[str, types.InputRequest]]] = TypeAdapter(dict[str, types.InputRequest])


class Called(Protocol):
    """The tool that is called: its name at the server and for people, its time limit, whether twice does no harm."""

    tool: str
    limit_s: float

    @property
    def shown(self) -> str: ...

    @property
    def repeatable(self) -> bool: ...


class Call:
    """Runs one call. `asked` takes questions of an earlier protocol, `lost` hears of the end of the connection."""

    def __init__(self, server: Supervisor, tool: Called, arguments: dict[str, Any], ctx: ToolContext) -> None:
        self._server, self._tool, self._arguments, self._ctx = server, tool, arguments, ctx
        self._questions: asyncio.Queue[tuple[types.ElicitRequestParams, asyncio.Future[types.ElicitResult]]]
        self._questions = asyncio.Queue()
        self._given: dict[str, FormAnswer] = {}  # answers to give again, by question, each once
        self._patience: Patience | None = None
        self._broken: asyncio.Future[Lost] | None = None
        self._again = tool.repeatable

    async def run(self) -> ToolResult:
        """The result. Raises ToolError for what went wrong on the way, and what asking a person raises."""
        responses, state = await self._taken_up()
        server, tries = self._server, 2
        server.calls.append(self)
        try:
            while True:
                tries -= 1
                try:
                    connection = await server.ready()
                    return await self._rounds(connection, responses, state)
                except NotRunning as error:
                    raise ToolError(str(error)) from None
                except Lost as lost:
                    if lost.sent and not self._again:
                        raise ToolError(UNKNOWN.format(why=f"{lost}, while this ran")) from None
                    if tries <= 0:
                        raise ToolError(f"the server {server.name} was lost twice: {lost}") from None
                    responses, state = None, None
        finally:
            server.calls.remove(self)

    # What the connection tells

    async def asked(self, params: types.ElicitRequestParams) -> types.ElicitResult:
        """A question in the middle of the call: answered by the task that runs the call, which may hold for it."""
        answer: asyncio.Future[types.ElicitResult] = asyncio.get_running_loop().create_future()
        self._questions.put_nowait((params, answer))
        return await answer

    def lost(self, lost: Lost) -> None:
        """The connection is gone."""
        if self._broken is not None and not self._broken.done():
            self._broken.set_result(lost)

    # Rounds

    async def _taken_up(self) -> tuple[dict[str, Any] | None, str | None]:
        """Where a call stands that had a question open when the program ended."""
        resume = self._ctx.resume
        if resume is None:
            return None, None
        requests = _requests(resume)
        if requests is None:
            raise ToolError(UNKNOWN.format(why="the program ended while this ran"))
        responses: dict[str, Any] = {}
        for key, request in requests.items():
            if not isinstance(request, types.ElicitRequest):
                continue
            form = self._form(request.params, resume)
            answer = await self._ask(form)
            self._given[key_of(form)] = answer
            responses[key] = reply_of(form, answer)
            if answer.action != "accept" and not resume.get("state"):
                raise ToolError(
                    UNKNOWN.format(why="the program ended while this ran, and the question was declined")
                )
        self._again = True  # the person answered for it: beginning anew is what they were asked about
        state = resume.get("state")
        return (responses, str(state)) if state else (None, None)

    async def _rounds(
        self, connection: Connection, responses: dict[str, Any] | None, state: str | None
    ) -> ToolResult:
        for _ in range(MAX_ROUNDS):
            try:
                answer = await self._request(connection, responses, state)
            except MCPError as error:
                if state is not None and self._given and _is_refusal(error):
                    responses, state = None, None  # the state has expired: anew, with the answers at hand
                    continue
                if (urls := _urls(error)) is None:
                    return await self._error(connection, error)
                if not await self._visit(urls):
                    return ToolResult("the person declined to go there", is_error=True, summary="declined")
                continue
            self._server.worked()
            if isinstance(answer, types.CallToolResult):
                return await ResultReader(self._ctx, self._server.folder).read(answer)
            responses, state = await self._answers(connection, answer), answer.request_state
        raise ToolError(f"the server asked {MAX_ROUNDS} times without giving a result")

    async def _answers(
        self, connection: Connection, wanted: types.InputRequiredResult
    ) -> dict[str, Any] | None:
        """What the server needs to go on: answers of the person, our folder."""
        requests = wanted.input_requests or {}
        if not requests:
            await self._server.clock.sleep(STATE_PAUSE_S)
            return None
        asked = {k: r for k, r in requests.items() if isinstance(r, types.ElicitRequest)}
        dumped = _REQUESTS.dump_python(dict(asked), mode="json", by_alias=True, exclude_none=True)
        resume = {"protocol": connection.protocol, "requests": dumped, "state": wanted.request_state}
        answers: dict[str, Any] = {}
        for key, request in requests.items():
            if isinstance(request, types.ElicitRequest):
                form = self._form(request.params, resume)
                answers[key] = reply_of(form, await self._answer(form))
            elif isinstance(request, types.ListRootsRequest):
                answers[key] = connection.roots()
            else:
                raise ToolError("the server wants to ask the model itself, which is not supported")
        return answers

    async def _request(
        self, connection: Connection, responses: dict[str, Any] | None, state: str | None
    ) -> CallAnswer:
        """One request, until its answer, its time limit or the end of the connection."""
        loop = asyncio.get_running_loop()
        self._broken = loop.create_future()
        patience = self._patience = Patience(self._server.clock, self._tool.limit_s)
        call = asyncio.ensure_future(
            connection.call(self._tool.tool, self._arguments, self._progress, responses, state)
        )
        question: asyncio.Future[Any] = asyncio.ensure_future(self._questions.get())
        try:
            while True:
                waits = {call, question, patience.ended, self._broken}
                with self._server.busy():
                    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                if call.done():
                    return await self._outcome(call)
                if self._broken.done():
                    raise self._broken.result()
                if question.done():
                    params, reply = question.result()
                    await self._hold(params, reply, call)
                    question = asyncio.ensure_future(self._questions.get())
                elif patience.ended.done():
                    raise ToolError(
                        f"{self._tool.shown} gave no result within {self._tool.limit_s:g} s and was cancelled"
                    )
        except asyncio.CancelledError:
            if not self._tool.repeatable:
                self._ctx.leave(f"the server was told to stop; {self._tool.shown} may still be at work there")
            raise
        finally:
            self._patience = None
            patience.close()
            question.cancel()
            call.cancel()  # the SDK tells the server
            await asyncio.gather(call, question, return_exceptions=True)

    async def _outcome(self, call: asyncio.Future[CallAnswer]) -> CallAnswer:
        try:
            return call.result()
        except MCPError as error:
            if error.message == SESSION_GONE:
                self._server.report_lost("it does not know this session any more", sent=False)
                assert self._broken is not None
                raise await self._broken from None
            if error.code == types.CONNECTION_CLOSED:
                self._server.report_lost(error.message)
                assert self._broken is not None
                raise await self._broken from None
            raise
        except ValidationError as error:
            raise ToolError(f"{self._tool.shown} gave a result that is none: {_first(error)}") from None
        except (RuntimeError, ExceptionGroup) as error:
            raise ToolError(f"{self._tool.shown}: {error}") from None

    async def _error(self, connection: Connection, error: MCPError) -> ToolResult:
        """The server refused the request itself."""
        data = f"\n{json.dumps(error.data, ensure_ascii=False)}" if error.data is not None else ""
        text = await capped(clean(f"{error.message} (code {error.code}){data}"), self._ctx)
        return ToolResult(text, is_error=True, summary=one_line(text, 60))

    async def _progress(self, progress: float, total: float | None, message: str | None) -> None:
        if self._patience is not None:
            self._patience.renew()
        share = f"{progress:g}/{total:g}" if total else f"{progress:g}"
        self._ctx.progress(f"{share} {one_line(clean(message or ''), 200)}".rstrip() + "\n")

    # Questions

    async def _hold(
        self,
        params: types.ElicitRequestParams,
        reply: asyncio.Future[types.ElicitResult],
        call: asyncio.Future[Any],
    ) -> None:
        """Hold the call for a person. A server that dies meanwhile loses the question, not the answer."""
        assert self._patience is not None and self._broken is not None
        request = types.ElicitRequest(params=params).model_dump(mode="json", by_alias=True, exclude_none=True)
        resume = {"protocol": "", "requests": {"question": request}, "state": None}
        self._patience.hold()
        try:
            form = self._form(params, resume)
            asking = asyncio.ensure_future(self._answer(form))
            try:
                await asyncio.wait({asking, call}, return_when=asyncio.FIRST_COMPLETED)
                if call.done() and not asking.done() and _gave_up(call):
                    asking.cancel(WITHDRAWN)  # the server gave up its question
                    await asyncio.gather(asking, return_exceptions=True)
                    return
                answer = await asking
            except asyncio.CancelledError:
                asking.cancel()
                await asyncio.gather(asking, return_exceptions=True)
                raise
            if self._broken.done() or call.done():
                self._given[key_of(form)] = answer
                self._again = self._again or answer.action == "accept"
            elif not reply.done():
                reply.set_result(reply_of(form, answer))
        except ToolError as error:
            if not reply.done():
                reply.set_result(types.ElicitResult(action="cancel"))
            self._server.said(f"[handrail] a question was cancelled: {error}")
        finally:
            self._patience.go_on()

    def _form(self, params: types.ElicitRequestParams, resume: Mapping[str, Any]) -> Form:
        try:
            return form_of(params, self._server.name, resume)
        except ValueError as error:
            raise ToolError(f"the server asks for something that cannot be asked: {error}") from None

    async def _answer(self, form: Form) -> FormAnswer:
        """The person's answer; one that was given before the break counts for the same question, once."""
        given = self._given.pop(key_of(form), None)
        return given if given is not None else await self._ask(form)

    async def _ask(self, form: Form) -> FormAnswer:
        if self._ctx.ask_form is None:
            raise ToolError("the server asks a person, and there is none here")
        return await self._ctx.ask_form(form)

    async def _visit(self, urls: list[types.ElicitRequestURLParams]) -> bool:
        """Send the person to the addresses that the server wants visited first."""
        for params in urls:
            if (await self._answer(self._form(params, {"requests": {}, "state": None}))).action != "accept":
                return False
        return True


def _requests(resume: Mapping[str, Any]) -> dict[str, types.InputRequest] | None:
    with suppress(ValidationError):
        return _REQUESTS.validate_python(resume.get("requests"))
    return None


def _is_refusal(error: MCPError) -> bool:
    """Whether the server refused what we sent, and so cannot have begun."""
    return error.code in (types.INVALID_PARAMS, types.INVALID_REQUEST)


def _urls(error: MCPError) -> list[types.ElicitRequestURLParams] | None:
    if error.code != types.URL_ELICITATION_REQUIRED:
        return None
    with suppress(ValidationError):
        return types.ElicitationRequiredErrorData.model_validate(error.data).elicitations
    return None


def _gave_up(call: asyncio.Future[Any]) -> bool:
    """Whether the call ended with something that the server said, not with the end of the connection."""
    if call.cancelled():
        return False
    error = call.exception()
    return not (
        isinstance(error, MCPError)
        and (error.code == types.CONNECTION_CLOSED or error.message == SESSION_GONE)
    )


def _first(error: ValidationError) -> str:
    one = error.errors(include_url=False)[0]
    return one_line(clean(f"{'.'.join(map(str, one['loc']))}: {one['msg']}"), 200)
