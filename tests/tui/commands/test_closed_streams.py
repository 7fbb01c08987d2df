"""Standard streams that the caller closed: no traceback, and nothing printed lands in a file of ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from program import environment

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="shell redirections of POSIX")


def run(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    line = f"{sys.executable} -m handrail_tui {command}"
    return subprocess.run(
        ["sh", "-c", line],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("command", ["--version", "sessions", "themes", "demo first-run"])
def test_a_closed_stream_is_no_fault(tmp_path: Path, command: str, closed: str) -> None:
    ended = run(tmp_path, f"{command} {closed}")
    assert ended.returncode == 0 and "error" not in ended.stderr
    if ">&-" not in closed.replace("2>&-", ""):
        assert ended.stdout


def test_usage_errors_keep_their_code(tmp_path: Path) -> None:
    assert run(tmp_path, "run <&-").returncode == 2


def test_what_is_printed_lands_in_no_journal(tmp_path: Path) -> None:
    ended = run(tmp_path, "demo first-run --json >&-")
    assert ended.returncode == 0
    journals = list((tmp_path.parent / f"{tmp_path.name}-home").rglob("journal.jsonl"))
    assert not journals  # demos are not stored; nothing else was written either
