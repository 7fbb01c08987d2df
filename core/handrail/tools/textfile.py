"""Files as read, write and edit see them: text or not, which encoding, how lines end."""

from __future__ import annotations

import asyncio
import codecs
import mimetypes
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, Final, Literal, TypeAlias, TypeVar

from handrail.mask import MASK
from handrail.tools._folder import Folder
from handrail.tools.base import ShownChanged, ToolContext, ToolError
from handrail.tools.output import size
from handrail.tools.paths import Place, explain
from handrail.tools.stopping import whole

T = TypeVar("T")
Stamp: TypeAlias = tuple[int, int]
"""A file's modification time (ns) and size: enough to notice that something else wrote it."""

Encoding: TypeAlias = Literal["utf-8", "utf-16-le", "utf-16-be"]

_BOMS: Final[tuple[tuple[bytes, Encoding], ...]] = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_RAW: Final = re.compile("[\udc80-\udcff]")
"""A byte that is not UTF-8, as Python holds it in a text."""

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
    (codecs.BOM_UTF32_LE, "UTF-32 text"),
    (codecs.BOM_UTF32_BE, "UTF-32 text"),
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
    info: os.stat_result
    encoding: Encoding = "utf-8"
    bom: bytes = b""

    @property
    def ending(self) -> Literal["\n", "\r\n"]:
        """How most lines end."""
        crlf = self.text.count("\r\n")
        return "\r\n" if crlf * 2 > self.text.count("\n") else "\n"

    @property
    def mode(self) -> int:
        """The permissions."""
        return stat.S_IMODE(self.info.st_mode)

    @property
    def links(self) -> int:
        """How many names the file has."""
        return self.info.st_nlink

    @property
    def stamp(self) -> Stamp:
        return stamp_of(self.info)

    @property
    def raw(self) -> bool:
        """Whether it holds bytes that are no text in its encoding."""
        return _RAW.search(self.text) is not None

    def is_same(self, info: os.stat_result) -> bool:
        """Whether `info` is the status of this very file, unchanged since it was read."""
        mine = self.info
        return (info.st_dev, info.st_ino, stamp_of(info)) == (mine.st_dev, mine.st_ino, self.stamp)

    def shows(self, place: Place, digest: str) -> str:
        """The fingerprint of a change of this file: where it is, what it is, and the change itself (rule H7)."""
        return f"{place.real}:{self.info.st_dev}:{self.links}:{self.mode}:{digest}"

    def encode(self, text: str) -> bytes:
        """`text` as bytes of this file."""
        errors = "surrogateescape" if self.encoding == "utf-8" else "surrogatepass"
        return self.bom + text.encode(self.encoding, errors)


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


@contextmanager
def opened(place: Place) -> Iterator[BinaryIO]:
    """The file `place.real` for reading, reached without following a symlink (rule H7). Raises FileNotFoundError,
    ShownChanged, or ToolError for what is no regular file or not readable."""
    regular(place)
    try:
        with Folder(place.real.parent) as folder:
            descriptor = folder.open(place.real.name, os.O_RDONLY)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ShownChanged(f"{place.shown} is no longer a regular file")
            yield file
    except FileNotFoundError:
        raise
    except OSError as error:
        raise explain(error, place.shown) from None


def load(place: Place) -> TextFile:
    """Read a text file whole. Raises FileNotFoundError, or ToolError when it is no text, too large or not
    readable."""
    with opened(place) as file:
        info = os.fstat(file.fileno())
        if info.st_size > MAX_EDIT:
            raise ToolError(
                f"{place.shown} is too large for this tool: {size(info.st_size)}, at most {size(MAX_EDIT)}"
            )
        data = file.read(MAX_EDIT + 1)
    encoding, bom = encoding_of(data)
    if encoding != "utf-8":
        try:
            return TextFile(data.removeprefix(bom).decode(encoding, "surrogatepass"), info, encoding, bom)
        except UnicodeDecodeError:
            raise ToolError(f"{place.shown} begins like UTF-16 text, but is none") from None
    if kind := kind_of(data[:SNIFF], place.path.name):
        raise ToolError(f"{place.shown} is no text but {kind}, {size(len(data))}")
    return TextFile(data.removeprefix(bom).decode("utf-8", "surrogateescape"), info, "utf-8", bom)


def encoding_of(head: bytes) -> tuple[Encoding, bytes]:
    """The encoding that a byte order mark names, and the mark; UTF-8 without one."""
    for bom, encoding in _BOMS:
        if head.startswith(bom) and not head.startswith(codecs.BOM_UTF32_LE):
            return encoding, bom
    return "utf-8", b""


def require_encodable(place: Place, file: TextFile, inserted: str) -> None:
    """Raise ToolError for text that does not fit a file with bytes that are not UTF-8: it would mix encodings."""
    if file.raw and not inserted.isascii():
        found = _RAW.search(file.text)
        line = file.text.count("\n", 0, found.start()) + 1 if found else 1
        raise ToolError(
            f"{place.shown} is not UTF-8 (see line {line:,}), and the new text is not plain ASCII: it would mix "
            "encodings, or replace bytes that were not shown to you. Nothing was changed. Edit ASCII parts only, or "
            "convert the file first, in the shell with iconv"
        )


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
