"""Scenarios as sessions that can be watched, and the demos that come with the program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Final

from handrail_tui.sessions.prepare import PreparedSession, begin_with
from handrail_tui.sessions.task import Task

if TYPE_CHECKING:
    from handrail.scenario import Scenario

_ANSWERS_AFTER_S: Final = 30.0
"""Seconds before the scenario answers its own question, so that a person can answer first."""


def builtin_demos() -> dict[str, Path]:
    """The demos that come with the program, by name, in order."""
    with as_file(files("handrail_tui") / "demos") as folder:
        return {path.stem.lstrip("0123456789").lstrip("-"): path for path in sorted(folder.glob("*.toml"))}


@contextmanager
def demo_session(
    scenario: Scenario, speed: float | None, *, trusted: bool = True
) -> Iterator[PreparedSession]:
    """A session that plays `scenario` in a temporary folder: `speed` times as fast, at once where it is None.

    Not `trusted`: its real tools are confined to that folder (rule H7).
    """
    from handrail import settings
    from handrail.clock import ScaledClock, VirtualClock
    from handrail.scenario.play import session_for, working_folder

    with working_folder(scenario) as cwd:
        session = session_for(
            scenario,
            VirtualClock() if speed is None else ScaledClock(speed),
            cwd=cwd,
            thinks_s=0.0 if speed is None else _ANSWERS_AFTER_S,
            attended=lambda asked: speed is not None,
            trusted=trusted,
        )
        yield PreparedSession(
            session, settings.load(Path.cwd()).settings, begin_with(session, Task(scenario.prompt))
        )
