"""Every situation of a step, one file a row (rules S, L). That each row holds: tests/core/test_scenarios.py."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from runs import Played

from handrail import StepFailed, step
from handrail import events as ev
from handrail.clock import VirtualClock
from handrail.providers.scripted import ScriptedProvider
from handrail.scenario import Scenario, load, play, session_for
from handrail.scenario.play import CannedTool

FOLDER = Path(__file__).parents[2] / "scenarios" / "step"
FILES = sorted(FOLDER.glob("*.toml"))
FULL = {"outcome", "requests", "attempts", "decisions", "tool_runs"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_row_says_its_rule_and_all_that_must_come_of_it(path: Path) -> None:
    scenario = load(path)
    assert scenario.title
    assert re.search(r"\b[A-Z]\d+\b", scenario.about), "about names no rule"
    said = scenario.expect.model_fields_set
    assert said >= FULL, f"expect lacks {FULL - said}"
    assert ("value" in said) == (scenario.expect.outcome == "submitted")


def for_step(path: Path) -> bool:
    """Whether step() alone can play it: nobody acts or is asked, since ask_human is offered only with `human=`."""
    scenario = load(path)
    asks = any(call.tool == "ask_human" for reply in scenario.replies for call in reply.calls)
    return not (asks or scenario.person or any(tool.asks for tool in scenario.tools))


@pytest.mark.parametrize("path", filter(for_step, FILES), ids=lambda path: path.stem)
async def test_S7_step_itself_comes_to_the_same_value_or_the_same_failure(path: Path) -> None:
    scenario = load(path)
    expect = scenario.expect
    clock = VirtualClock()
    provider = session_for(scenario, clock, cwd=Path()).provider
    assert isinstance(provider, ScriptedProvider) and scenario.output_schema is not None
    try:
        value = await step(
            scenario.prompt,
            scenario.output_schema,
            model=provider,
            tools=[CannedTool(tool) for tool in scenario.tools],
            recovery=scenario.recovery,
            clock=clock,
            **scenario.bounds.model_dump(),
        )
    except StepFailed as failed:
        assert (failed.kind, failed.attempts) == (expect.outcome, expect.attempts)
    else:
        assert (value, "submitted") == (expect.value, expect.outcome)
    assert len(provider.requests) == expect.requests


@pytest.mark.parametrize(
    ("name", "stopped"),
    [("stop-after-a-value", True), ("stop-in-a-batch-with-a-value", True), ("valid", False)],
)
async def test_S7_a_value_after_a_stop_says_that_it_was_stopped(name: str, stopped: bool) -> None:
    played = await _played(load(FOLDER / f"{name}.toml"))
    assert (played.outcome, played.finished.stopped) == ("submitted", stopped)


@pytest.mark.parametrize(
    ("name", "bound"),
    [
        ("deadline", "deadline_s"),
        ("token-budget", "max_total_tokens"),
        ("cost-budget", "max_cost"),
        ("lookup-on-the-last-turn", "max_turns"),
    ],
)
async def test_L3_a_bound_names_itself(name: str, bound: str) -> None:
    played = await _played(load(FOLDER / f"{name}.toml"))
    assert played.finished.bound == bound


@pytest.mark.parametrize("name", ["steering-left-by-a-value", "follow-up-left-by-a-value"])
async def test_L8_a_value_leaves_the_queue_untouched(name: str) -> None:
    played = await _played(load(FOLDER / f"{name}.toml"))
    assert len(played.session.state.queue.all) == 1
    assert not any(change.returned for change in played.of(ev.QueueChanged))


async def test_L8_after_a_failure_the_queue_goes_back_to_the_person() -> None:
    played = await _played(load(FOLDER / "steering-after-the-last-turn.toml"))
    (change,) = [change for change in played.of(ev.QueueChanged) if change.returned]
    assert [message.text for message in change.returned] == ["Hand it in."]


async def _played(scenario: Scenario) -> Played:
    events: list[ev.Event] = []
    session, finished = await play(scenario, events.append)
    assert isinstance(finished, ev.RunFinished)
    assert isinstance(session.provider, ScriptedProvider)
    return Played(session, session.provider, finished, events)
