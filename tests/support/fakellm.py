"""A sloppier third-party server: PyPI `fakellm`, in an environment of its own that is kept between runs."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from aimock import free_port, wait_for
from filelock import FileLock
from npm import INSTALL_S

PACKAGE = "fakellm==0.3.5"
READY = b"Uvicorn running"


@contextmanager
def fakellm(rules: Sequence[dict[str, Any]], home: Path, folder: Path) -> Iterator[str]:
    """Its address, for as long as the block lasts. `home` keeps what is installed. Skips where it cannot be had."""
    program = _installed(home)
    script = folder / "fakellm.yaml"
    script.write_text(json.dumps({"rules": list(rules)}), encoding="utf-8")  # JSON is YAML
    port = free_port()
    command = [str(program), "serve", "--port", str(port), "--config", str(script)]
    server = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        said = wait_for(server, READY)
        if READY not in said:
            pytest.skip(f"fakellm did not start: {said.decode(errors='replace')[-300:]}")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.communicate(timeout=20)


def _installed(home: Path) -> Path:
    folder = home / PACKAGE
    scripts = folder / ("Scripts" if sys.platform == "win32" else "bin")
    with FileLock(f"{folder}.lock"):  # one worker installs, the others wait for it
        if not (scripts / "fakellm").exists():
            venv.create(
                folder, with_pip=False, clear=True
            )  # our own pip serves it: a second one takes seconds
            pip = [sys.executable, "-m", "pip", "--python", str(scripts / "python")]
            command = [*pip, "install", "--quiet", "--no-compile", PACKAGE]
            done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S, check=False)
            if done.returncode != 0:
                pytest.skip(f"needs {PACKAGE} from PyPI: {done.stderr.strip()[-200:]}")
    return scripts / "fakellm"
