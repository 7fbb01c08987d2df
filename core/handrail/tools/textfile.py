"""Files as read, write and edit see them: text or not, how lines end, saved whole or not at all."""

from __future__ import annotations

import asyncio
import codecs
import mimetypes
import os
import secrets
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias, TypeVar

from handrail.mask import MASK
from handrail.tools._output import size
from handrail.tools._stopping import whole
from handrail.tools.base import ToolContext, ToolError
from handrail.tools.paths import Place, explain

T = TypeVar("T")
Stamp: TypeAlias = tuple[int, int]
"""A file's modification time (ns) and size: enough to notice that something else wrote it."""

BOM: Final = codecs.BOM_UTF8
MAX_EDIT: Final = 20_000_000
"""The largest file in bytes that write and edit compute a diff for."""

SNIFF: Final = 8_192

_MAGIC: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
    (b"\x7fELF", "ELF binary"),
    (b"SQLite format 3\0", "SQLite database"),
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
)
_STAMPS: Final = "tools.stamps"
_LOCK: Final = "tools.lock"


def kind_of(head: bytes, name: str) -> str | None:
    """The kind of a file that is not text, from its first bytes and its name; None for text."""
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            return kind
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    if b"\0" in head:
        return mimetypes.guess_type(name)[0] or "binary data"
    return None


@dataclass(frozen=True, slots=True)
class TextFile:
    """A text file, whole. In `text` only the byte order mark is left out: line ends are as on disk, and bytes
    that are not UTF-8 are lone surrogates, so that saving gives them back."""

    text: str
    bom: bool
    mode: int
    stamp: Stamp

    @property
    def ending(self) -> Literal["\n", "\r\n"]:
        """How most lines end."""
        crlf = self.text.count("\r\n")
        return "\r\n" if crlf * 2 > self.text.count("\n") else "\n"

    def encode(self, text: str) -> bytes:
        """`text` as bytes of this file."""
        return (BOM if self.bom else b"") + text.encode("utf-8", "surrogateescape")


def regular(place: Place) -> os.stat_result:
    """The status of a regular file. Raises FileNotFoundError, or ToolError for a folder, a device, no
    permission."""
    try:
        info = place.real.stat()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise explain(error, place.shown) from None
    if stat.S_ISDIR(info.st_mode):
        raise ToolError(f"{place.shown} is a folder: use ls")
    if not stat.S_ISREG(info.st_mode):
        raise ToolError(f"{place.shown} is not a regular file but a device, a pipe or a socket")
    return info


def load(place: Place) -> TextFile:
    """Read a text file whole. Raises FileNotFoundError, or ToolError when it is no text, too large or not
    readable."""
    info = regular(place)
    if info.st_size > MAX_EDIT:
        raise ToolError(
            f"{place.shown} is too large for this tool: {size(info.st_size)}, at most {size(MAX_EDIT)}"
        )
    try:
        with place.real.open("rb") as file:
            info = os.fstat(file.fileno())
            data = file.read()
    except OSError as error:
        raise explain(error, place.shown) from None
    if kind := kind_of(data[:SNIFF], place.path.name):
        raise ToolError(f"{place.shown} is no text but {kind}, {size(len(data))}")
    bom = data.startswith(BOM)
    text = data.removeprefix(BOM).decode("utf-8", "surrogateescape")
    return TextFile(text, bom, stat.S_IMODE(info.st_mode), stamp_of(info))


def save(place: Place, data: bytes, mode: int | None) -> Stamp:
    """Replace the file's contents by `data`, all or nothing: a new file is synced and renamed over the old
    one.

    `mode` keeps the permissions of the old file; None makes a new file, and its folders, with the usual ones.
    Raises ToolError, among others for a file that is marked read-only.
    """
    target = place.real
    try:
        if mode is not None and not (mode & 0o222 and os.access(target, os.W_OK)):
            raise ToolError(f"{place.shown} is read-only")
        target.parent.mkdir(parents=True, exist_ok=True)
        return _replace(target, data, mode)
    except OSError as error:
        raise explain(error, place.shown) from None


def _replace(target: Path, data: bytes, mode: int | None) -> Stamp:
    beside = target.parent / f".handrail-{secrets.token_hex(6)}"
    # A new file gets the permissions that the umask leaves; an old one is private until it has those of the
    # old.
    descriptor = os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666 if mode is None else 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if mode is not None:
                _adopt(file.fileno(), target, mode)
            os.fsync(file.fileno())
            info = os.fstat(file.fileno())
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)
    return stamp_of(info)


def _adopt(descriptor: int, target: Path, mode: int) -> None:
    """Give a file the owner and the permissions of the old one."""
    old, new = target.stat(), os.fstat(descriptor)
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        try:
            os.fchown(descriptor, old.st_uid, old.st_gid)
        except PermissionError:
            mode &= 0o1777  # the owner changes to us: drop the set-user-id bit
    os.fchmod(descriptor, mode)


def _sync_folder(folder: Path) -> None:
    """Make the new name durable. Some file systems refuse to sync a folder; the file itself is safe then."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        return
    finally:
        os.close(descriptor)


def stamp_of(info: os.stat_result) -> Stamp:
    return info.st_mtime_ns, info.st_size


def remember(ctx: ToolContext, place: Place, stamp: Stamp) -> None:
    """Remember the state in which the model last saw a file."""
    ctx.memory.setdefault(_STAMPS, {})[str(place.real)] = stamp


def require_unchanged(ctx: ToolContext, place: Place, stamp: Stamp) -> None:
    """Raise ToolError when the file was read in this session and has been changed by something else since."""
    seen = ctx.memory.get(_STAMPS, {}).get(str(place.real))
    if seen is not None and seen != stamp:
        raise ToolError(f"{place.shown} has changed since you read it: read it again first")


def refuse_mask(*texts: str) -> None:
    """Raise ToolError for text that holds the mask of a secret (rule J5): it would replace the secret
    itself."""
    if any(MASK in text for text in texts):
        raise ToolError(
            f"the text holds {MASK}, which replaces a secret that you were not shown. "
            "Leave that part of the file as it is: edit around it"
        )


async def change(ctx: ToolContext, place: str, work: Callable[[], T]) -> T:
    """Run `work`, which changes the file `place`, in a thread: one at a time in a session, and never interrupted by
    a stop.

    A thread cannot be stopped. So a stop waits for it (milliseconds), says what became of the file, and
    is passed on then (rule L9).
    """
    async with _lock(ctx):
        done, stopped = await whole(ctx.clock.in_thread(work))
        if stopped:
            ctx.leave(f"{place}: changed before the stop")
            raise asyncio.CancelledError
        return done


def _lock(ctx: ToolContext) -> asyncio.Lock:
    """One for all files: changes take milliseconds, and two names may be one file. A lock belongs to its
    event loop."""
    loop = asyncio.get_running_loop()
    held: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = ctx.memory.get(_LOCK)
    if held is None or held[0] is not loop:
        held = ctx.memory[_LOCK] = (loop, asyncio.Lock())
    return held[1]
