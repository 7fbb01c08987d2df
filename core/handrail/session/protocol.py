"""The one interface of a session: events out, commands in. Live runs, replays and test doubles all have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:  # so that a list of sessions can be shown without importing the loop
    from collections.abc import Callable

    from handrail.clock import Clock
    from handrail.events import Listener, QueuedMessage, RunEnded
    from handrail.loop.people import AnswerKind, ApprovalChoice
    from handrail.policy import Approve
    from handrail.providers.base import Provider
    from handrail.tools.source import ToolSource


class SessionProtocol(Protocol):
    """What a person can see and do. Every command returns at once; its effects arrive as events.

    `Session` says what each command does.
    """

    @property
    def clock(self) -> Clock: ...

    @property
    def running(self) -> bool: ...

    @property
    def tool_source(self) -> ToolSource | None: ...

    def start_servers(self) -> None: ...

    async def end_servers(self) -> None: ...

    def listen(self, listener: Listener, /) -> Callable[[], None]: ...

    async def run(self, prompt: str, *, context: str | None = None) -> RunEnded: ...

    async def resume(self, *, answer: str | None = None) -> RunEnded: ...

    def steer(self, text: str, /) -> str: ...

    def follow_up(self, text: str, /) -> str: ...

    def withdraw(self, id: str, /) -> QueuedMessage | None: ...

    def edit_queued(self, id: str, text: str, /) -> None: ...

    def move_queued(self, id: str, offset: int, /) -> None: ...

    def stop(self) -> None: ...

    def suspend(self, signal: str | None = None, /) -> None: ...

    def skip_wait(self) -> None: ...

    def postpone_wait(self, until: float, /) -> bool: ...

    def retry_now(self) -> None: ...

    def answer(
        self,
        id: str,
        how: AnswerKind,
        text: str = "",
        *,
        secret: bool = False,
    ) -> bool: ...

    def approve(self, id: str, how: ApprovalChoice, text: str = "") -> bool: ...

    def set_recovery(self, on: bool, /) -> None: ...

    def set_provider(self, provider: Provider, /) -> None: ...

    def set_approve(self, mode: Approve, /) -> None: ...

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
