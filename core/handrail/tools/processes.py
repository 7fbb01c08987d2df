"""Finding and ending a command with everything it started (rule L9).

A process belongs to the command by its session or process group, by descent, or by the mark in its environment: a
daemon that left the group and whose parent ended keeps the mark. On Linux one that dropped the mark too is a child of
the command's keeper. Without /proc (macOS) the mark cannot be seen.

A real process dies in real seconds, whatever the clock of a run shows: waits here are the event loop's.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from handrail.clock import Clock
from handrail.messages import clean
from handrail.tools.environ import MARK
from handrail.tools.output import one_line

GRACE_S: Final = 2.0
"""Real seconds between SIGTERM and SIGKILL."""

_KILL_ROUNDS: Final = 10
_PROC: Final = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """A living process. `born` distinguishes it from a later process with the same id."""

    pid: int
    parent: int
    groups: tuple[int, ...]
    born: str
    command: str

    def __str__(self) -> str:
        return f"pid {self.pid} {self.command}"


def family(root: int, mark: str, keeper: int | None = None) -> list[Process]:
    """The living processes of the command whose shell is `root`, itself included. Its `keeper`, which adopts what the
    others leave behind, is not one of them. Blocking."""
    everyone = list(_everyone())
    members = {
        p.pid: p for p in everyone if p.pid in (root, keeper) or root in p.groups or _is_marked(p.pid, mark)
    }
    found = True
    while found:
        found = False
        for process in everyone:
            if process.parent in members and process.pid not in members:
                members[process.pid] = process
                found = True
    members.pop(os.getpid(), None)
    if keeper is not None:
        members.pop(keeper, None)
    return list(members.values())


def living(pid: int) -> Process | None:
    """The living process of that number, our own included. Blocking."""
    return next((p for p in _everyone() if p.pid == pid), None)


async def end_family(
    clock: Clock, root: int, mark: str, grace: float, keeper: int | None = None
) -> list[Process]:
    """End them all: SIGTERM, then SIGKILL after `grace` real seconds. Returns those that may still be
    running."""
    look = partial(clock.in_thread, partial(family, root, mark, keeper))
    loop = asyncio.get_running_loop()
    until, pause = loop.time() + grace, 0.01
    asked: set[tuple[int, str]] = set()
    while (left := await look()) and loop.time() < until:
        fresh = [p for p in left if (p.pid, p.born) not in asked]
        _signal(fresh, signal.SIGTERM, signal.SIGCONT)  # a stopped process gets no signal until it continues
        asked.update((p.pid, p.born) for p in fresh)
        await _real_pause(min(pause, max(0.0, until - loop.time())))
        pause = min(pause * 2, 0.1)
    for _ in range(_KILL_ROUNDS):
        if not left:
            break
        _signal(left, signal.SIGKILL)
        await _real_pause(0.02)
        left = await look()
    return left


def _signal(processes: Sequence[Process], *numbers: int) -> None:
    for process in processes:
        for number in numbers:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process.pid, number)


async def _real_pause(seconds: float) -> None:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()
    handle = loop.call_later(seconds, done.set_result, None)
    try:
        await done
    finally:
        handle.cancel()


def _everyone() -> Iterator[Process]:
    return _from_proc() if _PROC.joinpath("self/stat").exists() else _from_ps()


def _from_proc() -> Iterator[Process]:
    for folder in _PROC.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            stat = (folder / "stat").read_bytes().decode("utf-8", "replace")
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue  # it exited in the meantime
        name, _, rest = stat.partition("(")[2].rpartition(")")
        fields = rest.split()
        if fields[0] in ("Z", "X"):
            continue
        words = command.replace(b"\0", b" ").decode("utf-8", "replace").strip() or name
        groups = (int(fields[2]), int(fields[3]))
        yield Process(int(folder.name), int(fields[1]), groups, fields[19], one_line(clean(words), 120))


def _from_ps() -> Iterator[Process]:
    columns = "pid=,ppid=,pgid=,stat=,lstart=,command="
    done = subprocess.run(["ps", "-A", "-o", columns], capture_output=True, check=False)
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        fields = line.split(None, 9)
        if len(fields) == 10 and not fields[3].startswith("Z"):
            born, command = " ".join(fields[4:9]), one_line(clean(fields[9]), 120)
            yield Process(int(fields[0]), int(fields[1]), (int(fields[2]),), born, command)


def _is_marked(pid: int, mark: str) -> bool:
    try:
        return f"{MARK}={mark}".encode() in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False  # owned by somebody else, or gone
