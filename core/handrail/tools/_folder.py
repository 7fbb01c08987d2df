"""Folders by handle: what is opened, made or replaced in one lies in that very folder (rule H7).

A path is checked when a call is shown and used when it runs. In between, a folder of it may become a symlink. A
handle is opened part by part from the root and follows no symlink: it leads to the place that was checked, or nowhere.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from handrail.tools.base import ShownChanged

_BY_HANDLE: Final = {
    os.open,
    os.mkdir,
    os.stat,
    os.unlink,
    os.link,
    os.rename,
    os.readlink,
} <= os.supports_dir_fd
"""False on Windows: paths are used there, and a swap in between is not noticed."""

_STEP: Final = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0)
_NO_FOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)
_CLOSE: Final = getattr(os, "O_CLOEXEC", 0)


class Folder:
    """The folder `path`, which must be absolute and without symlinks (`Place.real` and its parents are).

    Raises ShownChanged when a part of the path has become a symlink, OSError for anything else. `make` creates
    the folders that are missing.
    """

    def __init__(self, path: Path, *, make: bool = False) -> None:
        self.path = path
        self.handle = _reach(path, make) if _BY_HANDLE else None
        if make and self.handle is None:
            path.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.handle is not None:
            os.close(self.handle)

    def open(self, name: str, flags: int, mode: int = 0o666) -> int:
        """A descriptor of `name`, which is no symlink. A pipe does not block."""
        flags |= _NO_FOLLOW | _CLOSE | getattr(os, "O_NONBLOCK", 0)
        try:
            return os.open(self._at(name), flags, mode, dir_fd=self.handle)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise ShownChanged(f"{self.path / name} has become a symlink") from None
            raise

    def status(self, name: str) -> os.stat_result:
        """The status of `name` itself, also if it is a symlink."""
        return os.stat(self._at(name), dir_fd=self.handle, follow_symlinks=False)

    @contextmanager
    def entries(self) -> Iterator[list[os.DirEntry[str]]]:
        """What is in the folder, in no order. The entries can be asked about until the block ends."""
        listed: int | str = str(self.path)
        if self.handle is not None:
            listed = os.open(".", os.O_RDONLY | _CLOSE, dir_fd=self.handle)
        try:
            with os.scandir(listed) as found:
                yield list(found)
        finally:
            if isinstance(listed, int):
                os.close(listed)

    def target(self, name: str) -> str:
        """Where the symlink `name` leads."""
        return os.readlink(self._at(name), dir_fd=self.handle)

    def put(self, made: str, name: str) -> None:
        """Rename `made` to `name`, in whose place it steps."""
        os.replace(self._at(made), self._at(name), src_dir_fd=self.handle, dst_dir_fd=self.handle)

    def add(self, made: str, name: str) -> None:
        """Rename `made` to `name`. Raises FileExistsError when there is something of that name."""
        here = self.handle
        try:
            os.link(self._at(made), self._at(name), src_dir_fd=here, dst_dir_fd=here)
        except (FileExistsError, FileNotFoundError):
            raise
        except OSError:  # a file system without hard links: claim the name, then step in its place
            os.close(self.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            self.put(made, name)
            return
        self.remove(made)

    def remove(self, name: str) -> None:
        """Delete the file `name`."""
        os.unlink(self._at(name), dir_fd=self.handle)

    def sync(self) -> None:
        """Make new names durable. Some file systems refuse to sync a folder; the files are safe then."""
        with suppress(OSError):
            descriptor = os.open(self._at("."), os.O_RDONLY, dir_fd=self.handle)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def _at(self, name: str) -> str:
        return name if self.handle is not None else str(self.path / name)


def _reach(path: Path, make: bool) -> int:
    here = os.open(path.anchor, _STEP | _CLOSE)
    try:
        for part in path.parts[1:]:
            deeper = _step(here, part, make, path)
            os.close(here)
            here = deeper
    except BaseException:
        os.close(here)
        raise
    return here


def _step(here: int, part: str, make: bool, path: Path) -> int:
    flags = _STEP | _NO_FOLLOW | _CLOSE
    try:
        return os.open(part, flags, dir_fd=here)
    except FileNotFoundError:
        if not make:
            raise
        with suppress(FileExistsError):
            os.mkdir(part, dir_fd=here)
        return os.open(part, flags, dir_fd=here)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR) and _is_link(here, part):
            raise ShownChanged(f"a folder of {path} has become a symlink") from None
        raise


def _is_link(here: int, part: str) -> bool:
    try:
        return stat.S_ISLNK(os.stat(part, dir_fd=here, follow_symlinks=False).st_mode)
    except OSError:
        return False
