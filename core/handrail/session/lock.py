"""A lock that dies with its owner: two processes never write one session (rule J2).

The operating system holds the lock, so a killed program leaves none behind. The lock file says who holds it. It is
never removed: another process may just have opened it, and then two of them would hold the lock. Since somebody else
may remove it, the writer of a journal locks the journal too.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

from handrail.session._files import open_regular

# `holder` takes a lock for some microseconds to test it; so a refusal only counts when it lasts.
_TRIES = 100
_BEYOND = 1 << 30  # Windows locks this byte: locked bytes cannot be read, and the first ones name the holder


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that holds a lock. 0 and an empty name until it has written them."""

    pid: int = 0
    host: str = ""


class LockHeld(Exception):
    """Another process holds the lock."""

    def __init__(self, holder: Holder) -> None:
        super().__init__(f"process {holder.pid} on {holder.host}")
        self.holder = holder


class Lock:
    """An exclusive lock on the file `path`, which is created with mode 0600."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd: int | None = None

    def acquire(self) -> None:
        """Take the lock. Raises LockHeld at once when another process holds it, OSError when there can be no file."""
        fd = _open(self._path)
        try:
            if not take(fd):
                raise LockHeld(_read(fd))
            _write(fd, Holder(os.getpid(), socket.gethostname()))
        except BaseException:
            os.close(fd)
            raise
        self._fd = fd

    def release(self) -> None:
        """Release the lock. Does nothing when it is not held."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def take(fd: int) -> bool:
    """Lock an open file until it is closed. False: another process holds it."""
    return any(_take(fd, shared=False) for _ in range(_TRIES))


def holder(path: Path) -> Holder | None:
    """Who holds the lock file `path`, or the journal beside it, now; None when nobody does."""
    for file in (path, path.with_suffix(".jsonl")):
        try:
            fd = open_regular(file, os.O_RDWR)
        except OSError:
            continue
        try:
            if not _take(fd, shared=True):
                return _read(fd) if file is path else Holder()
        finally:
            os.close(fd)
    return None


def _open(path: Path) -> int:
    fd = open_regular(path, os.O_RDWR | os.O_CREAT)
    if hasattr(os, "fchmod"):
        with contextlib.suppress(OSError):
            os.fchmod(fd, 0o600)
    return fd


def _write(fd: int, holder: Holder) -> None:
    """Write down who holds it. That is information for people: the lock holds even if the disk is full."""
    with contextlib.suppress(OSError):
        os.ftruncate(fd, 0)
        os.lseek(fd, 0, os.SEEK_SET)
        os.write(fd, json.dumps({"pid": holder.pid, "host": holder.host}).encode())


def _read(fd: int) -> Holder:
    try:
        os.lseek(fd, 0, os.SEEK_SET)
        said = json.loads(os.read(fd, 4096))
        return Holder(int(said["pid"]), str(said["host"]))
    except (OSError, ValueError, KeyError, TypeError):
        return Holder()


if sys.platform == "win32":
    import msvcrt

    def _take(fd: int, *, shared: bool) -> bool:
        os.lseek(fd, _BEYOND, os.SEEK_SET)
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _take(fd: int, *, shared: bool) -> bool:
        try:
            fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
