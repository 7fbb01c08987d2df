"""An agent's requests for permission as approvals of ours (rule H5)."""

from __future__ import annotations

import asyncio
import json
from typing import Final

from handrail.agents._updates import UpdateFold
from handrail.agents.acp_client import AcpClient, PermissionAsked
from handrail.loop.context import RunContext
from handrail.loop.people import People
from handrail.messages import ToolCall, clean
from handrail.policy import Approve
from handrail.tools.base import Preview

_ONCE: Final = ("allow_once", "allow_always")
_SESSION: Final = ("allow_always", "allow_once")
_REJECT: Final = ("reject_once", "reject_always")


class Permissions:
    """Answers what the agent asks: by the mode, else by a person. Words of a person to a denied call are kept, to be
    said next: the protocol has no place for them."""

    def __init__(self, ctx: RunContext, people: People, name: str, mode: Approve) -> None:
        self._ctx, self._people, self._name = ctx, people, name
        self.mode: Approve = mode
        self.fold: UpdateFold | None = None
        self.client: AcpClient | None = None
        self._asking: set[asyncio.Task[None]] = set()
        self._words: list[str] = []

    def asked(self, asked: PermissionAsked) -> None:
        """The agent asks."""
        task = asyncio.create_task(self._decide(asked))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def cancel(self) -> None:
        """Nobody is waited for any more: what is open is closed."""
        for task in tuple(self._asking):
            task.cancel()
        await asyncio.gather(*self._asking, return_exceptions=True)

    async def close(self) -> None:
        """The run is over."""
        await self.cancel()
        self.client = None

    def take_words(self) -> str:
        """What a person said beside a denial; once."""
        words, self._words = self._words, []
        return "\n".join(words)

    async def _decide(self, asked: PermissionAsked) -> None:
        assert self.fold is not None and self.client is not None
        call = self.fold.asks(asked.call)
        if self.mode == "all" or (self.mode == "edits" and call.effect == "edit"):
            self.client.decide(asked, asked.option(*_ONCE))
            return
        always = next((name for _, kind, name in asked.options if kind == "allow_always"), None)
        preview = Preview(
            call.title or call.name,
            detail="" if call.diff else json.dumps(call.arguments, ensure_ascii=False, indent=2),
            diff=call.diff or None,
            pattern=clean(always) if always else None,
        )
        raw = json.dumps(call.arguments, ensure_ascii=False)
        ours = ToolCall(call.id, call.name, call.arguments, raw)
        answer = await self._people.approval(ours, preview, f"{self._name} asks first")
        if answer.how in ("once", "session"):
            wanted = _ONCE if answer.how == "once" else _SESSION
            self.client.decide(asked, asked.option(*wanted))
            return
        if answer.text.strip():
            self._words.append(answer.text.strip())
        self.client.decide(asked, asked.option(*_REJECT))
