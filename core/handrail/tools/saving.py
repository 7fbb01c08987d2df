"""Replacing a file's contents, all or nothing, and only the very file that was looked at (rule H7).

A new file is written beside the old one, synced, and renamed over it. Where that is not possible (the file is a mount
of its own, or its folder is not ours to write) or would split hard links, the file is written in place; a copy lies
beside it or in the temporary folder until the new contents are synced.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from handrail.tools._folder import Folder
from handrail.tools.base import ShownChanged, ToolError
from handrail.tools.paths import Place, explain, require_folder
from handrail.tools.textfile import Stamp, TextFile, stamp_of

_NO_RENAME: Final = (errno.EBUSY, errno.EXDEV, errno.EACCES, errno.EPERM, errno.EROFS, errno.ETXTBSY)
"""Errors of making or renaming a file beside the old one that say nothing about the old file itself."""


@dataclass(frozen=True, slots=True)
class Saved:
    """The file's new stamp. `note` is for the result when something else than the content is worth knowing."""

    stamp: Stamp
    note: str = ""


def save(place: Place, data: bytes, old: TextFile | None) -> Saved:
    """Make `data` the contents of the file. `old` is the file as it was read; None makes a new file, and its folders.

    Permissions, owner, extended attributes and hard links are preserved as far as the system lets us. Raises
    ShownChanged when the file is no longer `old` or its place has become another one, ToolError for the rest, among
    others for a file that is marked read-only. In each case the file is as it was before.
    """
    require_folder(place)
    target = place.real
    try:
        if old is not None and not (old.mode & 0o222 and os.access(target, os.W_OK)):
            raise ToolError(f"{place.shown} is read-only")
        with Folder(target.parent, make=old is None) as folder:
            if old is None:
                return _create(folder, target.name, data)
            if old.links > 1:
                note = f"written in place: it has {old.links} hard links, and all of them show the change"
                return Saved(_in_place(folder, target.name, data, old), note)
            try:
                return _replace(folder, target.name, data, old)
            except OSError as error:
                if error.errno not in _NO_RENAME:
                    raise
                note = "written in place: it could not be replaced by a new file"
                return Saved(_in_place(folder, target.name, data, old), note)
    except OSError as error:
        raise explain(error, place.shown) from None


def delete(place: Place, old: TextFile) -> None:
    """Delete the file, if it is still `old`. Raises ShownChanged, ToolError."""
    try:
        with Folder(place.real.parent) as folder:
            _require(folder, place.real.name, old)
            folder.remove(place.real.name)
    except OSError as error:
        raise explain(error, place.shown) from None


def _create(folder: Folder, name: str, data: bytes) -> Saved:
    beside, stamp = _write_beside(folder, data, 0o666, None)
    try:
        folder.add(beside, name)
    except FileExistsError:
        folder.remove(beside)
        raise ShownChanged(f"{name} was made by something else in the meantime") from None
    except BaseException:
        folder.remove(beside)
        raise
    folder.sync()
    return Saved(stamp)


def _replace(folder: Folder, name: str, data: bytes, old: TextFile) -> Saved:
    with _descriptor(folder.open(name, os.O_RDONLY)) as former:
        beside, stamp = _write_beside(folder, data, 0o600, former.fd)
    try:
        _require(folder, name, old)
        folder.put(beside, name)
    except BaseException:
        folder.remove(beside)
        raise
    folder.sync()
    return Saved(stamp)


def _write_beside(folder: Folder, data: bytes, mode: int, former: int | None) -> tuple[str, Stamp]:
    """A synced file with `data`, and its stamp. It gets what can be had of the owner and attributes of `former`."""
    name = f".handrail-{secrets.token_hex(6)}"
    with _descriptor(folder.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)) as file:
        try:
            _write(file.fd, data)
            if former is not None:
                _adopt(file.fd, former)
            os.fsync(file.fd)
            return name, stamp_of(os.fstat(file.fd))
        except BaseException:
            folder.remove(name)
            raise


def _in_place(folder: Folder, name: str, data: bytes, old: TextFile) -> Stamp:
    with _descriptor(folder.open(name, os.O_RDWR)) as file:
        if not old.is_same(os.fstat(file.fd)):
            raise ShownChanged(f"{name} has changed in the meantime")
        before = _read(file.fd)
        copy = _copy(folder.path, before)
        try:
            _overwrite(file.fd, data)
        except OSError as error:
            try:
                _overwrite(file.fd, before)
            except OSError:
                reason = error.strerror or error
                raise ToolError(f"{name} is damaged ({reason}); its old contents are in {copy}") from None
            copy.unlink(missing_ok=True)
            raise ToolError(f"{name}: {error.strerror or error}. It is unchanged") from None
        copy.unlink(missing_ok=True)
        return stamp_of(os.fstat(file.fd))


def _copy(folder: Path, data: bytes) -> Path:
    """A synced copy beside the file, or in the temporary folder."""
    for place in (folder, Path(tempfile.gettempdir())):
        try:
            fd, path = tempfile.mkstemp(prefix=".handrail-", suffix=".old", dir=place)
        except OSError:
            continue
        with _descriptor(fd):
            _write(fd, data)
            os.fsync(fd)
        return Path(path)
    raise OSError(errno.EACCES, "there is no place for a copy while it is written")


def _overwrite(fd: int, data: bytes) -> None:
    os.lseek(fd, 0, os.SEEK_SET)
    _write(fd, data)
    os.ftruncate(fd, len(data))
    os.fsync(fd)


def _read(fd: int) -> bytes:
    pieces = []
    while piece := os.read(fd, 1_048_576):
        pieces.append(piece)
    return b"".join(pieces)


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _require(folder: Folder, name: str, old: TextFile) -> None:
    """Raise ShownChanged unless `name` is still the file that `old` was read from, unchanged."""
    try:
        same = old.is_same(folder.status(name))
    except FileNotFoundError:
        same = False
    if not same:
        raise ShownChanged(f"{name} has changed in the meantime")


def _adopt(new: int, former: int) -> None:
    """Give a file the owner, the extended attributes and the permissions of the old one."""
    old, made = os.fstat(former), os.fstat(new)
    mode = stat.S_IMODE(old.st_mode)
    if (old.st_uid, old.st_gid) != (made.st_uid, made.st_gid):
        try:
            os.fchown(new, old.st_uid, old.st_gid)
        except PermissionError:
            mode &= 0o1777  # the owner changes to us: drop the set-user-id bit
    if hasattr(os, "listxattr"):
        with suppress(OSError):
            for name in os.listxattr(former):
                with suppress(OSError):
                    os.setxattr(new, name, os.getxattr(former, name))
    os.fchmod(new, mode)


class _descriptor:
    """Closes a descriptor at the end of a block."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __enter__(self) -> _descriptor:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)
