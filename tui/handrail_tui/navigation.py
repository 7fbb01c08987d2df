"""From a destination to its screen. Sessions are made in a thread; overlays stand over the screen that asked."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from textual.screen import Screen

from handrail.errors import ConfigError
from handrail_tui.controller import destinations as to
from handrail_tui.screens.run import RunScreen

if TYPE_CHECKING:
    from textual.binding import ActiveBinding

    from handrail_tui.sessions.prepare import PreparedSession


@dataclass(frozen=True, slots=True)
class OpenScreen:
    """A session that was opened: what makes its screen, and what closes everything behind it."""

    screen: Callable[[], RunScreen]
    close: Callable[[], None] = lambda: None


def open_session(destination: to.SessionDestination) -> OpenScreen:
    """Make the session of `destination`. Blocks; raises ConfigError."""
    match destination:
        case to.OpenRun():
            return _new_run(destination)
        case to.OpenStored():
            return _stored(destination)
        case to.OpenToRead():
            return _to_read(destination.id, destination.note)
        case to.OpenDemo():
            return _demo(destination)
        case to.OpenReplay():
            return _replay(destination.id)


def overlay(
    destination: to.OpenDemos
    | to.OpenChanges
    | to.OpenDecisions
    | to.OpenQueue
    | to.OpenServers
    | to.OpenHelp
    | to.OpenModels,
    bindings: list[ActiveBinding],
) -> Screen[Any]:
    """The screen of `destination`. `bindings` are those in force where it was asked for."""
    match destination:
        case to.OpenDemos():
            from handrail_tui.screens.demos import DemosScreen

            return DemosScreen(destination.demos)
        case to.OpenChanges():
            from handrail_tui.screens.changes import ChangesScreen

            return ChangesScreen(destination.changes)
        case to.OpenDecisions():
            from handrail_tui.screens.decisions import DecisionsScreen

            return DecisionsScreen(destination.view)
        case to.OpenQueue():
            from handrail_tui.screens.queue import QueueScreen

            return QueueScreen(destination.session, destination.view)
        case to.OpenServers():
            from handrail_tui.screens.servers import ServersScreen

            return ServersScreen(destination.source)
        case to.OpenHelp():
            from handrail_tui.screens.help import HelpScreen

            return HelpScreen(bindings, destination.commands)
        case to.OpenModels():
            from handrail_tui.screens.models import ModelsScreen

            return ModelsScreen(destination.current, destination.use)


def _new_run(wanted: to.OpenRun) -> OpenScreen:
    from handrail_tui.sessions.options import RunOptions
    from handrail_tui.sessions.prepare import prepare
    from handrail_tui.sessions.task import Task

    options = RunOptions(cwd=str(wanted.folder), model=wanted.model)
    try:
        prepared = prepare(options, Task(wanted.prompt), attended=True)
    except click.UsageError as error:
        raise ConfigError(error.format_message()) from error
    return _opened(prepared)


def _stored(wanted: to.OpenStored) -> OpenScreen:
    from handrail_tui.sessions.resume import ResumeRequest, resume

    try:
        return _opened(resume(wanted.id, ResumeRequest(wait=True), attended=True))
    except ConfigError as error:
        if wanted.or_read:
            return _to_read(wanted.id, f"To read only. {error}")
        raise


def _to_read(id: str, note: str) -> OpenScreen:
    from handrail.session.store import Store
    from handrail_tui.screens.replay import ReplayScreen

    events = list(Store().read(id).events())
    return OpenScreen(
        lambda: ReplayScreen(events, plays=False, note=note, home=str(Path.home()), returns=True)
    )


def _demo(wanted: to.OpenDemo) -> OpenScreen:
    from handrail import scenario
    from handrail_tui.sessions.demo import demo_session

    with ExitStack() as stack:
        prepared = stack.enter_context(demo_session(scenario.load(wanted.file), wanted.speed))
        return _opened(prepared, closing=stack.pop_all())


def _replay(id: str) -> OpenScreen:
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
            make_provider=prepared.make_provider,
            returns=True,
        )

    return OpenScreen(screen, close)
