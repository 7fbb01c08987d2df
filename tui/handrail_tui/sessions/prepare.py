"""From options and settings to a session that is ready to run."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import click

from handrail import instructions, settings, trust
from handrail.errors import ConfigError
from handrail.toml import short_path
from handrail_tui.lines import faults
from handrail_tui.sessions.options import RunOptions
from handrail_tui.view.text import one_line

if TYPE_CHECKING:
    from handrail.clock import Clock
    from handrail.events import Event, Instruction, RunEnded, RunFinished, RunInterrupted
    from handrail.output.types import Output
    from handrail.policy import Bounds, RecoveryPolicy
    from handrail.providers.base import Provider
    from handrail.providers.catalog import Resolved
    from handrail.session import Session
    from handrail.session.spec import SessionSpec
    from handrail.session.writer import JournalWriter
    from handrail.tools.base import Tool
    from handrail_tui.program import UiPrefs
    from handrail_tui.sessions.task import Task

Begin: TypeAlias = "Callable[[], Coroutine[Any, Any, RunEnded]]"
"""Begins a run; what comes of it is its last event."""

NO_MODEL = """\
no model is set up yet. One of these is enough:

  a key in the environment        export ANTHROPIC_API_KEY=…   (or OPENAI_API_KEY, OPENROUTER_API_KEY, …)
                                  handrail run "what to do"
  a server on this machine        handrail run --model ollama/qwen3 "what to do"
  any OpenAI-style server         handrail run --base-url http://127.0.0.1:8000/v1 --model my/NAME "…"
  a model to keep                 handrail config edit         (model = "provider/name")

`handrail models` lists what can be reached from here, `handrail doctor` says what is missing.
`handrail demo` needs none of it."""


@dataclass(frozen=True, slots=True)
class PreparedSession:
    """A session, the settings that it was made by, and where it is kept. Used with `with`: its journal is closed."""

    session: Session
    settings: settings.Settings
    keeper: JournalWriter | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the journal go."""
        if self.keeper is not None:
            self.keeper.close()

    @property
    def taste(self) -> UiPrefs:
        """How the screen is wanted."""
        return ui_prefs_of(self.settings)

    @property
    def journal(self) -> str:
        """Where the session is kept; empty when it is not."""
        return short_path(self.keeper.journal.path) if self.keeper else ""

    def show(self, begin: Begin | None, past: Sequence[Event] = ()) -> RunFinished | RunInterrupted | None:
        """Carry the run that `begin` begins on the screen; `past` is what happened in the session before."""
        from handrail_tui.app import run_session

        return run_session(
            self.session,
            begin,
            past=past,
            taste=self.taste,
            journal=self.journal,
            make_provider=self.provider_named,
        )

    def asked(self, task: Task) -> Begin:
        """What begins a run of `task`."""
        return lambda: self.session.run(task.prompt, context=task.context)

    def goodbye(self, last: RunEnded) -> str:
        """How to go on with what is not done; empty when it is, or when nothing is kept."""
        from handrail_tui.view.listing import going_on

        outcome = None if last.type == "run_interrupted" else last.outcome
        command = going_on(self.session.id, outcome) if self.keeper else ""
        return f"go on: {command}" if command else ""

    def provider_named(self, name: str) -> Provider:
        """Another model in mid-run; one of the same provider is asked where this one is."""
        from handrail.providers import catalog

        changes: dict[str, Any] = {"model": name}
        if name.partition("/")[0] != self.session.provider.model.provider:
            changes |= {"api": None, "base_url": None}
        resolved = resolve(self.settings.model_copy(update=changes))
        return catalog.make_provider(resolved, self.session.clock)


def prepare(options: RunOptions, *, attended: bool, default_turns: int | None = None) -> PreparedSession:
    """The session that the options and the settings ask for. `default_turns` holds where nobody set a bound.

    Raises ConfigError and click.UsageError, before anything is spent.
    """
    from handrail.clock import RealClock
    from handrail.output.types import load_output
    from handrail.session.spec import OutputSpec, SessionSpec
    from handrail.session.store import Store

    cwd = options.folder
    loaded = settings.load(cwd, flags=options.flags())
    chosen = loaded.settings
    bounds = chosen.bounds
    if default_turns is not None and "max_turns" not in bounds.model_fields_set:
        bounds = bounds.model_copy(update={"max_turns": default_turns})
    output = load_output(options.schema, Path.cwd()) if options.schema else None
    shape = OutputSpec.named(options.schema, Path.cwd()) if options.schema else None
    parts = Parts.of(loaded, cwd, RealClock())
    keeper = _keeper(parts.clock, SessionSpec.by(chosen, parts.resolved.model.name, cwd, shape))
    try:
        session = parts.session(
            keeper, bounds=bounds, recovery=chosen.recovery, output=output, attended=attended
        )
    except ValueError as error:  # what a session refuses: a cost bound without a price
        keeper.close()
        Store().delete(keeper.journal.session)
        raise ConfigError(str(error)) from error
    return PreparedSession(session, chosen, keeper)


