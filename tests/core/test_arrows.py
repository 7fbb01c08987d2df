"""House law 1: arrows point down. A module uses only what stands on its own floor or below; no circle anywhere."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE = ROOT / "core" / "handrail"

# The floors of the library, the lowest first. A package stands for all of its modules.
FLOORS = [
    {
        "_version",
        "messages",
        "moments",
        "parts",
        "codec",
        "events",
        "clock",
        "policy",
        "errors",
        "mask",
        "durations",
        "toml_file",
    },
    {
        "strict_json",
        "schemas",
        "output",
        "environment",
        "trust",
        "settings",
        "instructions",
        "providers",
        "tools",
    },
    {"recovery", "human"},
    {"loop"},
    {"session"},
    {"step", "scenario"},
]
NEVER_IN_CORE = ("textual", "rich", "click", "handrail_tui", "handrail_themes")


def modules(folder: Path) -> Iterator[Path]:
    yield from sorted(p for p in folder.rglob("*.py") if "__pycache__" not in p.parts)


def imports(path: Path) -> Iterator[str]:
    """Every module that a file imports, those inside functions and for type checkers too."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


def floor_of(name: str) -> int | None:
    return next((n for n, floor in enumerate(FLOORS) if name in floor), None)


@pytest.mark.parametrize("path", modules(CORE), ids=lambda p: p.relative_to(CORE).as_posix())
def test_house_law_1_arrows_point_down(path):
    part = path.relative_to(CORE).parts[0].removesuffix(".py")
    if part == "__init__":
        return  # the front names what it exports
    here = floor_of(part)
    assert here is not None, f"{part} stands on no floor: give it one"
    for name in imports(path):
        assert name.split(".")[0] not in NEVER_IN_CORE, f"{path.name} imports {name}"
        if name.startswith("handrail."):
            there = floor_of(name.split(".")[1])
            assert there is None or there <= here, (
                f"{path.name} on floor {here} imports {name} of floor {there}"
            )


def test_the_screen_is_not_imported_by_the_themes():
    for path in modules(ROOT / "themes"):
        assert not [name for name in imports(path) if name.startswith(("handrail_tui", "handrail."))]


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
