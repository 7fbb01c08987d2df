"""No file is too long to read in one sitting (the floors of docs/design/house.md)."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST_LINES = 450


def test_no_file_of_code_or_tests_is_over_450_lines() -> None:
    files = [file for part in ("core", "tui", "tests") for file in (ROOT / part).rglob("*.py")]
    assert len(files) > 100
    lengths = {str(file.relative_to(ROOT)): len(file.read_text("utf-8").splitlines()) for file in files}
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES} == {}