@dataclass(frozen=True, slots=True)
class Parts:
    """What a session is put together from, once the settings are known: everything that may be refused is there."""

    chosen: settings.Settings
    cwd: Path
    clock: Clock
    resolved: Resolved
    provider: Provider
    tools: list[Tool]
    instructions: tuple[Instruction, ...]

    @classmethod
    def of(cls, loaded: settings.LoadedSettings, cwd: Path, clock: Clock) -> Parts:
        """Raises ConfigError."""
        from handrail.providers import catalog
        from handrail.tools import builtin_tools

        chosen = loaded.settings
        system = None if chosen.system is None else Path(chosen.system).expanduser()
        trusted = trust.is_trusted(trust.project_root(cwd), also=chosen.trusted)
        if not trusted:
            _tell_untrusted(cwd, loaded)
        tools = builtin_tools() if chosen.tools is None else builtin_tools(chosen.tools)
        in_force = instructions.load(cwd, trusted=trusted, system=system)
        resolved = resolve(chosen)
        provider = catalog.make_provider(resolved, clock)
        return cls(chosen, cwd, clock, resolved, provider, tools, in_force)

    def session(
        self,
        keeper: JournalWriter,
        *,
        bounds: Bounds,
        recovery: RecoveryPolicy,
        output: Output[Any] | None,
        attended: bool,
    ) -> Session:
        """The session, kept by `keeper`. Raises ValueError for what a session refuses."""
        from handrail.session import Session
        from handrail.session.control import Control

        chosen = self.chosen
        session = Session(
            self.provider,
            tools=self.tools,
            cwd=self.cwd,
            instructions=self.instructions,
            bounds=bounds,
            recovery=recovery,
            approve=chosen.approve,
            clock=self.clock,
            record=keeper,
            id=keeper.journal.session,
            output=output,
            attended=attended,
            max_output=chosen.max_output,
            effort=chosen.effort,
            secrets=self._secrets(),
        )
        session.listen(Control(session, keeper.journal.path.parent))
        if chosen.hooks != settings.Hooks():
            self._hook(session)
        return session

    def _hook(self, session: Session) -> None:
        """Let the person's own commands hear of the run."""
        from handrail_tui.sessions.hooks import HookRunner

        session.listen(
            HookRunner(
                self.chosen.hooks,
                session=session.id,
                cwd=self.cwd,
                tell=lambda words: session.notice(words, level="warning"),
            )
        )

    def _secrets(self) -> list[str]:
        """The keys that a run could come across: of the environment, of its model, of the settings (rule J5)."""
        from handrail.mask import key_values
        from handrail.session.spec import secrets_in

        keys = [self.resolved.api_key, *(p.key for p in self.chosen.providers.values())]
        known = [key for key in keys if key and not key.startswith(("!", "keyring:"))]
        return [*key_values(os.environ), *known, *secrets_in(self.resolved.headers, self.resolved.base_url)]


def ui_prefs_of(chosen: settings.Settings) -> UiPrefs:
    """How the screen is wanted."""
    from handrail_tui.program import UiPrefs

    return UiPrefs(chosen.theme, settings.user_file().parent / "themes", chosen.keys)


def resolve(chosen: settings.Settings) -> Resolved:
    """The model of the settings, else of the first key that is found. Raises ConfigError."""
    from handrail.providers import catalog

    name = chosen.model or catalog.default_model(os.environ, chosen.providers)
    if name is None:
        raise ConfigError(NO_MODEL)
    return catalog.resolve(
        name,
        api=chosen.api,
        base_url=chosen.base_url,
        environ=os.environ,
        provider_settings=chosen.providers,
        model_settings=chosen.models,
    )


def _keeper(clock: Clock, made: SessionSpec) -> JournalWriter:
    """A new session's place on the disk. Raises ConfigError."""
    from handrail.session.journal import JournalError
    from handrail.session.store import Store
    from handrail.session.writer import JournalWriter

    try:
        return JournalWriter(Store().create(clock, meta=made.meta()), clock)
    except JournalError as error:
        raise ConfigError(f"the session cannot be kept: {error} Mend the rights of that folder.") from error


def ask_for_trust(cwd: Path) -> None:
    """On a terminal: ask once whether a project that brings instructions or weighty settings is trusted."""
    root = trust.project_root(cwd)
    loaded = settings.load(cwd)
    if trust.is_trusted(root, also=loaded.settings.trusted) or trust.is_refused(root):
        return
    if brings := _brings(cwd, loaded):
        counts = f"{short_path(root)} brings {brings}, which counts only if you trust this folder."
        question = one_line(f"{counts} Trust it?", 500)
        if click.confirm(question, default=False, err=True):
            trust.trust(root)
        else:
            trust.distrust(root)


def _tell_untrusted(cwd: Path, loaded: settings.LoadedSettings) -> None:
    if brings := _brings(cwd, loaded):
        faults.say(f"note: {brings} of this project is not used until you say: handrail config trust")


def _brings(cwd: Path, loaded: settings.LoadedSettings) -> str:
    """What a project would add if it were trusted, in words."""
    parts = sorted({path.name for path in instructions.find(cwd)})
    if loaded.held_back:
        parts.append(f"{settings.PROJECT_FILE} ({', '.join(loaded.held_back)})")
    return " and ".join(parts)
