from __future__ import annotations

from pathlib import Path

import pytest
from toolbench import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    folder = tmp_path / "work"
    folder.mkdir()
    return Bench(folder)
