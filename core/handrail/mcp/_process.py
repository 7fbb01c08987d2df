"""A server's process: in a group of its own, and gone when we are (docs/mcp.md).

Three nets. At a normal end everything it started is ended, by group, descent and mark. If this program is killed, a
small shell that holds a pipe to us sees the pipe close and kills the groups that it was told of. What still lives is
named in the session's folder, and the next start ends it (`sweep`).
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from handrail.clock import Clock
from handrail.tools.environ import MARK
from handrail.tools.processes import end_family, living

_SYSTEM: Final = (
    "HOME",
    "LOGNAME",
    "PATH",
    "SHELL",
    "USER",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "TEMP",
    "TMP",
)
_NETWORK: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "DOCKER_HOST")
_PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY")
_WINDOWS: Final = ("SYSTEMROOT", "COMSPEC", "PATHEXT", "APPDATA", "LOCALAPPDATA", "USERPROFILE")
INHERITED: Final = frozenset([*_SYSTEM, *_NETWORK, *_PROXIES, *map(str.lower, _PROXIES), *_WINDOWS])
"""Variables that a server gets of our own environment, beside those of its settings: never a key."""

_INHERITED_KINDS: Final = (
    "LC_",
    "XDG_",
    "npm_config_",
    "NPM_CONFIG_",
    "UV_",
    "PIP_",
    "NVM_",
    "VOLTA_",
    "MISE_",
)

CLOSE_S: Final = 0.5
"""Real seconds for a server to end by itself once its input is closed."""

GRACE_S: Final = 1.0

_WATCH: Final = r"""
trap '' HUP INT TERM
groups=
while read -r op id; do
  case $op in
    +) groups="$groups $id" ;;
    -) left=; for each in $groups; do [ "$each" = "$id" ] || left="$left $each"; done; groups=$left ;;
    .) exit 0 ;;
  esac
done
for each in $groups; do kill -KILL "-$each" 2>/dev/null; done
for file in $(grep -lsF "$1" /proc/[0-9]*/environ 2>/dev/null); do
  each=${file#/proc/}; kill -KILL "${each%/environ}" 2>/dev/null
done
"""


def server_environment(own: Mapping[str, str], given: Mapping[str, str], mark: str) -> dict[str, str]:
    """What a server's process gets: little of our own environment, all of its settings, and the mark."""
    kept = {k: v for k, v in own.items() if k in INHERITED or k.startswith(_INHERITED_KINDS)}
    return {**kept, **given, MARK: mark}


class Watcher:
    """Ends the groups that it knows when this program is gone, however that came. One for all servers of a session."""

    def __init__(self) -> None:
        self._mark = secrets.token_hex(8)
        self._servers = 0
        self._process: Process | None = None
        self._starting = asyncio.Lock()

    def new_mark(self) -> str:
        """The mark for one more server: a process that left the group and its parent is still known by it."""
        self._servers += 1
        return f"{self._mark}.{self._servers}"

    async def watch(self, group: int) -> None:
        """From now on `group` does not outlive us."""
        async with self._starting:
            if self._process is None:
                self._process = await self._start()
        self._tell(f"+ {group}")

    def forget(self, group: int) -> None:
        """The group has ended; its number may be somebody else's soon."""
        self._tell(f"- {group}")

    async def close(self) -> None:
        """Nothing is left to be watched."""
        process, self._process = self._process, None
        if process is None or process.stdin is None:
            return
        with suppress(OSError, RuntimeError):
            process.stdin.write(b". .\n")
            process.stdin.close()
        await process.wait()
        _close_pipes(process)

    async def _start(self) -> Process | None:
        shell = shutil.which("sh")
        if shell is None or os.name != "posix":
            return None
        return await asyncio.create_subprocess_exec(
            shell,
            "-c",
            _WATCH,
            "handrail-mcp-watch",
            f"{MARK}={self._mark}.",
            stdin=PIPE,
            stdout=DEVNULL,
            stderr=DEVNULL,
            cwd="/",
            env={"PATH": os.environ.get("PATH", os.defpath)},
            start_new_session=True,
        )

    def _tell(self, line: str) -> None:
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError, RuntimeError):
                self._process.stdin.write(f"{line}\n".encode())


