"""One request and its reply: stream it, watch for silence, stop at once, keep what came (rules L9 to L11)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from handrail import events as ev
from handrail.errors import described
from handrail.loop.compaction import estimate
from handrail.loop.context import Cause, RunContext, Scope
from handrail.loop.projection import Projection
from handrail.messages import AssistantMessage, Block, Failure, ToolCall, Usage, clean
from handrail.providers.assemble import PartialReply
from handrail.providers.base import (
    CallDelta,
    CallStarted,
    Finished,
    Part,
    Provider,
    ProviderNotice,
    ReplySoFar,
    Request,
    Started,
    TextDelta,
    ThinkingDelta,
)

Purpose = Literal["task", "summary"]

EXITED = "the program ended while this reply was streaming"


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A reply as the loop sees it. `cause` says what interrupted it."""

    message: AssistantMessage
    cause: Cause | None = None


async def stream_reply(
    ctx: RunContext, provider: Provider, request: Request, *, purpose: Purpose, idle_s: float
) -> ModelReply:
    """Make one request. Always returns a reply; `cause` is set when the run itself ended the stream (rules L9, L10).

    `idle_s` is how many seconds without any part of the reply count as a broken stream.
    """
    started = ctx.clock.now()
    ctx.emit(ev.MessageStarted(**ctx.stamp(), model=provider.model.name))
    own = PartialReply(provider.model.name)
    collected = _Collected(own, own)
    message: AssistantMessage | None = None
    with ctx.interrupts.scope("retry") as scope:
        watch = _IdleWatch(ctx, scope, idle_s)
        try:
            message = await _read(ctx, provider, request, collected, watch)
        finally:
            watch.cancel()
    cause = scope.cause if message is None else None
    if message is None:
        message = _interrupted_reply(collected.reply, cause, idle_s, provider)
    message = with_unique_ids(message, ctx.projection)
    guess = estimate(request, message) if message.usage is None else None
    cost = _cost(provider, message.usage or guess)
    if cause != "suspend":
        seconds = ctx.since(started)
        ctx.emit(
            ev.MessageFinished(
                **ctx.stamp(), message=message, purpose=purpose, seconds=seconds, cost=cost, estimate=guess
            )
        )
    return ModelReply(message, cause)


@dataclass(slots=True)
class _Collected:
    """The reply as far as it came: the provider's own, once it shows it, else what the loop collects in `own`."""

    reply: ReplySoFar
    own: PartialReply | None


async def _read(
    ctx: RunContext, provider: Provider, request: Request, collected: _Collected, watch: _IdleWatch
) -> AssistantMessage:
    now, publish, turn = ctx.clock.now, ctx.pass_on, ctx.turn
    try:
        stream = provider.stream(request)
        try:
            async for part in stream:
                at = watch.last = now()
                if isinstance(part, Finished):
                    return part.message
                if isinstance(part, Started):
                    collected.reply, collected.own = part.reply, None
                elif isinstance(part, ProviderNotice):
                    ctx.emit(ev.Notice(**ctx.stamp(), text=clean(part.text), level=part.level))
                elif collected.own is not None:
                    for cleaned in collected.own.take(part):
                        publish(_delta(cleaned, at, turn))
                else:
                    publish(_delta(part, at, turn))
        finally:
            await _close(stream)
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # a provider should not raise, but whatever it does, the run must continue
        failure = Failure(described(error), provider.model.provider, "stream")
        return collected.reply.message("error", failure=failure)
    failure = Failure("the stream ended before the reply was finished", provider.model.provider, "stream")
    return collected.reply.message("error", failure=failure)


