"""Other people's MCP servers, for tests marked `servers`. `python tests/support/real_mcp.py` installs them.

They live in a folder of their own (`HANDRAIL_TEST_SERVERS`, by default in the user's cache), never in the project.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import venv
from pathlib import Path

import platformdirs
import pytest

from handrail.server_settings import ServerSettings

FOLDER = Path(
    os.environ.get("HANDRAIL_TEST_SERVERS") or platformdirs.user_cache_path("handrail-test-servers")
)
NODE = ["server-everything", "server-filesystem", "server-memory"]
PYTHON = ["mcp-server-git", "mcp-server-time"]


def node_server(name: str, *args: str, env: dict[str, str] | None = None) -> ServerSettings:
    """A server of npm's @modelcontextprotocol. Skips the test where it is not installed."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    script = FOLDER / "node_modules" / "@modelcontextprotocol" / name / "dist" / "index.js"
    if not script.is_file():
        pytest.skip(f"{name} is not installed: python tests/support/real_mcp.py")
    return ServerSettings(command=node, args=(str(script), *args), env=env or {})


def python_server(name: str, *args: str) -> ServerSettings:
    """A server of PyPI. Skips the test where it is not installed."""
    program = FOLDER / "venv" / "bin" / name
    if not program.is_file():
        pytest.skip(f"{name} is not installed: python tests/support/real_mcp.py")
    return ServerSettings(command=str(program), args=args)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def install() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    packages = [f"@modelcontextprotocol/{name}@2026.8.31" for name in NODE]
    subprocess.run(["npm", "install", "--prefix", str(FOLDER), *packages], check=True)
    venv.create(FOLDER / "venv", with_pip=True)
    subprocess.run([FOLDER / "venv" / "bin" / "pip", "install", "--quiet", *PYTHON], check=True)


if __name__ == "__main__":
    install()
    sys.exit(0)
