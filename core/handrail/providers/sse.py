"""Server-sent events from bytes, cut anywhere.

A decoder of our own: the one of httpx-sse is private to a reader that insists on the right content type
(which servers often do not send), keeps a byte order mark, and holds back an event that ends in a lone CR.
Comments, `id` and `retry` mean nothing here and are dropped, and so is, as the standard says, an event that the
stream breaks off before its blank line.
"""

from __future__ import annotations

from typing import NamedTuple

MAX_EVENT = 32 * 1024 * 1024  # bytes; an event that is larger is no event but a fault
_BOM = b"\xef\xbb\xbf"


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

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """The events that `chunk` completes. Raises ValueError for an event beyond MAX_EVENT bytes."""
        chunk = self._with_plain_line_ends(chunk)
        head, newline, tail = chunk.rpartition(b"\n")
        if not newline:
            self._keep(chunk)
            return []
        lines = b"".join((*self._tail, head)).split(b"\n")
        self._tail.clear()
        self._tail_size = 0
        self._keep(tail)
        if self._start:
            self._start = False
            lines[0] = lines[0].removeprefix(_BOM)
        found: list[ServerEvent] = []
        for line in lines:
            if line:
                self._field(line)
                continue
            if self._data:
                data = self._data[0] if len(self._data) == 1 else "\n".join(self._data)
                found.append(ServerEvent(self._event, data))
                self._data.clear()
                self._data_size = 0
            self._event = ""
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
            self._data.append(value.decode("utf-8", "replace"))
            self._data_size += len(line)
            if self._data_size > MAX_EVENT:
                raise _too_large()
        elif line.startswith(b"event:"):
            self._event = line[6:].removeprefix(b" ").decode("utf-8", "replace")
        elif line == b"data":
            self._data.append("")


def _too_large() -> ValueError:
    return ValueError(f"an event of the stream exceeds limit {MAX_EVENT} bytes")
