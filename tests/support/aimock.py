"""A third-party server that speaks the providers' protocols from a script: npm `@copilotkit/aimock`."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from npm import npm_program

PACKAGE = "@copilotkit/aimock@1.43.0"
START_S = 60.0


@contextmanager
def aimock(fixtures: Sequence[dict[str, Any]], home: Path, folder: Path) -> Iterator[str]:
    """Its address, for as long as the block lasts. `home` keeps what is installed. Skips where it cannot be had."""
    program = npm_program(home, PACKAGE, "llmock")
    script = folder / "fixtures.json"
    script.write_text(json.dumps({"fixtures": list(fixtures)}), encoding="utf-8")
    port = free_port()
    command = [str(program), "-p", str(port), "-f", str(script), "--chunk-size", "12"]
    server = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )
    try:
        said = wait_for(server, b"listening")
        if b"listening" not in said:
            pytest.skip(f"aimock did not start: {said.decode(errors='replace')[-300:]}")
        yield f"http://127.0.0.1:{port}"
    finally:
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGTERM)
        server.communicate(timeout=20)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for(server: subprocess.Popen[bytes], word: bytes) -> bytes:
    """What the server said until `word` came, it ended, or nothing came for too long."""
    assert server.stdout is not None
    said = b""
    while word not in said and select.select([server.stdout], [], [], START_S)[0]:
        piece = os.read(server.stdout.fileno(), 4096)
        if not piece:
            break
        said += piece
    return said
