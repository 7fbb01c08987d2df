"""docs/providers.md: its table of providers is the catalog, its table of proofs has every row; numbers are not held."""

from __future__ import annotations

import importlib.util
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from oddities import OWN, oddities

from handrail.settings import Settings

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/providers.md").read_text("utf-8")


@pytest.fixture(scope="module")
def table() -> ModuleType:
    spec = importlib.util.spec_from_file_location("providers_table", ROOT / "docs/make/providers_table.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_the_table_of_providers_is_the_catalog(table: ModuleType) -> None:
    made = table.with_region(PAGE, "providers", list(table.provider_table()))
    assert made == PAGE, "run: python docs/make/providers_table.py --providers"


def test_the_table_of_oddities_is_that_of_the_files() -> None:
    spec = importlib.util.spec_from_file_location("oddities_table", ROOT / "docs/make/oddities_table.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rows = [dict(oddity.row) for oddity in oddities(OWN)]
    assert module.page(rows) == PAGE, "run: python docs/make/oddities_table.py"


def test_the_table_of_proofs_has_a_row_for_each_proof(table: ModuleType) -> None:
    region = PAGE.split("<!-- proofs:")[1].split("<!-- end of proofs")[0]
    rows = [line.split(" | ") for line in region.splitlines() if line.startswith("| ")][2:]
    assert [row[0].removeprefix("| ") for row in rows] == [proof.what for proof in table.proofs()]
    assert all(len(row) == 2 + len(table.WIRES) for row in rows)
    assert "failed" not in region
    assert re.search(r"\d \w+ 20\d\d, Handrail \d", region)


def test_every_proof_names_tests_that_are_there(table: ModuleType) -> None:
    for proof in table.proofs():
        for module, pattern in proof.tests.values():
            text = (ROOT / f"{module.replace('.', '/')}.py").read_text("utf-8")
            name = pattern.partition(".*")[0]
            assert re.search(rf"def \w*{name}", text), f"{module}: {name}"


def test_results_are_counted_by_row_and_wire(table: ModuleType) -> None:
    rows = [
        table.Proof("it works", "a server", {"openai-chat": ("m", "test_a"), "anthropic": ("m", "test_b")})
    ]
    results = [("m", "test_a[1]", "passed"), ("m", "test_a[2]", "passed"), ("m", "test_b", "skipped")]
    *_, line = table.proof_table(rows, results)
    assert line == "| it works | a server | 2 passed | – | 1 skipped |"


def test_the_settings_that_the_page_shows_can_be_set() -> None:
    shown = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert len(shown) == 2
    Settings.model_validate(tomllib.loads(shown[0]))
    for line in shown[1].splitlines()[1:]:
        Settings.model_validate(tomllib.loads(f"[providers.mine]\n{line}"))
