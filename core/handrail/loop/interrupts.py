"""Stop, deadline and the other things that end an await at once (rule L9).

A `Scope` works as asyncio.timeout does: firing it cancels the task that is inside, and the scope swallows exactly that
cancellation. A cancellation from outside passes through (rule S7). No child task is needed, so a scope costs next to
nothing when nothing fires.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Literal, TypeAlias

Cause: TypeAlias = Literal[
    "stop", "deadline", "suspend", "idle", "retry", "skip", "steer", "recovery_off", "nobody"
]


class Scope:
    """`with interrupts.scope() as scope: await …`; afterwards `scope.cause` says what ended it, None for nothing."""

    def __init__(self, owner: Interrupts) -> None:
        self._owner = owner
        self._open = False
        self._delivered = False
        self.cause: Cause | None = None

    def __enter__(self) -> Scope:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a scope needs a running task")
        self._task, self._cancelling = task, task.cancelling()
        self._open = True
        self._owner._scopes.append(self)
        if self._owner.cause is not None:
            self.interrupt(self._owner.cause)
        return self

    def interrupt(self, cause: Cause) -> None:
        """End what is awaited inside. The first cause counts."""
        if not self._open or self.cause is not None:
            return
        self.cause = cause
        if asyncio.current_task() is self._task:
            # From inside itself: the cancellation must find the task at an await that is still inside.
            asyncio.get_running_loop().call_soon(self._deliver)
        else:
            self._deliver()

    def _deliver(self) -> None:
        if self._open and not self._delivered:
            self._delivered = True
            self._task.cancel()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._open = False
        self._owner._scopes.remove(self)
        if self.cause is None or not self._delivered:
            return False
        mine = self._task.uncancel() <= self._cancelling
        return mine and kind is not None and issubclass(kind, asyncio.CancelledError)


class Interrupts:
    """What may end a run's awaits. `cause` is latched until `clear`: stop, deadline and suspend hold for the run."""

    def __init__(self) -> None:
        self._scopes: list[Scope] = []
        self.cause: Cause | None = None

    def scope(self) -> Scope:
        return Scope(self)

    def fire(self, cause: Cause) -> None:
        """End every await of the run, now and from now on. A person's stop outranks a deadline."""
        if self.cause is None or cause == "stop":
            self.cause = cause
        for scope in tuple(self._scopes):
            scope.interrupt(cause)

    def clear(self) -> None:
        self.cause = None
