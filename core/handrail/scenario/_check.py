"""Checks a scenario's expectations against a run on the virtual clock."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from handrail import events as ev
from handrail.clock import VirtualClock
from handrail.providers.base import Request
from handrail.providers.scripted import ScriptedProvider, searchable
from handrail.scenario._file import ExpectPart, Scenario
from handrail.scenario.play import session_for, working_folder
from handrail.tools.ask_human import NAME as ASK_HUMAN

TOLERANCE_S = 0.001


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The outcome of a scenario, and each expectation that failed."""

    file: str
    ok: bool
    outcome: str
    class_: str | None
    value: Any
    requests: int
    turns: int
    attempts: int
    decisions: tuple[str, ...]
    waits_s: tuple[float, ...]
    tool_runs: dict[str, int]
    failures: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The object that `handrail check --json` prints."""
        return {
            "file": self.file,
            "ok": self.ok,
            "outcome": self.outcome,
            "class": self.class_,
            "value": self.value,
            "requests": self.requests,
            "turns": self.turns,
            "attempts": self.attempts,
            "decisions": list(self.decisions),
            "waits_s": list(self.waits_s),
            "tool_runs": self.tool_runs,
            "failures": list(self.failures),
        }


class _Tally:
    """Counts what expectations can refer to."""

    def __init__(self) -> None:
        self.decisions: list[str] = []
        self.waits_s: list[float] = []
        self.tool_runs: Counter[str] = Counter()

    def __call__(self, event: ev.Event) -> None:
        if isinstance(event, ev.Decided) and event.decision != "finish":
            self.decisions.append(f"{event.decision}:{event.reason}")
        elif isinstance(event, ev.WaitStarted):
            self.waits_s.append(round(event.seconds, 3))
        elif isinstance(event, ev.ToolStarted) and event.name != ASK_HUMAN:
            self.tool_runs[event.name] += 1


async def check(scenario: Scenario, *, trusted: bool = True) -> CheckReport:
    """Play `scenario` and compare. Nothing that the run does makes it raise.

    Not `trusted`: its real tools are confined to its temporary folder (rule H7). Raises ConfigError when they
    cannot be.
    """
    tally = _Tally()
    with working_folder(scenario) as cwd:
        session = session_for(scenario, VirtualClock(), cwd=cwd, trusted=trusted)
        session.listen(tally)
        finished = await session.run(scenario.prompt)
        assert isinstance(finished, ev.RunFinished)
        provider = session.provider
        assert isinstance(provider, ScriptedProvider)
        failures = [
            *_compare(scenario.expect, finished, tally, provider.requests),
            *_files(scenario.expect, cwd),
        ]
    return CheckReport(
        file=str(scenario.path),
        ok=not failures,
        outcome=finished.outcome,
        class_=finished.class_,
        value=finished.value,
        requests=finished.requests,
        turns=finished.turns,
        attempts=finished.attempts,
        decisions=tuple(tally.decisions),
        waits_s=tuple(tally.waits_s),
        tool_runs=dict(tally.tool_runs),
        failures=tuple(failures),
    )


def _compare(
    expect: ExpectPart, finished: ev.RunFinished, tally: _Tally, requests: list[Request]
) -> list[str]:
    said = expect.model_fields_set
    wrong: list[str] = []

    def hold(key: str, wanted: Any, got: Any) -> None:
        if wanted != got:
            wrong.append(f"{key}: expected {_shown(wanted)}, got {_shown(got)}")

    if "outcome" in said:
        hold("outcome", expect.outcome, finished.outcome)
    if "class_" in said:
        hold("class", expect.class_, finished.class_)
    if "value" in said:
        hold("value", _canonical(expect.value), _canonical(finished.value))
    if "requests" in said:
        hold("requests", expect.requests, len(requests))
    if "attempts" in said:
        hold("attempts", expect.attempts, finished.attempts)
    if expect.decisions is not None:
        hold("decisions", list(expect.decisions), tally.decisions)
    if expect.waits_s is not None and not _close(expect.waits_s, tally.waits_s):
        wrong.append(f"waits_s: expected {list(expect.waits_s)}, got {tally.waits_s}")
    if expect.tool_runs is not None:
        hold("tool_runs", {k: v for k, v in expect.tool_runs.items() if v}, dict(tally.tool_runs))
    text = _text_of_last(requests)
    wrong += [f"last_request_has: {s!r} is not in it" for s in expect.last_request_has if s not in text]
    wrong += [f"last_request_lacks: {s!r} is in it" for s in expect.last_request_lacks if s in text]
    return wrong


def _files(expect: ExpectPart, cwd: Path) -> list[str]:
    wrong: list[str] = []
    for name, text in expect.files.items():
        path = cwd / name
        got = path.read_bytes().decode("utf-8", "replace") if path.is_file() else None
        if got != text:
            wrong.append(f"files.{name}: expected {_shown(text)}, got {_shown(got)}")
    return wrong


def _text_of_last(requests: list[Request]) -> str:
    if not requests:
        return ""
    last = requests[-1]
    return "\n".join([last.system, *(searchable(m) for m in last.messages)])


def _close(wanted: tuple[float, ...], got: list[float]) -> bool:
    return len(wanted) == len(got) and all(
        abs(a - b) <= TOLERANCE_S for a, b in zip(wanted, got, strict=True)
    )


def _canonical(value: Any) -> str:
    """Whether two values are the same JSON: 5 is not 5.0, and true is not 1."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 300 else f"{text[:300]}…"
