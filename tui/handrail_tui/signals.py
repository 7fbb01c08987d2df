"""What the signals of a terminal and of an operating system mean for a run in lines (rule J7)."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from handrail_tui.exit_codes import CANCELLED


class Stoppable(Protocol):
    """What a signal does to a session."""

    def stop(self) -> object: ...

    def suspend(self, signal: str | None = None, /) -> object: ...


@contextmanager
def handled(session: Stoppable) -> Iterator[None]:
    """Inside: Ctrl-C stops the run, a second one ends the program at once; SIGTERM and SIGHUP suspend it."""
    loop = asyncio.get_running_loop()
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
    known = [(getattr(signal, name), call) for name, call in calls.items() if hasattr(signal, name)]
    for number, call in known:
        with suppress(NotImplementedError, RuntimeError):  # a platform without, or not the main thread
            loop.add_signal_handler(number, call)
    try:
        yield
    finally:
        for number, _ in known:
            with suppress(NotImplementedError, RuntimeError, ValueError):
                loop.remove_signal_handler(number)
