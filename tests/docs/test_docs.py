"""Pages that are made from code are equal to it; what pages say of commands is there."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from handrail_tui.cli import COMMANDS

ROOT = Path(__file__).parents[2]
PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"]


def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_make", ROOT / "docs" / "make" / "pages.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["events.md", "settings.md"])
def test_a_page_made_from_code_is_equal_to_it(name: str) -> None:
    page = maker().PAGES[name]()
    assert (ROOT / "docs" / name).read_text("utf-8") == page, "run: python docs/make/pages.py"


def test_made_pages_hold_no_rule_of_the_design_and_no_dead_link() -> None:
    for page in (maker().events_page(), maker().settings_page()):
        assert re.findall(r"\brules? [A-Z]\d|\([A-Z]\d+", page) == []
        anchors = {heading.lower() for heading in re.findall(r"^#+ (.+)$", page, re.M)}
        assert set(re.findall(r"\]\(#([^)]+)\)", page)) <= anchors


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_command_that_a_page_names_is_there(page: Path) -> None:
    text = page.read_text("utf-8")
    named = set(
        re.findall(
            r"(?:^|`|/|\s)handrail ([a-z]+(?:-[a-z]+)*)\b",
            "\n".join(re.findall(r"`[^`\n]+`|^ {4}.+$", text, re.M)),
        )
    )
    assert named <= {*COMMANDS}, f"{page.name} names {named - {*COMMANDS}}"
