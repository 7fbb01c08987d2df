"""From options and settings to a session that is ready to run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import click

from handrail import instructions, settings, trust
from handrail._version import __version__
from handrail.errors import ConfigError
from handrail.toml_file import short_path
from handrail_tui import faults
from handrail_tui.options import RunOptions
from handrail_tui.text import one_line

if TYPE_CHECKING:
    from handrail.clock import Clock
    from handrail.events import RunFinished, RunInterrupted
    from handrail.providers.base import Provider
    from handrail.providers.catalog import Resolved
    from handrail.session import Session
    from handrail.session.keeper import Keeper
    from handrail_tui.task import Task

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
class Launch:
    """A session, the settings that it was made by, and where it is kept. Used with `with`: its journal is closed."""

    session: Session
    settings: settings.Settings
    keeper: Keeper | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self.keeper is not None:
            self.keeper.close()

    def show(self, task: Task) -> RunFinished | RunInterrupted | None:
        """Run the task on the screen."""
        from handrail_tui.app import run_session

        return run_session(
            self.session,
            task.prompt,
            context=task.context,
            theme=self.settings.theme,
            themes=settings.user_file().parent / "themes",
            keys=self.settings.keys,
            journal=short_path(self.keeper.journal.path) if self.keeper else "",
            make_provider=self._provider_named,
        )

    def _provider_named(self, name: str) -> Provider:
        """Another model in mid-run; one of the same provider is asked where this one is."""
        from handrail.providers import catalog

        changes: dict[str, Any] = {"model": name}
        if name.partition("/")[0] != self.session.provider.model.provider:
            changes |= {"api": None, "base_url": None}
        resolved = resolve(self.settings.model_copy(update=changes))
        return catalog.make_provider(resolved, self.session.clock)


def prepare(options: RunOptions, *, attended: bool, default_turns: int | None = None) -> Launch:
    """The session that the options and the settings ask for. `default_turns` holds where nobody set a bound.

    Raises ConfigError and click.UsageError, before anything is spent.
    """
    from handrail.clock import RealClock
    from handrail.mask import key_values
    from handrail.output import load_output
    from handrail.providers import catalog
    from handrail.session import Session
    from handrail.session.store import Store
    from handrail.tools import builtin_tools

    cwd = options.folder
    clock = RealClock()
    loaded = settings.load(cwd, flags=options.flags())
    chosen = loaded.settings
    bounds = chosen.bounds
    if default_turns is not None and "max_turns" not in bounds.model_fields_set:
        bounds = bounds.model_copy(update={"max_turns": default_turns})
    system = None if chosen.system is None else Path(chosen.system).expanduser()
    trusted = trust.is_trusted(trust.project_root(cwd), also=chosen.trusted)
    if not trusted:
        _tell_untrusted(cwd, loaded)
    tools = builtin_tools() if chosen.tools is None else builtin_tools(chosen.tools)
    output = load_output(options.schema, Path.cwd()) if options.schema else None
    in_force = instructions.load(cwd, trusted=trusted, system=system)
    resolved = resolve(chosen)
    provider = catalog.make_provider(resolved, clock)
    keeper = _keeper(clock, cwd)
    try:
        session = Session(
            provider,
            tools=tools,
            cwd=cwd,
            instructions=in_force,
            bounds=bounds,
            recovery=chosen.recovery,
            approve=chosen.approve,
            clock=clock,
            record=keeper,
            id=keeper.journal.session,
            output=output,
            attended=attended,
            max_output=chosen.max_output,
            effort=chosen.effort,
            secrets=[*key_values(os.environ), *([resolved.api_key] if resolved.api_key else [])],
        )
    except ValueError as error:  # what a session refuses: a cost bound without a price
        keeper.close()
        Store().delete(keeper.journal.session)
        raise ConfigError(str(error)) from error
    return Launch(session, chosen, keeper)


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


def _keeper(clock: Clock, cwd: Path) -> Keeper:
    """A new session's place on the disk. Raises ConfigError."""
    from handrail.session.journal import JournalError
    from handrail.session.keeper import Keeper
    from handrail.session.store import Store

    try:
        return Keeper(Store().create(clock, meta={"version": __version__, "cwd": str(cwd)}), clock)
    except JournalError as error:
        raise ConfigError(f"the session cannot be kept: {error} Mend the rights of that folder.") from error


def ask_for_trust(cwd: Path) -> None:
    """On a terminal: ask once whether a project that brings instructions or weighty settings is trusted."""
    root = trust.project_root(cwd)
    loaded = settings.load(cwd)
    if trust.is_trusted(root, also=loaded.settings.trusted) or trust.is_refused(root):
        return
    if brings := _brings(cwd, loaded):
        question = one_line(f"{short_path(root)} brings {brings}. Do you trust this folder?", 500)
        if click.confirm(question, default=False, err=True):
            trust.trust(root)
        else:
            trust.distrust(root)


def _tell_untrusted(cwd: Path, loaded: settings.Loaded) -> None:
    if brings := _brings(cwd, loaded):
        faults.say(f"note: {brings} of this project is not used until you say: handrail config trust")


def _brings(cwd: Path, loaded: settings.Loaded) -> str:
    """What a project would add if it were trusted, in words."""
    parts = sorted({path.name for path in instructions.find(cwd)})
    if loaded.held_back:
        parts.append(f"{settings.PROJECT_FILE} ({', '.join(loaded.held_back)})")
    return " and ".join(parts)
