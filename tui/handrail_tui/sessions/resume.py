"""A stored session, taken up again: found, made anew from its header, restored from its events (rules J4, H4, U7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from handrail import settings
from handrail.errors import ConfigError
from handrail.policy import Bounds, RecoveryPolicy
from handrail.toml import short_path
from handrail_tui.sessions.prepare import Begin, Parts, PreparedSession
from handrail_tui.view import wording

if TYPE_CHECKING:
    from handrail.clock import Clock
    from handrail.events import RunEnded
    from handrail.session import Session
    from handrail.session.journal import Journal
    from handrail.session.resume import LoadedRun
    from handrail.session.spec import SessionSpec
    from handrail.session.store import Store


@dataclass(frozen=True, slots=True)
class Change:
    """A bound as it is to be: `by` itself, or so much `more` than it was; what had no bound begins at nothing."""

    by: float
    more: bool = False

    def of(self, old: float | None) -> float:
        """The bound that is asked for."""
        return (old or 0) + self.by if self.more else self.by


@dataclass(frozen=True, slots=True)
class ResumeRequest:
    """What the person wants of a stored session: to go on, with an answer or with another prompt.

    `wait`: one that is done is not refused, but opened and waits for a prompt.
    `flags` are settings that hold from now on, nested by key; `bounds` how its bounds are to be.
    """

    answer: str | None = None
    prompt: str | None = None
    context: str | None = None
    wait: bool = False
    flags: Mapping[str, Any] = field(default_factory=dict)
    bounds: Mapping[str, Change] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ResumedSession:
    """A session that was taken up, and how it goes on. `waits`: it is done, and does so with a new prompt only."""

    launch: PreparedSession
    past: LoadedRun
    begin: Begin
    waits: bool = False

    def show(self) -> RunEnded | None:
        """Go on on the screen, where its past is to be seen."""
        return self.launch.show(self.begin, self.past.events)


def last_here(store: Store, folder: Path, *, asking: bool = False) -> str:
    """The id of the newest session that worked in `folder`; `asking`: of those that ask something.

    Raises ConfigError.
    """
    here = [summary for summary in store.list() if summary.cwd == str(folder)]
    if found := [summary for summary in here if summary.needs] if asking else here:
        return found[0].id
    if here:
        raise ConfigError(
            f"no session of {short_path(folder)} asks anything. `handrail sessions` says which one does."
        )
    raise ConfigError(
        f"no session worked in {short_path(folder)} yet. `handrail sessions` lists those of all folders."
    )


def resume(id: str, wish: ResumeRequest, *, attended: bool) -> ResumedSession:
    """Take up the session whose id begins with `id`; from now on it is held by us. Used with `with again.launch`.

    Raises ConfigError for a session that is not there, that another program holds, that is damaged, or that has
    nothing open and no prompt to begin anew with.
    """
    from handrail.clock import RealClock
    from handrail.session.resume import load_run
    from handrail.session.store import Store

    clock = RealClock()
    journal = Store().open(id, clock)
    try:
        past = load_run(journal.contents)
        launch = _launch(journal, past, wish, clock, attended)
        waits = wish.wait and _is_done(past)
        way = launch.session.resume if waits else _way(launch.session, past, wish)
        _change_bounds(launch.session, wish.bounds)
    except BaseException:
        journal.close()
        raise

    async def begin() -> RunEnded:
        for words in journal.notices:
            launch.session.notice(words, level="warning")
        return await way()

    return ResumedSession(launch, past, begin, waits)


def _launch(
    journal: Journal, past: LoadedRun, wish: ResumeRequest, clock: Clock, attended: bool
) -> PreparedSession:
    """The session, made again and restored."""
    from handrail.output.types import InvalidSubmission
    from handrail.session.spec import made
    from handrail.session.writer import JournalWriter

    id, header = journal.session, journal.contents.header
    known = made(header.meta if header else {}, id)
    cwd = Path(known.cwd)
    if not cwd.is_dir():
        raise ConfigError(f"session {id} worked in {short_path(cwd)}, which is no longer a folder.")
    loaded = settings.load(cwd, flags=_flags(known, past, wish))
    parts = Parts.of(loaded, cwd, clock)
    keeper = JournalWriter(journal, clock)
    try:
        session = parts.session(
            keeper,
            bounds=Bounds(),
            recovery=_recovery(past, loaded.settings, wish),
            output=known.shape.output() if known.shape else None,
            attended=attended,
        )
        session.load(past.events, past.in_flight)
    except (ValueError, InvalidSubmission) as error:
        raise ConfigError(f"session {id} cannot be made again: {error}") from error
    return PreparedSession(session, loaded.settings, keeper)


def _flags(known: SessionSpec, past: LoadedRun, wish: ResumeRequest) -> dict[str, Any]:
    """How the session was made, what the person changed in it, and what is said now: the later one counts.

    The address of one provider is not that of another.
    """
    flags = dict(known.settings)
    for name in ("model", "approve"):
        flags[name] = wish.flags.get(name) or past.latest(name) or flags.get(name)
    if _provider(flags["model"]) != _provider(known.settings.get("model")):
        flags |= {"api": None, "base_url": None}
    flags |= wish.flags
    return {name: value for name, value in flags.items() if value is not None}


def _provider(model: Any) -> str:
    return str(model).partition("/")[0]


def _recovery(past: LoadedRun, chosen: settings.Settings, wish: ResumeRequest) -> RecoveryPolicy:
    """Recovery's settings as the run began with them, with what is said now."""
    started = past.started
    try:
        policy = RecoveryPolicy.model_validate(started.recovery) if started else chosen.recovery
    except ValidationError:  # another version knew other settings
        policy = chosen.recovery
    changes = dict(wish.flags.get("recovery", {}))
    if isinstance(past.latest("recovery"), bool):
        changes = {"enabled": past.latest("recovery"), **changes}
    return policy.model_copy(update=changes)


def _change_bounds(session: Session, changes: Mapping[str, Change]) -> None:
    """Raises ConfigError for bounds that cannot be."""
    if not changes:
        return
    bounds = session.state.bounds.model_dump()
    for name, change in changes.items():
        bounds[name] = change.of(bounds[name])
    try:
        session.set_bounds(Bounds.model_validate(bounds))
    except ValidationError as error:
        first = error.errors()[0]
        flag = str(first["loc"][0]).removesuffix("_s").replace("_", "-")
        raise ConfigError(f"--{flag}: {first['msg']}, not {first['input']!r}.") from None
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _is_done(past: LoadedRun) -> bool:
    """Whether the last run of the session came to what it was for, or none was ever begun."""
    finished = past.finished
    return past.started is None or (finished is not None and finished.outcome in ("completed", "submitted"))


def _way(session: Session, past: LoadedRun, wish: ResumeRequest) -> Begin:
    """How the session goes on. Raises ConfigError when there is nothing to go on with."""
    prompt, id = wish.prompt, session.id
    if prompt is not None:
        return lambda: session.run(prompt, context=wish.context)
    if past.started is None:
        raise ConfigError(f'session {id} holds no run: it ended before it began. Give it one: --prompt "…"')
    finished = past.finished
    if finished is not None and _is_done(past):
        raise ConfigError(
            f"session {id} is done: {wording.outcome(finished)[0].lower()}.\n"
            f'Ask for more in it: handrail resume {id} --prompt "…"\n'
            f"or begin beside it, from an earlier turn: handrail sessions fork {id} --at TURN"
        )
    if wish.answer is not None and not session.state.questions:
        raise ConfigError(f"session {id} asks nothing: there is no open question for --answer.")
    return lambda: session.resume(answer=wish.answer)
