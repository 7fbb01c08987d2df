"""The command line in this process, with a model whose replies were written down and waits that take no time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from handrail import events as ev
from handrail.clock import EPOCH, Clock, VirtualClock
from handrail.providers.base import ModelInfo
from handrail.providers.catalog import Resolved
from handrail.providers.scripted import ScriptedProvider, ScriptedReply
from handrail.session.records import read_journal
from handrail.session.resume import LoadedRun, load_run
from handrail.session.store import Store
from handrail_tui.main import main

WHERE = ("--model", "my/model", "--base-url", "http://127.0.0.1:9/v1")


@dataclass
class Ended:
    """A command that has ended."""

    code: int
    out: str
    err: str


@dataclass
class ScriptedProgram:
    """`handrail` with scripted models. `resolved` and `models` keep what each command asked for, in order."""

    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]
    replies: Sequence[ScriptedReply] = ()
    resolved: list[Resolved] = field(default_factory=list)
    models: list[ScriptedProvider] = field(default_factory=list)
    now: float = EPOCH

    def __post_init__(self) -> None:
        self.monkeypatch.setattr("handrail.providers.catalog.make_provider", self._provider)
        self.monkeypatch.setattr("handrail.clock.RealClock", self._clock)

    def _provider(self, resolved: Resolved, clock: Clock) -> ScriptedProvider:
        self.resolved.append(resolved)
        self.models.append(ScriptedProvider(self.replies, clock, ModelInfo(resolved.model.name)))
        return self.models[-1]

    def _clock(self) -> VirtualClock:
        program = self

        class Clock(VirtualClock):
            def now(self) -> float:
                program.now = max(program.now, super().now())
                return super().now()

        return Clock(self.now + 1.0)

    def __call__(self, *args: str, replies: Sequence[ScriptedReply] = ()) -> Ended:
        """Run `handrail ARGS` to its end."""
        self.replies = replies
        self.capsys.readouterr()
        code = main(list(args))
        told = self.capsys.readouterr()
        return Ended(code, told.out, told.err)

    def run(self, *args: str, replies: Sequence[ScriptedReply]) -> Ended:
        """A new run on the scripted model."""
        return self("run", "--plain", *WHERE, *args, replies=replies)

    @property
    def ids(self) -> list[str]:
        """The sessions, the oldest first."""
        return sorted(s.id for s in Store().list())

    def journal(self, id: str) -> Path:
        return Store().path_of(id)

    def events(self, id: str) -> list[ev.Event]:
        return list(read_journal(self.journal(id)).events())

    def stored(self, id: str) -> LoadedRun:
        return load_run(read_journal(self.journal(id)))

    def sent(self, model: int = -1, request: int = -1) -> Any:
        """The messages that a model was sent, as `role: text`."""
        return [f"{m.role}: {m.text}" for m in self.models[model].requests[request].messages]
