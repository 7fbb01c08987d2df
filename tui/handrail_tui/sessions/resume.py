"""Resuming a stored session: find it, build it again from its header, load its events (rules J4, H4, U7)."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from handrail import settings
from handrail.errors import ConfigError
from handrail.policy import Bounds, RecoveryPolicy
from handrail.toml import short_path
from handrail_tui.sessions._builder import SessionBuilder
from handrail_tui.sessions.prepare import Begin, PreparedSession

if TYPE_CHECKING:
    from handrail.agents.agent_session import AgentSession
    from handrail.clock import Clock
    from handrail.events import RunEnded
    from handrail.session import Session
    from handrail.session.journal import Journal
    from handrail.session.resume import LoadedRun
    from handrail.session.spec import SessionSpec
    from handrail.session.store import Store


@dataclass(frozen=True, slots=True)
class BoundChange:
    """A new value for a bound, or with `relative` an amount to add to it. A bound that was off counts as 0."""

    amount: float
    relative: bool = False

    def apply(self, old: float | None) -> float:
        """The new bound."""
        return (old or 0) + self.amount if self.relative else self.amount


@dataclass(frozen=True, slots=True)
class ResumeRequest:
    """How to resume a session: as it stands, with an answer, or with another prompt.

    `cwd` is where its folder is now, None: where it was. `wait`: a session that is done is opened to wait for a prompt,
    not refused.
    `flags` are settings for the rest of the session, nested by key; `bounds` are changes to its bounds.
    """

    answer: str | None = None
    prompt: str | None = None
    context: str | None = None
    wait: bool = False
    cwd: Path | None = None
    flags: Mapping[str, Any] = field(default_factory=dict)
    bounds: Mapping[str, BoundChange] = field(default_factory=dict)


def last_here(store: Store, folder: Path, *, asking: bool = False) -> str:
    """The id of the newest session of `folder`; with `asking`, of those with an open question.

    Raises ConfigError.
    """
    here = [summary for summary in store.list() if summary.cwd == str(folder)]
    if found := [summary for summary in here if summary.needs] if asking else here:
        return found[0].id
    if here:
        raise ConfigError(
            f"no session of {short_path(folder)} has an open question. `handrail sessions` lists those of all folders."
        )
    raise ConfigError(
        f"{short_path(folder)} has no sessions yet. `handrail sessions` lists those of all folders."
    )


def resume(id: str, request: ResumeRequest, *, attended: bool) -> PreparedSession:
    """Open the session whose id begins with `id` and lock it. Its `begin` is None when it waits for a prompt.

    Raises ConfigError when the session is not there, is running in another process, is damaged, or has nothing to
    resume and no prompt.
    """
    from handrail.clock import RealClock
    from handrail.session.resume import load_run
    from handrail.session.store import Store

    clock = RealClock()
    journal = Store().open(id, clock)
    try:
        past = load_run(journal.contents)
        prepared = _rebuild(journal, past, request, clock, attended)
        session = prepared.session
        start = None if request.wait and _is_done(past) else _start(session, past, request)
        _change_bounds(session, request.bounds)
    except BaseException:
        journal.close()
        raise

    def begin(start: Begin) -> Begin:
        async def run() -> RunEnded:
            for words in journal.notices:
                session.notice(words, level="warning")
            return await start()

        return run

    return replace(prepared, begin=start and begin(start))


def _rebuild(
    journal: Journal, past: LoadedRun, request: ResumeRequest, clock: Clock, attended: bool
) -> PreparedSession:
    """The session, built from its header and loaded with its events."""
    from handrail.output.types import InvalidSubmission
    from handrail.session.spec import made
    from handrail.session.writer import JournalWriter

    id, header = journal.session, journal.contents.header
    spec = made(header.meta if header else {}, id)
    cwd = request.cwd or Path(past.latest("cwd") or spec.cwd)
    if not cwd.is_dir():
        raise ConfigError(
            f"the folder of session {id} is gone: {short_path(cwd)}. "
            f"If it was moved or renamed: handrail resume {id} --cwd DIR"
        )
    if spec.command:
        raise ConfigError(
            f"session {id} followed a program, which cannot be resumed. Run it again: "
            f"handrail gateway --exec -- {shlex.join(spec.command)}"
        )
    loaded = settings.load(cwd, flags=_flags(spec, past, request))
    if spec.agent is not None:
        return _rebuild_agent(journal, past, spec.agent, loaded.settings, cwd, request, attended)
    builder = SessionBuilder.load(loaded, cwd, clock)
    writer = JournalWriter(journal, clock)
    try:
        session = builder.build(
            writer,
            bounds=Bounds(),
            recovery=_recovery(past, loaded.settings, request),
            output=spec.shape.output() if spec.shape else None,
            attended=attended,
        )
        session.load(past.events, past.in_flight)
    except (ValueError, InvalidSubmission) as error:
        raise ConfigError(f"session {id} cannot be restored: {error}") from error
    return PreparedSession(session, loaded.settings, past=past.events, writer=writer)


def _rebuild_agent(
    journal: Journal,
    past: LoadedRun,
    agent: str,
    chosen: settings.Settings,
    cwd: Path,
    request: ResumeRequest,
    attended: bool,
) -> PreparedSession:
    """The same for a session in which an agent of others works."""
    from handrail.agents.registry import find
    from handrail.clock import RealClock
    from handrail.session.writer import JournalWriter
    from handrail_tui.sessions._agents import build_agent

    writer = JournalWriter(journal, RealClock())
    recovery = _recovery(past, chosen, request)
    session = build_agent(
        find(agent), writer, chosen, cwd, bounds=Bounds(), recovery=recovery, attended=attended
    )
    session.load(past.events, past.in_flight)
    return PreparedSession(session, chosen, past=past.events, writer=writer)


def _flags(spec: SessionSpec, past: LoadedRun, request: ResumeRequest) -> dict[str, Any]:
    """The session's settings, the person's changes during the run, and the flags given now; the later one wins.

    A model of another provider does not inherit `api` and `base_url`.
    """
    flags = dict(spec.settings)
    for name in ("model", "approve"):
        flags[name] = request.flags.get(name) or past.latest(name) or flags.get(name)
    if spec.agent is not None:
        flags.pop("model", None)
    elif _provider(flags["model"]) != _provider(spec.settings.get("model")):
        flags |= {"api": None, "base_url": None}
    flags |= request.flags
    return {name: value for name, value in flags.items() if value is not None}


def _provider(model: Any) -> str:
    return str(model).partition("/")[0]


def _recovery(past: LoadedRun, chosen: settings.Settings, request: ResumeRequest) -> RecoveryPolicy:
    """The recovery settings that the run began with, with the flags given now."""
    started = past.started
    try:
        policy = RecoveryPolicy.model_validate(started.recovery) if started else chosen.recovery
    except ValidationError:  # another version knew other settings
        policy = chosen.recovery
    changes = dict(request.flags.get("recovery", {}))
    if isinstance(past.latest("recovery"), bool):
        changes = {"enabled": past.latest("recovery"), **changes}
    return policy.model_copy(update=changes)


def _change_bounds(session: Session | AgentSession, changes: Mapping[str, BoundChange]) -> None:
    """Raises ConfigError for invalid bounds."""
    if not changes:
        return
    bounds = session.state.bounds.model_dump()
    for name, change in changes.items():
        bounds[name] = change.apply(bounds[name])
    try:
        session.set_bounds(Bounds.model_validate(bounds))
    except ValidationError as error:
        first = error.errors()[0]
        flag = str(first["loc"][0]).removesuffix("_s").replace("_", "-")
        raise ConfigError(f"--{flag}: {first['msg']}, not {first['input']!r}.") from None
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _is_done(past: LoadedRun) -> bool:
    """Whether the session's last run completed, or no run was ever started."""
    finished = past.finished
    return past.started is None or (finished is not None and finished.outcome in ("completed", "submitted"))


def _start(session: Session | AgentSession, past: LoadedRun, request: ResumeRequest) -> Begin:
    """How to continue. Raises ConfigError when there is nothing to resume."""
    prompt, id = request.prompt, session.id
    if prompt is not None:
        return lambda: session.run(prompt, context=request.context)
    if past.started is None:
        raise ConfigError(f'session {id} has no run to resume. Start one: --prompt "…"')
    finished = past.finished
    if finished is not None and _is_done(past):
        raise ConfigError(
            f"session {id} is already finished.\n"
            f'Continue it with a new prompt: handrail resume {id} --prompt "…"\n'
            f"or start a new session from an earlier turn: handrail sessions fork {id} --at TURN"
        )
    if request.answer is not None and not session.state.questions:
        raise ConfigError(f"session {id} has no open question; --answer does not apply.")
    return lambda: session.resume(answer=request.answer)
