"""What can be opened from a list: a new run, a stored session, a demo. SessionSpec in a thread; raises ConfigError."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from handrail.errors import ConfigError
from handrail_tui.program import OpenScreen
from handrail_tui.screens.run import RunScreen

if TYPE_CHECKING:
    from handrail_tui.sessions.prepare import PreparedSession


def new_run(prompt: str, folder: Path, model: str | None = None) -> OpenScreen:
    """A run of `prompt` in `folder`, by the settings; `model` instead of theirs."""
    from handrail_tui.sessions.options import RunOptions
    from handrail_tui.sessions.prepare import prepare
    from handrail_tui.sessions.task import Task

    options = RunOptions(cwd=str(folder), model=model)
    try:
        prepared = prepare(options, Task(prompt), attended=True)
    except click.UsageError as error:
        raise ConfigError(error.format_message()) from error
    return _opened(prepared)


def stored(id: str) -> OpenScreen:
    """A stored session, gone on with as it stands; one that is done is opened to read and to ask for more."""
    from handrail_tui.sessions.resume import ResumeRequest, resume

    return _opened(resume(id, ResumeRequest(wait=True), attended=True))


def done(id: str) -> OpenScreen:
    """A session that is done: to read, and to ask for more where its model can be reached."""
    try:
        return stored(id)
    except ConfigError as error:
        return to_read(id, f"To read only. {error}")


def to_read(id: str, note: str) -> OpenScreen:
    """What a session has done so far; `note` says why nothing can be asked."""
    from handrail.session.store import Store
    from handrail_tui.screens.replay import ReplayScreen

    events = list(Store().read(id).events())
    return OpenScreen(
        lambda: ReplayScreen(events, plays=False, note=note, home=str(Path.home()), returns=True)
    )


def a_demo(file: Path, speed: float) -> OpenScreen:
    """A scenario, played `speed` times as fast for somebody who watches."""
    from handrail import scenario
    from handrail_tui.sessions.demo import demo_session

    with ExitStack() as stack:
        prepared = stack.enter_context(demo_session(scenario.load(file), speed))
        return _opened(prepared, closing=stack.pop_all())


def replayed(id: str) -> OpenScreen:
    """A stored session, to be watched again."""
    from handrail.session.store import Store
    from handrail_tui.screens.replay import ReplayScreen
    from handrail_tui.sessions.replay import recorded

    events = recorded(Store().read(id))
    return OpenScreen(lambda: ReplayScreen(events, home=str(Path.home()), returns=True))


def _opened(prepared: PreparedSession, closing: ExitStack | None = None) -> OpenScreen:
    """`closing` is what goes with it, besides its journal."""

    def close() -> None:
        with closing or ExitStack():
            prepared.close()

    def screen() -> RunScreen:
        return RunScreen(
            prepared.session,
            begin=prepared.begin,
            past=prepared.past,
            home=str(Path.home()),
            journal=prepared.journal,
            make_provider=prepared.provider_named,
            returns=True,
        )

    return OpenScreen(screen, close)
