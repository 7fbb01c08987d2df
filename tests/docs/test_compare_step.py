"""The table of docs/step.md is right: our column is played, the other is what was seen of the version that it names."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def compare() -> ModuleType:
    spec = importlib.util.spec_from_file_location("compare_step", DOCS / "make" / "compare_step.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["compare_step"] = module
    spec.loader.exec_module(module)
    return module


def test_the_table_is_what_the_command_makes(compare: ModuleType) -> None:
    seen = json.loads((DOCS / "make" / "compare_step.json").read_text("utf-8"))
    page = (DOCS / "step.md").read_text("utf-8")
    assert compare.BEGIN in page and compare.END in page
    assert page == compare.page(page, seen), "run: python docs/make/compare_step.py"
    assert set(seen["rows"]) == set(compare.SITUATIONS)


def test_the_other_column_is_what_that_version_does(compare: ModuleType) -> None:
    seen = json.loads((DOCS / "make" / "compare_step.json").read_text("utf-8"))
    try:
        installed = version("pydantic-ai-slim")
    except PackageNotFoundError:
        pytest.skip("pydantic-ai-slim is not installed")
    if installed != seen["version"]:
        pytest.skip(f"pydantic-ai-slim {installed} is installed; the table is about {seen['version']}")
    assert compare.look_again()["rows"] == seen["rows"]


def test_a_value_is_never_lost_in_our_column(compare: ModuleType) -> None:
    rows = asyncio.run(compare._all(compare.ours))
    assert all(said.startswith("5 ") for name, said in rows.items() if name.startswith("5"))


def test_the_example_on_the_page_is_the_one_that_is_run() -> None:
    program = (DOCS / "examples" / "step.py").read_text("utf-8").partition('"""\n\n')[2]
    assert f"```python\n{program}```" in (DOCS / "step.md").read_text("utf-8")
