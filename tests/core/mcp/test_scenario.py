"""A scenario with an MCP server of its own, on a virtual clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail import events as ev
from handrail.scenario import load, play

SHOP = Path(__file__).parent / "scenarios" / "shop.toml"


async def test_a_scenario_carries_a_server_in_this_process() -> None:
    events: list[ev.Event] = []
    _, last = await play(load(SHOP), events.append)
    assert isinstance(last, ev.RunFinished) and last.outcome == "completed"
    results = [event.text for event in events if isinstance(event, ev.ToolFinished)]
    assert results[:2] == ["3 shirts left", "ordered one shirt, size M"]
    assert results[2] == "slow of shop gave no result within 60 s and was cancelled"
    [slow] = [e for e in events if isinstance(e, ev.ToolFinished) and e.name == "mcp__shop__slow"]
    assert slow.seconds == pytest.approx(60.0)
    asked = [event.tool for event in events if isinstance(event, ev.ApprovalRequested)]
    assert asked == ["mcp__shop__order"]
