"""House law 1: arrows point down. A module uses only what stands on its own floor or below; no circle anywhere."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

ROOT = Path(__file__).parents[2]
CORE = ROOT / "core" / "handrail"


def modules(folder: Path) -> Iterator[Path]:
    yield from sorted(p for p in folder.rglob("*.py") if "__pycache__" not in p.parts)


def test_house_law_1_arrows_point_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """The floors, and no circle: the contracts of pyproject.toml. import-linter prints which one is broken."""
    monkeypatch.setattr("sys.path", list(sys.path))  # import-linter puts the working folder in front
    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == 0


def test_house_law_3_nothing_in_the_library_reads_the_wall_clock_or_sleeps():
    forbidden = {
        ("time", "time"),
        ("time", "sleep"),
        ("time", "monotonic"),
        ("datetime", "now"),
        ("datetime", "utcnow"),
    }
    for path in modules(CORE):
        if path.name == "clock.py":
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                owner = node.func.value
                name = owner.id if isinstance(owner, ast.Name) else ""
                assert (name, node.func.attr) not in forbidden, f"{path}:{node.lineno}"
                slept = (name, node.func.attr) == ("asyncio", "sleep")
                zero = bool(node.args) and isinstance(node.args[0], ast.Constant) and node.args[0].value == 0
                assert not slept or zero, f"{path}:{node.lineno} sleeps by itself"
