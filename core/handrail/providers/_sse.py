"""Server-sent events from bytes, cut anywhere.

A decoder of our own: the one of httpx-sse is private to a reader that insists on the right content type
(which servers often do not send), keeps a byte order mark, and holds back an event that ends in a lone CR.

It is more lenient than the standard, because nothing that a server says may be lost (rule W3). An event ends at its
blank line, and also where the next one begins without one, or where the stream ends. Lines that are no field of the
standard become events of their own: `error: {…}`, a bare line of JSON, plain words. Comments, `id` and `retry` mean
nothing here.
"""

from __future__ import annotations

import codecs
import json
from typing import NamedTuple

MAX_EVENT = 32 * 1024 * 1024  # bytes; an event that is larger is no event but a fault
BARE = "bare"
"""The name of an event that came as lines without a field."""
_BOM = b"\xef\xbb\xbf"
_IGNORED = ("id", "retry")


class ServerEvent(NamedTuple):
    """One event: its name (empty when the server gave none) and its data, lines joined by LF."""

    event: str
    data: str


class EventDecoder:
    """Turns chunks of bytes into events. Lines end in LF, CRLF or CR; bad UTF-8 is replaced (rule L11)."""

    def __init__(self) -> None:
        self._tail: list[bytes] = []
        self._tail_size = 0
        self._after_cr = False
        self._start = True
        self._event = ""
        self._data: list[str] = []
        self._data_size = 0
        self._bare: list[str] = []
        self._found: list[ServerEvent] = []
        self._utf16: codecs.IncrementalDecoder | None = None

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """The events that `chunk` completes. Raises ValueError for an event beyond MAX_EVENT bytes."""
        if self._start and not self._tail and (name := _utf16_name(chunk)) is not None:
            self._utf16 = codecs.getincrementaldecoder(name)("replace")
        if self._utf16 is not None:
            chunk = self._utf16.decode(chunk).encode("utf-8", "replace")
        chunk = self._with_plain_line_ends(chunk)
        head, newline, tail = chunk.rpartition(b"\n")
        if not newline:
            self._keep(chunk)
            return []
        lines = b"".join((*self._tail, head)).split(b"\n")
        self._tail.clear()
        self._tail_size = 0
        self._keep(tail)
        return self._read(lines)

    def close(self) -> list[ServerEvent]:
        """The events that the end of the stream completes: a last line may lack its end, but not its end of JSON."""
        tail = b"".join(self._tail)
        self._tail.clear()
        self._tail_size = 0
        found = self._read([tail, b""]) if tail or self._data or self._bare else []
        if (
            tail.startswith(b"data")
            and found
            and found[-1].data[:1] in ("{", "[")
            and not is_json(found[-1].data)
        ):
            found.pop()  # the line was cut, and so was its event
        return found

    def _read(self, lines: list[bytes]) -> list[ServerEvent]:
        if self._start:
            self._start = False
            lines[0] = lines[0].removeprefix(_BOM)
        found: list[ServerEvent] = []
        self._found = found
        for line in lines:
            if line:
                self._field(line)
                continue
            if self._data:
                self._dispatch()
            self._event = ""
            if self._bare:
                self._dispatch_bare()
        return found

    def _with_plain_line_ends(self, chunk: bytes) -> bytes:
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        if b"\r" in chunk:
            self._after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return chunk

    def _keep(self, tail: bytes) -> None:
        if tail:
            self._tail.append(tail)
            self._tail_size += len(tail)
            if self._tail_size > MAX_EVENT:
                raise _too_large()

    def _field(self, line: bytes) -> None:
        if line.startswith(b"data:"):
            value = line[6:] if line.startswith(b"data: ") else line[5:]
            self._add(value.decode("utf-8", "replace"))
        elif line.startswith(b"event:"):
            if len(self._data) == 1 and is_json(self._data[0]):
                self._dispatch()  # the blank line between two events is missing
            self._event = line[6:].removeprefix(b" ").decode("utf-8", "replace")
        else:
            self._odd(line.decode("utf-8", "replace"))

    def _add(self, value: str) -> None:
        if len(self._data) == 1 and is_json(self._data[0]):
            self._dispatch()  # each of two lines is an event of its own
        self._data.append(value)
        self._size(len(value))

    def _odd(self, line: str) -> None:
        """A line of no field that the standard knows, or of one in another spelling."""
        field, colon, value = line.partition(":")
        plain, value = field.strip().lower(), value.removeprefix(" ")
        if plain == "data":
            self._add(value)
        elif plain == "event":
            self._event = value
        elif colon and plain == "error" and '"' not in field:
            self._found.append(ServerEvent("error", value))
        elif plain in _IGNORED or (colon and not plain and not value.lstrip().startswith("{")):
            return
        else:
            self._bare.append(
                value if colon and value.lstrip().startswith("{") and '"' not in field else line
            )
            self._size(len(line))
            if len(self._bare) == 1 and is_json(self._bare[0]):
                self._dispatch_bare()

    def _dispatch(self) -> None:
        data = self._data[0] if len(self._data) == 1 else "\n".join(self._data)
        self._found.append(ServerEvent(self._event, data))
        self._data.clear()
        self._data_size = 0
        self._event = ""

    def _dispatch_bare(self) -> None:
        self._found.append(ServerEvent(BARE, "\n".join(self._bare)))
        self._bare.clear()
        self._data_size = 0

    def _size(self, more: int) -> None:
        self._data_size += more
        if self._data_size > MAX_EVENT:
            raise _too_large()


def is_json(text: str) -> bool:
    """Whether a text is JSON, an object or a list, or the end mark."""
    text = text.strip()
    if text == "[DONE]":
        return True
    if not ((text.startswith("{") and text.endswith("}")) or (text.startswith("[") and text.endswith("]"))):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _utf16_name(head: bytes) -> str | None:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    if len(head) >= 4 and head[1:4:2] == b"\0\0" and head[0] and head[2]:
        return "utf-16-le"
    if len(head) >= 4 and head[0:3:2] == b"\0\0" and head[1] and head[3]:
        return "utf-16-be"
    return None


def _too_large() -> ValueError:
    return ValueError(f"an event of the stream exceeds limit {MAX_EVENT} bytes")