class ServerProcess:
    """One process with what it starts. `note` is the file that names it while it lives."""

    def __init__(self, process: Process, mark: str, watcher: Watcher, note: Path | None) -> None:
        self.process = process
        self._mark, self._watcher, self._note = mark, watcher, note

    @classmethod
    async def start(
        cls,
        command: str,
        args: Iterable[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        watcher: Watcher,
        note: Path | None,
    ) -> ServerProcess:
        """Start it. `note` is the start of the note's name. Raises OSError, ValueError when that is not possible."""
        mark = watcher.new_mark()
        program = shutil.which(command, path=env.get("PATH") or os.environ.get("PATH")) or command
        process = await asyncio.create_subprocess_exec(
            program,
            *args,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            cwd=cwd,
            env=server_environment(os.environ, env, mark),
            start_new_session=True,
            limit=1 << 20,
        )
        file = note.with_name(f"{note.name}-{process.pid}.process") if note is not None else None
        started = cls(process, mark, watcher, file)
        await watcher.watch(process.pid)
        started._write_note()
        return started

    @property
    def ended(self) -> str | None:
        """How the process itself ended, None while it lives."""
        code = self.process.returncode
        if code is None:
            return None
        if code >= 0:
            return f"it ended with exit code {code}"
        try:
            return f"it was ended by {signal.Signals(-code).name}"
        except ValueError:
            return f"it was ended by signal {-code}"

    async def end(self, clock: Clock) -> list[str]:
        """End it with everything it started: asked by closing its input, then by signals. Returns who may be left."""
        process = self.process
        if process.stdin is not None:
            with suppress(OSError, RuntimeError):
                process.stdin.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(asyncio.ensure_future(process.wait())), CLOSE_S)
        left = await end_family(clock, process.pid, self._mark, GRACE_S)
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), GRACE_S)
        _close_pipes(process)
        self._watcher.forget(process.pid)
        if self._note is not None and not left:
            self._note.unlink(missing_ok=True)
        return [str(each) for each in left]

    def _write_note(self) -> None:
        if self._note is None:
            return
        pid = self.process.pid
        known = {"pid": pid, "mark": self._mark, "owner": os.getpid(), "owner_born": born(os.getpid())}
        with suppress(OSError):
            descriptor = os.open(self._note, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w") as file:
                json.dump({**known, "born": born(pid)}, file)


def _close_pipes(process: Process) -> None:
    """A process that left the group may hold the pipes open; nobody reads them any more."""
    transport = getattr(process, "_transport", None)  # asyncio shows it nowhere
    if transport is not None:
        with suppress(OSError, RuntimeError):
            transport.close()


def born(pid: int) -> str | None:
    """What tells this process from a later one with the same number; None when it does not live. Blocking."""
    found = living(pid)
    return found.born if found is not None else None


async def sweep(folders: Iterable[Path], clock: Clock) -> list[str]:
    """End servers that a program which is gone has left, as the notes in `folders` name them. Returns who they were."""
    swept: list[str] = []
    for note in [note for folder in folders for note in folder.glob("*.process")]:
        try:
            known = json.loads(note.read_text("utf-8"))
            pid, mark = int(known["pid"]), str(known["mark"])
            owner = int(known["owner"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if await clock.in_thread(lambda owner=owner: born(owner)) == known.get("owner_born"):  # type: ignore[misc]
            continue  # its program lives
        if await clock.in_thread(lambda pid=pid: born(pid)) == known.get("born"):  # type: ignore[misc]
            await end_family(clock, pid, mark, GRACE_S)
            swept.append(note.stem.rpartition("-")[0])
        note.unlink(missing_ok=True)
    return swept
