"""What the pages about the code say of it: files, folders and floors are as they say."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from pages import DESIGN, ROOT, block, name_of

HOUSE = (DESIGN / "house.md").read_text("utf-8")
ABOUT_CODE = [
    DESIGN / "house.md",
    DESIGN / "rules.md",
    DESIGN / "screen.md",
    ROOT / "docs/architecture.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "AGENTS.md",
]
ROOTS = ("core", "tui", "themes", "tests", "docs", ".ci")


@pytest.mark.parametrize("page", ABOUT_CODE, ids=name_of)
def test_every_file_that_a_page_names_is_there(page: Path) -> None:
    text = page.read_text("utf-8")
    named = set(re.findall(rf"`((?:{'|'.join(map(re.escape, ROOTS))})/[\w./-]*)`", text))
    named |= set(re.findall(r"\b((?:docs/make|tests)/[\w/]+\.py)\b", text))
    missing = {path for path in named if "NAME" not in path and not (ROOT / path).exists()}
    missing |= {path for path in named if "NAME" in path and not (ROOT / path).parent.is_dir()}
    assert missing == set()


def test_every_file_and_folder_of_the_house_is_there() -> None:
    missing, root = [], ROOT
    for line in block(HOUSE, "Folders").splitlines():
        if not line.startswith(" "):
            first = line.split()[0]
            root = ROOT / first if first.endswith("/") else ROOT
        names = re.findall(r"(?<![\w./])([A-Za-z_][\w/]*(?:/|\.(?:py|md|toml)))(?!\w)", line)
        missing += [name for name in names if not ((root / name).exists() or (ROOT / name).exists())]
    assert missing == []


def test_every_package_stands_in_the_house() -> None:
    folders = block(HOUSE, "Folders")
    packages = [p.parent for top in ("core/handrail", "tui/handrail_tui") for p in ROOT.glob(f"{top}/*/*.py")]
    assert {p.name for p in packages if f"{p.name}/" not in folders} == set()


@pytest.mark.parametrize("package", ["handrail", "handrail_tui"])
def test_the_floors_are_those_that_import_linter_holds(package: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    held = next(
        contract["layers"]
        for contract in project["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers" and contract["layers"][0].startswith(f"{package}.")
    )
    layers = [
        {name.removeprefix(f"{package}.").strip("()") for name in re.split(r" [:|] ", layer)}
        for layer in held
    ]
    found = re.search(rf"<!-- floors: {package} -->\n```\n(.*?)```", HOUSE, re.S)
    assert found is not None
    lines = [line.split() for line in found[1].splitlines()]
    assert [set(names) for _, *names in lines] == layers
    assert [int(number) for number, *_ in lines] == list(range(len(layers), 0, -1))


def test_the_invariants_fit_on_a_page() -> None:
    assert len((ROOT / "AGENTS.md").read_text("utf-8").splitlines()) <= 60
