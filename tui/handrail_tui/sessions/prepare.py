"""From options and settings to a session that is ready to run."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from handrail import settings
from handrail.errors import ConfigError
from handrail.toml import short_path
from handrail_tui.sessions._builder import SessionBuilder
from handrail_tui.sessions.model import resolve_model

if TYPE_CHECKING:
    from handrail.agents.agent_session import AgentSession
    from handrail.clock import Clock
    from handrail.events import Event, RunEnded
    from handrail.providers.base import Provider
    from handrail.session import Session
    from handrail.session.spec import SessionSpec
    from handrail.session.writer import JournalWriter
    from handrail_tui.sessions.options import RunOptions
    from handrail_tui.sessions.task import Task

Begin: TypeAlias = "Callable[[], Coroutine[Any, Any, RunEnded]]"
"""Starts a run and returns its last event."""


@dataclass(frozen=True, slots=True)
class PreparedSession:
    """A session that is ready to run. Use it with `with`: its journal is closed at the end.

    `begin` starts the run; None: the session is open and waits for a prompt. `past` is what happened in it before.
    `writer` is None for a session that is not stored.
    """

    session: Session | AgentSession
    settings: settings.Settings
    begin: Begin | None = None
    past: tuple[Event, ...] = ()
    writer: JournalWriter | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the journal."""
        if self.writer is not None:
            self.writer.close()

    @property
    def journal(self) -> str:
        """The path of the journal, for people; empty when the session is not stored."""
        return short_path(self.writer.journal.path) if self.writer else ""

    def resume_hint(self, last: RunEnded) -> str:
        """How to resume a run that is not done; empty when it is, or when the session is not stored."""
        from handrail_tui.view.listing import resume_command

        outcome = None if last.type == "run_interrupted" else last.outcome
        command = resume_command(self.session.id, outcome) if self.writer else ""
        return f"resume: {command}" if command else ""

    @property
    def make_provider(self) -> Callable[[str], Provider] | None:
        """Makes another model in mid-run by its name; None where an agent of others chooses its model itself."""
        return None if self.session.provider is None else self._provider_named

    def _provider_named(self, name: str) -> Provider:
        """A model of the same provider is asked at the same address."""
        from handrail.providers import catalog

        changes: dict[str, Any] = {"model": name}
        now = self.session.provider
        if now is None or name.partition("/")[0] != now.model.provider:
            changes |= {"api": None, "base_url": None}
        resolved = resolve_model(self.settings.model_copy(update=changes))
        return catalog.make_provider(resolved, self.session.clock)


def prepare(
    options: RunOptions, task: Task | None = None, *, attended: bool, default_turns: int | None = None
) -> PreparedSession:
    """The session that the options and the settings describe; its run begins with `task`.

    `default_turns` is the turn limit where nobody set one. Raises ConfigError and click.UsageError, before any
    request is sent.
    """
    from handrail.clock import RealClock
    from handrail.output.types import load_output
    from handrail.session.spec import OutputSpec, SessionSpec
    from handrail.session.store import Store

    if options.agent is not None:
        return _prepare_agent(options, options.agent, task, attended=attended)
    cwd = options.folder
    loaded = settings.load(cwd, flags=options.flags())
    chosen = loaded.settings
    bounds = chosen.bounds
    if default_turns is not None and "max_turns" not in bounds.model_fields_set:
        bounds = bounds.model_copy(update={"max_turns": default_turns})
    output = load_output(options.schema, Path.cwd()) if options.schema else None
    shape = OutputSpec.named(options.schema, Path.cwd()) if options.schema else None
    builder = SessionBuilder.load(loaded, cwd, RealClock())
    writer = new_journal(builder.clock, SessionSpec.by(chosen, builder.resolved.model.name, cwd, shape))
    try:
        session = builder.build(
            writer, bounds=bounds, recovery=chosen.recovery, output=output, attended=attended
        )
    except ValueError as error:  # such as a cost bound without a known price
        writer.close()
        Store().delete(writer.journal.session)
        raise ConfigError(str(error)) from error
    return PreparedSession(session, chosen, begin_with(session, task) if task else None, writer=writer)


def _prepare_agent(options: RunOptions, name: str, task: Task | None, *, attended: bool) -> PreparedSession:
    """A session in which the agent `name` works."""
    from handrail.agents.registry import find
    from handrail.clock import RealClock
    from handrail.session.spec import SessionSpec
    from handrail.session.store import Store
    from handrail_tui.sessions._agents import build_agent

    options.check_agent()
    cwd = options.folder
    chosen = settings.load(cwd, flags=options.flags()).settings
    entry = find(name)
    said = {"approve": chosen.approve} if chosen.approve is not None else {}
    writer = new_journal(RealClock(), SessionSpec(cwd=str(cwd), agent=name, settings=said))
    try:
        session = build_agent(
            entry, writer, chosen, cwd, bounds=chosen.bounds, recovery=chosen.recovery, attended=attended
        )
    except ValueError as error:
        writer.close()
        Store().delete(writer.journal.session)
        raise ConfigError(str(error)) from error
    return PreparedSession(session, chosen, begin_with(session, task) if task else None, writer=writer)


def begin_with(session: Session | AgentSession, task: Task) -> Begin:
    """Starts a run of `task`."""
    return lambda: session.run(task.prompt, context=task.context)


def new_journal(clock: Clock, spec: SessionSpec) -> JournalWriter:
    """The journal of a new session. Raises ConfigError."""
    from handrail.session.journal import JournalError
    from handrail.session.store import Store
    from handrail.session.writer import JournalWriter

    try:
        return JournalWriter(Store().create(clock, meta=spec.meta()), clock)
    except JournalError as error:
        raise ConfigError(f"the session cannot be stored: {error} Check the folder's permissions.") from error
