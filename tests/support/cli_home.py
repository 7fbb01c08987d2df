"""Fixtures for tests of the command line: a home folder of their own, and no keys from the environment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from scripted_cli import ScriptedProgram

from handrail.mask import is_key_name
from handrail.providers import keys
from handrail.providers.catalog import key_variables


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CONFIG", "STATE", "DATA", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / f".{name.lower()}"))
    keys.give_back()
    held = key_variables()
    for name in list(os.environ):
        holds_key = name.upper() in held or is_key_name(name)
        if holds_key or name.startswith("HANDRAIL_") or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def program(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> ScriptedProgram:
    """The command line with a scripted model, in the test's own home."""
    return ScriptedProgram(monkeypatch, capsys)
