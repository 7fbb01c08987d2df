"""The examples of the pages for contributors run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pages import DESIGN, ROOT, block, program

from handrail import scenario

CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text("utf-8")


async def check(text: str, folder: Path) -> scenario.CheckReport:
    path = folder / "example.toml"
    path.write_text(text, "utf-8")
    return await scenario.check(scenario.load(path))


async def test_the_example_of_a_scenario_holds(tmp_path: Path) -> None:
    report = await check(block(CONTRIBUTING, "A scenario"), tmp_path)
    assert report.ok, report.failures


async def test_the_example_of_the_clock_passes() -> None:
    scope: dict[str, Any] = {}
    exec(compile(block(CONTRIBUTING, "The clock"), "CONTRIBUTING.md", "exec"), scope)
    tests = [value for name, value in scope.items() if name.startswith("test_")]
    assert len(tests) == 1
    await tests[0]()


def test_the_example_of_a_snapshot_uses_what_is_there() -> None:
    example = block(CONTRIBUTING, "A snapshot")
    there = (ROOT / "tests/tui/screens/test_snapshots_run.py").read_text("utf-8")
    for name in re.findall(r"\b(snap|needs_you)\(", example):
        assert f"def {name}(" in there


def test_the_scenario_of_the_reference_is_read(tmp_path: Path) -> None:
    path = tmp_path / "reference.toml"
    path.write_text(block((DESIGN / "scenarios.md").read_text("utf-8"), "Scenario files"), "utf-8")
    read = scenario.load(path)
    assert set(scenario.Scenario.model_fields) - {"path"} == read.model_fields_set - {"path"}


def test_the_picture_of_the_architecture_is_made_from_itsprogram() -> None:
    made = program("docs/make/architecture.py")
    assert (ROOT / "docs/architecture.svg").read_text("utf-8") == made.picture(), (
        "run: python docs/make/architecture.py"
    )
