"""Opening the files of a session. Its folder may come from elsewhere: never through a link, never a pipe (rule H7)."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

_SAFE = (
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)  # so that opening a pipe returns at once
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


def open_regular(path: Path, flags: int, mode: int = 0o600) -> int:
    """A descriptor of a regular file. Raises OSError, also for a symbolic link, a pipe, a device or a folder."""
    try:
        fd = os.open(path, flags | _SAFE, mode)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise _not_regular(path) from None
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise _not_regular(path)
    return fd


def read_regular(path: Path) -> BinaryIO:
    """A regular file, open for reading. Raises OSError as `open_regular` does."""
    return os.fdopen(open_regular(path, os.O_RDONLY), "rb")


def still_there(path: Path, fd: int) -> bool:
    """Whether `path` still names the file that is open as `fd`."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(fd))
    except OSError:
        return False


def _not_regular(path: Path) -> OSError:
    return OSError(errno.EINVAL, "it is not a regular file", str(path))
