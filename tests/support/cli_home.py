"""Fixtures for tests of the command line: a home folder of their own, and no keys from the environment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from scripted_cli import ScriptedProgram

from handrail.mask import is_key_name


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CONFIG", "STATE", "DATA", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / f".{name.lower()}"))
    for name in [
        n for n in os.environ if is_key_name(n) or n.startswith("HANDRAIL_") or n.lower().endswith("_proxy")
    ]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def program(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> ScriptedProgram:
    """The command line with a scripted model, in the test's own home."""
    return ScriptedProgram(monkeypatch, capsys)