def rebuild_reply(model: str, pieces: Iterable[ev.MessageDelta], projection: Projection) -> AssistantMessage:
    """A reply from its recorded pieces, as far as it had come when the program exited (rule J3)."""
    partial = PartialReply(model)
    for piece in pieces:
        if piece.kind == "text":
            partial.text(piece.text)
        elif piece.kind == "thinking":
            partial.thinking(piece.text)
        elif piece.index is not None:
            if piece.name is not None:
                partial.call(piece.index, "", piece.name)
            partial.take(CallDelta(piece.index, piece.text))
    failure = Failure(EXITED, phase="stream")
    return with_unique_ids(partial.message("error", failure=failure), projection)


def is_rebuilt(message: AssistantMessage) -> bool:
    """Whether this reply was rebuilt from pieces after the program had exited (rule J3)."""
    return message.failure is not None and message.failure.text == EXITED


def with_unique_ids(message: AssistantMessage, projection: Projection) -> AssistantMessage:
    """Replace duplicate and empty call ids by unique ones. The same input gives the same ids (rule L5)."""
    if not message.calls:
        return message
    content: list[Block] = []
    taken: set[str] = set()
    changed = False
    for block in message.content:
        if isinstance(block, ToolCall):
            id = _free_id(block.id, taken, projection)
            taken.add(id)
            if id != block.id:
                block, changed = replace(block, id=id), True
        content.append(block)
    return replace(message, content=tuple(content)) if changed else message


def _free_id(id: str, taken: set[str], projection: Projection) -> str:
    base, number = id or "call", 1
    candidate = id or f"{base}_{number}"
    while candidate in taken or projection.has_call(candidate):
        number += 1
        candidate = f"{base}_{number}"
    return candidate


class _IdleWatch:
    """Interrupts the scope when no part came for `seconds` (rule L10). It uses one timer, re-armed when it fires."""

    def __init__(self, ctx: RunContext, scope: Scope, seconds: float) -> None:
        self._clock, self._scope, self._seconds = ctx.clock, scope, seconds
        self.last = self._clock.now()
        self._timer = self._clock.call_later(seconds, self._on_timer)

    def _on_timer(self) -> None:
        due = self.last + self._seconds
        if self._clock.now() >= due:
            self._scope.interrupt("idle")
        else:
            self._timer = self._clock.call_at(due, self._on_timer)

    def cancel(self) -> None:
        self._timer.cancel()


def _delta(part: Part, at: float, turn: int | None) -> ev.MessageDelta:
    if isinstance(part, TextDelta):
        return ev.MessageDelta(at=at, turn=turn, text=part.text)
    if isinstance(part, ThinkingDelta):
        return ev.MessageDelta(at=at, turn=turn, kind="thinking", text=part.text)
    if isinstance(part, CallStarted):
        return ev.MessageDelta(at=at, turn=turn, kind="tool_call", index=part.index, name=part.name)
    call = cast(CallDelta, part)
    return ev.MessageDelta(at=at, turn=turn, kind="tool_call", index=call.index, text=call.text)


def _interrupted_reply(
    partial: ReplySoFar, cause: Cause | None, idle_s: float, provider: Provider
) -> AssistantMessage:
    """What had come when the run itself ended the stream."""
    if cause in ("idle", "retry"):
        why = (
            f"timed out: no event from the stream for {idle_s:g} s"
            if cause == "idle"
            else "stream given up by the person: timed out"
        )
        return partial.message("error", failure=Failure(why, provider.model.provider, "stream"))
    return partial.message("aborted", stop_detail=cause)


async def _close(stream: AsyncIterator[Part]) -> None:
    close: Any = getattr(stream, "aclose", None)
    if close is not None:
        await close()


def _cost(provider: Provider, usage: Usage | None) -> float | None:
    """The cost of a reply in dollars; None while the price is unknown (never 0 for unknown). No usage costs 0."""
    price = provider.model.price
    return None if price is None else price.cost(usage)


def reply_key(message: AssistantMessage) -> str:
    """A key that is equal for equal replies (rule L13)."""
    calls = [(c.name, c.raw) for c in message.calls]
    return json.dumps([message.text, calls], ensure_ascii=False)
