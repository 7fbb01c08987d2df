"""Where a run asks a person and where the answer arrives (rules H2 to H6)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from handrail import events as ev

How: TypeAlias = Literal["resolved", "answered", "declined", "stopped"]
Verdict: TypeAlias = Literal["once", "session", "deny"]
Asked: TypeAlias = ev.HumanRequested | ev.ApprovalRequested


class HumanAbsent(Exception):
    """Nobody is there to answer; the question stays open (rule H4)."""

    def __init__(self, question: ev.HumanRequested) -> None:
        super().__init__(question.needed)
        self.question = question


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person said. `text` may be secret: it goes to who asked and nowhere else."""

    how: str
    text: str = ""
    secret: bool = False


class Desk:
    """Open questions and approvals by id, each waited for by one coroutine.

    `attended` tells whether somebody is there to answer this one. A test or a scripted person answers through the
    session like anybody else.
    """

    def __init__(self, attended: Callable[[Asked], bool]) -> None:
        self.attended = attended
        self._waiting: dict[str, asyncio.Future[Answer]] = {}

    def open(self, id: str) -> None:
        """From now on `id` can be answered: before anybody hears of the question."""
        self._waiting[id] = asyncio.get_running_loop().create_future()

    def close(self, id: str) -> None:
        """Nobody waits for `id` any more."""
        self._waiting.pop(id, None)

    async def wait(self, id: str) -> Answer:
        """Return when the person has answered `id`, which must be open."""
        try:
            return await self._waiting[id]
        finally:
            self.close(id)

    def is_open(self, id: str) -> bool:
        future = self._waiting.get(id)
        return future is not None and not future.done()

    def answer(self, id: str, answer: Answer) -> bool:
        """Hand an answer in. False when nothing of that id is open."""
        future = self._waiting.get(id)
        if future is None or future.done():
            return False
        future.set_result(answer)
        return True
