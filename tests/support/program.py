"""The program as a script sees it: a child process in a folder of its own, with nothing of this machine's settings."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KEPT = ("PATH", "LANG", "PYTHONPATH", "SYSTEMROOT")


@dataclass(frozen=True)
class Ended:
    """A program that has ended."""

    code: int
    out: str
    err: str

    @property
    def events(self) -> list[dict[str, Any]]:
        """The lines of --json."""
        return [json.loads(line) for line in self.out.splitlines()]

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The events of this type, in order."""
        return [event for event in self.events if event["type"] == kind]


def environment(folder: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """A bare environment whose home, settings and state lie beside `folder`."""
    home = folder.parent / f"{folder.name}-home"
    homes = {f"XDG_{name}_HOME": str(home / name) for name in ("CONFIG", "STATE", "DATA", "CACHE")}
    kept = {name: value for name, value in os.environ.items() if name in KEPT}
    return {**kept, **homes, "HOME": str(home), "HANDRAIL_DEBUG": "1", **(more or {})}


async def handrail(
    *args: str, folder: Path, env: Mapping[str, str] | None = None, limit_s: float = 60.0
) -> Ended:
    """Run `handrail ARGS` in `folder` to its end."""
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "handrail_tui",
        *args,
        cwd=folder,
        env=environment(folder, env),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await asyncio.wait_for(child.communicate(), limit_s)
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    assert child.returncode is not None
    return Ended(child.returncode, out.decode(), err.decode())
