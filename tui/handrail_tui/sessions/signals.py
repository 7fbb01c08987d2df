"""Signals of the terminal and the operating system during a run in lines (rule J7)."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Protocol

from handrail_tui.lines.exit_codes import CANCELLED


class Stoppable(Protocol):
    """What a signal does to a session."""

    def stop(self) -> object: ...

    def suspend(self, signal: str | None = None, /) -> object: ...


@contextmanager
def handled(session: Stoppable) -> Iterator[None]:
    """Inside: Ctrl-C stops the run, a second one ends the program at once; SIGTERM and SIGHUP suspend it."""
    pressed = 0

    def interrupt() -> None:
        nonlocal pressed
        pressed += 1
        if pressed > 1:
            os._exit(CANCELLED)
        session.stop()

    calls: dict[str, Callable[[], object]] = {
        "SIGINT": interrupt,
        "SIGTERM": lambda: session.suspend("SIGTERM"),
        "SIGHUP": lambda: session.suspend("SIGHUP"),
    }
    listen(calls)
    try:
        yield
    finally:
        ignore(calls)


def listen(calls: Mapping[str, Callable[[], object]]) -> None:
    """Handle these signals, by name, in the running loop, where the platform and the thread support it."""
    loop = asyncio.get_running_loop()
    for name, call in calls.items():
        if number := getattr(signal, name, None):
            with suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(number, call)


def ignore(names: Iterable[str]) -> None:
    """Stop handling these signals."""
    loop = asyncio.get_running_loop()
    for name in names:
        if number := getattr(signal, name, None):
            with suppress(NotImplementedError, RuntimeError, ValueError):
                loop.remove_signal_handler(number)
