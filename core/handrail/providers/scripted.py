"""The scripted provider: answers that were written down, streamed on the run's own clock. No key, no network."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from handrail.clock import Clock
from handrail.messages import AssistantMessage, Failure, StopReason, Usage, text_of
from handrail.providers.assemble import PartialReply
from handrail.providers.base import (
    CallDelta,
    CallStarted,
    Finished,
    ModelInfo,
    Part,
    Request,
    Started,
    TextDelta,
    ThinkingDelta,
)

PIECE = 12  # characters of a delta
OUT_OF_REPLIES = "scenario has no more replies"


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A call of a scripted reply. `raw` is the JSON text of its arguments, whether it parses or not."""

    tool: str
    raw: str
    id: str | None = None


@dataclass(frozen=True, slots=True)
class ScriptedReply:
    """One answer. `breaks` are the words of the error that ends its stream, `failure` a whole failure; what was said
    before it is streamed.

    `times` is how many requests in all it answers; None for every further one. `takes_s` is how long it streams.
    """

    text: str = ""
    thinking: str = ""
    redacted: str | None = None
    signature: str | None = None
    calls: Sequence[ScriptedCall] = ()
    stop: StopReason | None = None
    stop_detail: str | None = None
    usage: Usage | None = None
    breaks: str | None = None
    failure: Failure | None = None
    takes_s: float = 0.0
    times: int | None = 1


@dataclass(slots=True)
class ScriptedProvider:
    """Plays replies in order. `requests` keeps what was asked, for expectations."""

    replies: Sequence[ScriptedReply]
    clock: Clock
    model: ModelInfo = field(default_factory=lambda: ModelInfo("scripted/demo"))
    requests: list[Request] = field(default_factory=list)
    _at: int = 0
    _used: int = 0
    _sizes: dict[int, tuple[Any, int]] = field(default_factory=dict, repr=False)

    async def stream(self, request: Request) -> AsyncIterator[Part]:
        """Answer with the next reply (see `Provider`)."""
        self.requests.append(request)
        await asyncio.sleep(0)  # as any real request, it lets others act while it is under way
        reply = self._next()
        if reply is None:
            yield self._failed(
                PartialReply(self.model.name), Failure(OUT_OF_REPLIES, "scripted", "response", 400)
            )
            return
        partial = PartialReply(self.model.name)
        yield Started(partial)
        pieces = self._pieces(reply)
        pause = reply.takes_s / len(pieces) if pieces else 0.0
        if not pieces and reply.takes_s:
            await self.clock.sleep(reply.takes_s)
        for part in pieces:
            if pause:
                await self.clock.sleep(pause)
            for told in partial.take(part):
                yield told
        if reply.signature is not None:
            partial.close()
            partial.thinking("", signature=reply.signature)
        if reply.redacted is not None:
            partial.open("redacted", "thinking", redacted=reply.redacted)
        failure = reply.failure
        if failure is None and reply.breaks is not None:
            failure = Failure(reply.breaks, self.model.provider, "stream")
        if failure is not None:
            yield self._failed(partial, failure, reply.usage)
            return
        stop = reply.stop or ("tool_use" if reply.calls else "stop")
        usage = reply.usage or self._counted(request, reply)
        yield Finished(partial.message(stop, usage=usage, stop_detail=reply.stop_detail))

    def _next(self) -> ScriptedReply | None:
        if self._at >= len(self.replies):
            return None
        reply = self.replies[self._at]
        self._used += 1
        if reply.times is not None and self._used >= reply.times:
            self._at, self._used = self._at + 1, 0
        return reply

    def _failed(self, partial: PartialReply, failure: Failure, usage: Usage | None = None) -> Finished:
        return Finished(partial.message("error", failure=failure, usage=usage))

    def _counted(self, request: Request, reply: ScriptedReply) -> Usage:
        """Usage counted from the text, four characters a token."""
        asked = len(request.system) + sum(map(self._size, request.messages))
        said = len(reply.text) + len(reply.thinking) + sum(len(c.raw) for c in reply.calls)
        return Usage(asked // 4 + 1, said // 4 + 1)

    def _size(self, message: Any) -> int:
        """The characters of a message. Each is counted once: a long run repeats its history in every request."""
        known = self._sizes.get(id(message))
        if known is None or known[0] is not message:
            known = self._sizes[id(message)] = (message, len(searchable(message)))
        return known[1]

    def _pieces(self, reply: ScriptedReply) -> list[Part]:
        parts: list[Part] = [ThinkingDelta(p) for p in _cut(reply.thinking)]
        parts += [TextDelta(p) for p in _cut(reply.text)]
        for index, call in enumerate(reply.calls):
            id = f"call_{len(self.requests)}_{index + 1}" if call.id is None else call.id
            parts.append(CallStarted(index, id, call.tool))
            parts += [CallDelta(index, p) for p in _cut(call.raw)]
        return parts


def _cut(text: str) -> list[str]:
    return [text[i : i + PIECE] for i in range(0, len(text), PIECE)]


def searchable(message: Any) -> str:
    """Message, thinking, argument and result text of a message of a request."""
    if isinstance(message, AssistantMessage):
        calls = [json.dumps(c.arguments, ensure_ascii=False) for c in message.calls]
        return "\n".join([message.thinking, message.text, *calls])
    return text_of(message.content)


def arguments_text(args: Mapping[str, Any]) -> str:
    """Arguments as a model would write them."""
    return json.dumps(args, ensure_ascii=False, default=str)
