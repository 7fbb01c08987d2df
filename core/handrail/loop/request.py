"""One request and its reply: stream, watch for silence, stop at once, keep what came (rules L9 to L11)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from handrail import events as ev
from handrail.loop.compaction import estimate
from handrail.loop.context import Cause, RunContext, Scope
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

LOST = "the program ended while this reply was streaming"


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply as the loop sees it. `cause` says what interrupted it."""

    message: AssistantMessage
    cause: Cause | None = None


class Asker:
    """Makes requests on a stage. One request at a time; `retry_now` gives up on the one under way (stalled)."""

    def __init__(self, stage: RunContext) -> None:
        self._stage = stage
        self._scope: Scope | None = None
        self._partial: ReplySoFar = PartialReply("")
        self._ids: set[str] = set()

    def retry_now(self) -> None:
        """Treat the request under way as broken, because a person says so."""
        if self._scope is not None:
            self._scope.interrupt("retry")

    def knows(self, ids: Iterable[str]) -> None:
        """Note ids of earlier calls, so that later ones differ (rule L5)."""
        self._ids.update(ids)

    def rebuild(self, model: str, pieces: Iterable[ev.MessageDelta]) -> AssistantMessage:
        """A reply from the pieces on record: as far as it came when the program ended (rule J3)."""
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
        failure = Failure(LOST, phase="stream")
        return self._unique(partial.message("error", failure=failure))

    async def ask(self, provider: Provider, request: Request, *, purpose: Purpose, idle_s: float) -> Reply:
        """Ask once. Always gives a reply; `cause` is set when something of ours ended the stream (rules L9, L10)."""
        stage = self._stage
        started = stage.clock.now()
        stage.emit(ev.MessageStarted(**stage.stamp(), model=provider.model.name))
        message: AssistantMessage | None = None
        with stage.interrupts.scope() as scope:
            self._scope = scope
            watch = _IdleWatch(stage, scope, idle_s)
            try:
                message = await self._read(provider, request, watch)
            finally:
                watch.cancel()
                self._scope = None
        cause = scope.cause if message is None else None
        if message is None:
            message = _broken(self._partial, cause, idle_s, provider)
        message = self._unique(message)
        guess = estimate(request, message) if message.usage is None else None
        cost = _cost(provider, message.usage or guess)
        if cause != "suspend":
            seconds = stage.since(started)
            stage.emit(
                ev.MessageFinished(
                    **stage.stamp(),
                    message=message,
                    purpose=purpose,
                    seconds=seconds,
                    cost=cost,
                    estimate=guess,
                )
            )
        return Reply(message, cause)

    async def _read(self, provider: Provider, request: Request, watch: _IdleWatch) -> AssistantMessage:
        stage = self._stage
        now, pass_on, turn = stage.clock.now, stage.pass_on, stage.turn
        own = PartialReply(provider.model.name)
        self._partial, collects = own, True  # until the provider shows the reply that it collects itself
        try:
            stream = provider.stream(request)
            try:
                async for part in stream:
                    at = watch.last = now()
                    if isinstance(part, Finished):
                        return part.message
                    if isinstance(part, Started):
                        self._partial, collects = part.reply, False
                    elif isinstance(part, ProviderNotice):
                        stage.emit(ev.Notice(**stage.stamp(), text=clean(part.text), level=part.level))
                    elif collects:
                        for cleaned in own.take(part):
                            pass_on(_delta(cleaned, at, turn))
                    else:
                        pass_on(_delta(part, at, turn))
            finally:
                await _close(stream)
        except Exception as error:  # a provider should not raise; whatever it does, the loop is total
            failure = Failure(f"{type(error).__name__}: {error}", provider.model.provider, "stream")
            return self._partial.message("error", failure=failure)
        failure = Failure("the stream ended before the reply was finished", provider.model.provider, "stream")
        return self._partial.message("error", failure=failure)

    def _unique(self, message: AssistantMessage) -> AssistantMessage:
        """Give duplicate and empty call ids a name of their own, always the same one (rule L5)."""
        if not message.calls:
            return message
        content: list[Block] = []
        changed = False
        for block in message.content:
            if isinstance(block, ToolCall):
                unique = self._free(block.id)
                changed = changed or unique != block.id
                block = block if unique == block.id else replace(block, id=unique)
                self._ids.add(unique)
            content.append(block)
        return replace(message, content=tuple(content)) if changed else message

    def _free(self, id: str) -> str:
        base, number = id or "call", 1
        candidate = id or f"{base}_{number}"
        while candidate in self._ids:
            number += 1
            candidate = f"{base}_{number}"
        return candidate


class _IdleWatch:
    """Fires the scope when no part came for `seconds` (rule L10). One timer, moved on only when it rings."""

    def __init__(self, stage: RunContext, scope: Scope, seconds: float) -> None:
        self._clock, self._scope, self._seconds = stage.clock, scope, seconds
        self.last = self._clock.now()
        self._timer = self._clock.call_later(seconds, self._ring)

    def _ring(self) -> None:
        due = self.last + self._seconds
        if self._clock.now() >= due:
            self._scope.interrupt("idle")
        else:
            self._timer = self._clock.call_at(due, self._ring)

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


def _broken(partial: ReplySoFar, cause: Cause | None, idle_s: float, provider: Provider) -> AssistantMessage:
    """What came before one of ours ended the stream."""
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


def is_lost(message: AssistantMessage) -> bool:
    """Whether this reply was put together from the pieces that a killed program had on record (rule J3)."""
    return message.failure is not None and message.failure.text == LOST


def _cost(provider: Provider, usage: Usage | None) -> float | None:
    """Dollars of a reply, None while the price is unknown (never 0 for unknown). No usage at all is no cost."""
    price = provider.model.price
    if price is None or usage is None:
        return None if price is None else 0.0
    million = (
        usage.input * price.input
        + usage.output * price.output
        + usage.cache_read * price.cache_read
        + usage.cache_write * price.cache_write
    )
    return million / 1_000_000


def same_reply(message: AssistantMessage) -> str:
    """A key that is equal for equal replies (rule L13)."""
    calls = [(c.name, c.raw) for c in message.calls]
    return json.dumps([message.text, calls], ensure_ascii=False)
