"""The exit codes of the program (rules.md, exit codes)."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from handrail.events import Event, Outcome

OK: Final = 0
FAULT: Final = 1
USAGE: Final = 2
NO_VALUE: Final = 3
HUMAN_REQUIRED: Final = 4
PROVIDER: Final = 5
BOUND: Final = 6
USAGE_LIMIT: Final = 7
CANCELLED: Final = 130
READER_GONE: Final = 141
"""The reader of stdout closed it: 128 + SIGPIPE, as in other programs."""

BY_OUTCOME: Final[Mapping[Outcome, int]] = {
    "completed": OK,
    "submitted": OK,
    "no-submit": NO_VALUE,
    "invalid-submissions": NO_VALUE,
    "human-required": HUMAN_REQUIRED,
    "provider": PROVIDER,
    "turn-limit": BOUND,
    "budget": BOUND,
    "usage-limit": USAGE_LIMIT,
    "cancelled": CANCELLED,
}


def of_run(last: Event | None) -> int:
    """The exit code for the last event of a run; FAULT when there is none."""
    if last is not None and last.type == "run_finished":
        return BY_OUTCOME[last.outcome]
    if last is not None and last.type == "run_interrupted":
        return of_signal(last.signal)
    return FAULT


def of_signal(name: str | None) -> int:
    """128 + the number of the signal `name`, as shells count (rule J7). Quitting counts as SIGHUP."""
    number = getattr(signal, name, None) if name else None
    return 128 + int(number) if isinstance(number, signal.Signals) else 129
