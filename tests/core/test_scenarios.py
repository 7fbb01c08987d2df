"""Every scenario file holds what it expects: a test, a demo and a line in the docs in one."""

from __future__ import annotations

from pathlib import Path

import pytest
from runs import Played, hold_invariants

from handrail import events as ev
from handrail.providers.scripted import ScriptedProvider
from handrail.scenario import check, load, play

SCENARIOS = Path(__file__).parents[1] / "scenarios"
FILES = sorted(SCENARIOS.rglob("*.toml"))
every_file = pytest.mark.parametrize(
    "path", FILES, ids=lambda path: path.relative_to(SCENARIOS).with_suffix("").as_posix()
)


@every_file
async def test_a_scenario_holds(path: Path) -> None:
    scenario = load(path)
    report = await check(scenario)
    assert report.ok, "\n".join([f"{scenario.title}. {scenario.about}", *report.failures])


@every_file
async def test_L5_each_call_has_one_result_and_each_request_could_be_sent(path: Path) -> None:
    events: list[ev.Event] = []
    session, finished = await play(load(path), events.append)
    assert isinstance(finished, ev.RunFinished) and isinstance(session.provider, ScriptedProvider)
    hold_invariants(Played(session, session.provider, finished, events))


def test_there_are_scenarios() -> None:
    assert len(FILES) > 100
