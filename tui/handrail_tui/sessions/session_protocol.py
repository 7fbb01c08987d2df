"""What the screen needs of a session: events out, commands in. Live sessions and replays implement it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias

from handrail.clock import Clock
from handrail.events import Event, QueuedMessage, RunFinished, RunInterrupted
from handrail.providers.base import Provider

Last: TypeAlias = RunFinished | RunInterrupted
Mode: TypeAlias = Literal["ask", "edits", "all"]


class SessionPort(Protocol):
    """A session as the screen uses it. Every call returns at once; its effects are events."""

    @property
    def clock(self) -> Clock: ...

    @property
    def running(self) -> bool: ...

    def listen(self, listener: Callable[[Event], object], /) -> Callable[[], None]: ...

    async def run(self, prompt: str, *, context: str | None = None) -> Last: ...

    async def resume(self, *, answer: str | None = None) -> Last: ...

    def steer(self, text: str, /) -> str: ...

    def follow_up(self, text: str, /) -> str: ...

    def withdraw(self, id: str, /) -> QueuedMessage | None: ...

    def edit_queued(self, id: str, text: str, /) -> None: ...

    def move_queued(self, id: str, offset: int, /) -> None: ...

    def stop(self) -> None: ...

    def suspend(self, signal: str | None = None, /) -> None: ...

    def skip_wait(self) -> None: ...

    def retry_now(self) -> None: ...

    def answer(
        self,
        id: str,
        how: Literal["resolved", "answered", "declined", "stopped"],
        text: str = "",
        *,
        secret: bool = False,
    ) -> bool: ...

    def approve(self, id: str, how: Literal["once", "session", "deny"], text: str = "") -> bool: ...

    def set_recovery(self, on: bool, /) -> None: ...

    def set_provider(self, provider: Provider, /) -> None: ...

    def set_approve(self, mode: Mode, /) -> None: ...

    def raise_bounds(
        self,
        *,
        max_turns: int = 0,
        max_attempts: int = 0,
        deadline_s: float = 0.0,
        max_total_tokens: int = 0,
        max_cost: float = 0.0,
    ) -> None: ...

    def compact(self) -> None: ...

    def notice(self, text: str, *, level: Literal["info", "warning", "error"] = "info") -> None: ...
