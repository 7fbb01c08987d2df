"""Runs for tests: scripted replies, tools that count, a virtual clock, every event kept."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from wires import hold_wires

from handrail import events as ev
from handrail.clock import Clock, VirtualClock
from handrail.messages import AssistantMessage, Failure, ToolCall, ToolMessage, Usage
from handrail.output.types import make_output
from handrail.policy import NO_RECOVERY, Bounds, RecoveryPolicy
from handrail.providers.base import ModelInfo, Price, Request
from handrail.providers.scripted import ScriptedCall, ScriptedProvider, ScriptedReply
from handrail.session import Session
from handrail.tools.base import Tool, ToolContext, ToolResult

ANSWER = {"type": "object", "required": ["answer"], "properties": {"answer": {"type": "integer"}}}


def call(tool: str, _id: str | None = None, /, **args: Any) -> ScriptedCall:
    """A call with these arguments."""
    return ScriptedCall(tool, json.dumps(args), _id)


def submit(answer: Any) -> ScriptedCall:
    return call("submit", answer=answer)


def says(text: str = "", *calls: ScriptedCall, **more: Any) -> ScriptedReply:
    """A reply with text and calls."""
    return ScriptedReply(text=text, calls=calls, **more)


def breaks(text: str = "", *calls: ScriptedCall) -> ScriptedReply:
    """A reply whose stream breaks."""
    return ScriptedReply(
        text=text, calls=calls, breaks="peer closed connection without sending complete message body"
    )


def fails(text: str, status: int | None = None, **more: Any) -> ScriptedReply:
    """A request that fails."""
    return ScriptedReply(failure=Failure(text, "openai", "response", status), **more)


class Spy(Tool):
    """A tool that does what it is told and keeps its calls."""

    description = "For tests."
    parameters = MappingProxyType({"type": "object"})

    def __init__(
        self,
        name: str = "lookup",
        act: Callable[[dict[str, Any], ToolContext], Awaitable[Any]] | None = None,
        *,
        result: str = "42",
        takes_s: float = 0.0,
        terminate: bool = False,
        sequential: bool = False,
        effect: Any = "read",
        time_limit: float | None = None,
    ) -> None:
        self.name, self._act, self._result, self._takes_s = name, act, result, takes_s
        self._terminate, self.sequential, self.effect, self.time_limit = (
            terminate,
            sequential,
            effect,
            time_limit,
        )
        self.started: list[dict[str, Any]] = []
        self.ended: list[str] = []

    def parse(self, call: ToolCall) -> dict[str, Any]:
        return call.arguments

    async def run(self, args: Any, ctx: ToolContext) -> ToolResult:
        self.started.append(args)
        try:
            if self._act is not None:
                result = await self._act(args, ctx)
                if isinstance(result, ToolResult):
                    return result
                return ToolResult(str(result), terminate=self._terminate)
            if self._takes_s:
                await ctx.clock.sleep(self._takes_s)
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise
        self.ended.append("whole")
        return ToolResult(self._result, terminate=self._terminate)


@dataclass
class Played:
    """A run that is over."""

    session: Session
    provider: ScriptedProvider
    finished: ev.RunFinished
    events: list[ev.Event] = field(default_factory=list)

    def of(self, *kinds: type) -> list[Any]:
        """The events of these kinds, in order."""
        return [e for e in self.events if isinstance(e, kinds)]

    @property
    def outcome(self) -> str:
        return self.finished.outcome

    @property
    def requests(self) -> list[Request]:
        return self.provider.requests

    @property
    def decisions(self) -> list[str]:
        return [f"{d.decision}:{d.reason}" for d in self.of(ev.Decided) if d.decision != "finish"]

    @property
    def waits(self) -> list[float]:
        return [w.seconds for w in self.of(ev.WaitStarted)]

    def results(self, turn: int) -> list[str]:
        """The result texts that the request after `turn` carried, in its order."""
        return [m.text for m in self.requests[turn].messages if isinstance(m, ToolMessage)]

    @property
    def clock(self) -> Clock:
        return self.session.clock


def scripted(
    replies: Sequence[ScriptedReply], clock: Clock, *, window: int | None = None, price: Price | None = None
) -> ScriptedProvider:
    return ScriptedProvider(list(replies), clock, ModelInfo("scripted/test", window, None, price))


def make(
    replies: Sequence[ScriptedReply],
    *,
    tools: Iterable[Tool] = (),
    schema: Any = None,
    recovery: RecoveryPolicy | None = None,
    window: int | None = None,
    price: Price | None = None,
    bounds: dict[str, Any] | None = None,
    clock: Clock | None = None,
    **more: Any,
) -> tuple[Session, ScriptedProvider, list[ev.Event]]:
    """A session on a virtual clock, its provider, and the list that fills with its events."""
    clock = clock or VirtualClock()
    provider = scripted(replies, clock, window=window, price=price)
    session = Session(
        provider,
        tools=tools,
        output=make_output(schema) if schema is not None else None,
        recovery=recovery or NO_RECOVERY,
        bounds=Bounds(**(bounds or {})),
        clock=clock,
        **more,
    )
    events: list[ev.Event] = []
    session.listen(events.append)
    return session, provider, events


async def play(
    replies: Sequence[ScriptedReply],
    *,
    on: Callable[[Session, ev.Event], None] | None = None,
    prompt: str = "Go.",
    **more: Any,
) -> Played:
    """Play replies to the end. `on(session, event)` may act as a person would."""
    session, provider, events = make(replies, **more)
    if on is not None:
        session.listen(lambda event: on(session, event))
    finished = await session.run(prompt)
    assert isinstance(finished, ev.RunFinished), finished
    played = Played(session, provider, finished, events)
    hold_invariants(played)
    return played


def hold_invariants(played: Played) -> None:
    """What holds of every run, whatever happened in it (rules L1, L5)."""
    assert played.finished.turns == played.finished.requests == len(played.requests)
    asked = [c.id for e in played.of(ev.MessageFinished) if e.purpose == "task" for c in e.message.calls]
    got = [e.call_id for e in played.of(ev.ToolFinished)]
    assert len(set(asked)) == len(asked), "a call id stands twice"
    left_open = {played.finished.question.call_id} if played.finished.question else set()
    assert sorted(got) == sorted(set(asked) - left_open), "one result for each call"
    for request in played.requests:
        hold_protocol(request)


def hold_protocol(request: Request) -> None:
    """Results stand directly behind their calls, each once, in call order, and each wire's maker would take it."""
    open_calls: list[str] = []
    for message in request.messages:
        if isinstance(message, ToolMessage):
            assert open_calls and message.call_id == open_calls.pop(0), "a result out of its place"
        else:
            assert not open_calls, f"calls without a result: {open_calls}"
            if isinstance(message, AssistantMessage):
                open_calls = [c.id for c in message.calls]
    assert not open_calls, f"calls without a result: {open_calls}"
    hold_wires(request)


ONE = Usage(1, 1)
