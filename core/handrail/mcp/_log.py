"""What a server says beside the protocol: noise on stderr, garbage on stdout. Into a file of the session, never to the
terminal (docs/mcp.md)."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from handrail.messages import clean
from handrail.tools.output import one_line, size

MAX_LOG: Final = 5_000_000
"""Bytes of a server's noise on disk."""

_TAIL: Final = 4_096


class ServerLog:
    """Takes noise. `path` is the file, None when there is no folder or nothing came."""

    def __init__(self, folder: Path | None, name: str) -> None:
        self._target = folder / f"{name}.log" if folder is not None else None
        self._file: int | None = None
        self._written = 0
        self._full = False
        self._tail = b""
        self.path: Path | None = None

    def add(self, data: bytes) -> None:
        """More noise. A file that cannot be written is given up: noise never stops a server."""
        self._tail = (self._tail + data)[-_TAIL:]
        if self._target is None or self._full:
            return
        with suppress(OSError):
            if self._file is None:
                self._file = os.open(self._target, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
                self._written = os.fstat(self._file).st_size
                self.path = self._target
            room = MAX_LOG - self._written
            os.write(self._file, data[:room])
            self._written += len(data)
            if self._written >= MAX_LOG:
                self._full = True
                os.write(self._file, f"\n[over {size(MAX_LOG)}: the rest is not kept]\n".encode())

    def garbage(self, line: bytes) -> None:
        """A line of stdout that is no message."""
        self.add(b"[stdout] " + line + b"\n")

    @property
    def last_words(self) -> str:
        """The last line that says something, for a person: one line, cleaned."""
        lines = [line.strip() for line in clean(self._tail.decode("utf-8", "replace")).splitlines()]
        return one_line(next((line for line in reversed(lines) if line), ""), 200)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
