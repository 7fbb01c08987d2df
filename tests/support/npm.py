"""Programs of others from npm, installed once for all tests."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from filelock import FileLock

INSTALL_S = 300.0


def npm_program(home: Path, package: str, program: str) -> Path:
    """The program of that name of `package` (with its version); `home` keeps it. Skips where it cannot be had."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip(f"needs Node.js (npm) for {package}")
    folder = home / package.rpartition("/")[2]
    found = folder / "node_modules" / ".bin" / program
    with FileLock(f"{folder}.lock"):  # one worker installs, the others wait for it
        if not found.exists():
            command = [
                npm,
                "install",
                "--silent",
                "--no-audit",
                "--no-fund",
                "--prefix",
                str(folder),
                package,
            ]
            done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S, check=False)
            if done.returncode != 0:
                pytest.skip(f"needs {package} from npm: {done.stderr.strip()[-200:]}")
    return found
