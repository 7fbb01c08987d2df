"""The output of a command: live for people, bounded in memory, and complete on disk when it is long."""

from __future__ import annotations

import asyncio
import codecs
import json
import os
from collections.abc import Callable
from typing import Final

from handrail.clock import Clock
from handrail.messages import clean
from handrail.tools.kept import MAX_SESSION, KeptOutput
from handrail.tools.output import MAX_LINES, count, size

MAX_BYTES: Final = 30_000
"""The model gets a third of this from the start of the output and the rest from its end, where errors are."""

MAX_KEPT: Final = 200_000_000
"""The most bytes of one output on disk."""

LIVE_S: Final = 0.05
LIVE_CHARS: Final = 8_192
"""Live output comes at most every 50 ms (of real time) with at most 8,192 characters, the newest ones."""


class Capture:
    """Collects bytes as they come. `path` is the file with the whole output, if it was too long for the
    model; it is one of the session's kept outputs."""

    def __init__(self, clock: Clock, progress: Callable[[str], None], kept: KeptOutput) -> None:
        self._clock = clock
        self._session = kept
        self._live = _Live(progress)
        self._head = bytearray()
        self._tail = bytearray()
        self._file: int | None = None
        self._kept = 0
        self._lost: str | None = None
        self._ended_line = True
        self._feeds = 0
        self.total = 0
        self.path: str | None = None

    @property
    def lines(self) -> int:
        return self._feeds + (not self._ended_line)

    @property
    def cut(self) -> bool:
        """Whether the model gets only part of it."""
        return self.total > MAX_BYTES or self.lines > MAX_LINES

    async def add(self, data: bytes) -> None:
        """More output. Waits for the disk when there is much."""
        before = bytes(self._head) if self._file is None else b""
        self.total += len(data)
        self._feeds += data.count(b"\n")
        self._ended_line = data.endswith(b"\n")
        self._head += data[: max(0, MAX_BYTES - len(self._head))]
        self._tail += data[-MAX_BYTES:]
        if len(self._tail) > 2 * MAX_BYTES:
            del self._tail[:-MAX_BYTES]
        self._live.add(data)
        if self.cut:
            await self._keep(before + data)

    async def close(self) -> None:
        """The output is complete."""
        self._live.close()
        if self._file is not None:
            descriptor, self._file = self._file, None
            await self._clock.in_thread(lambda: os.close(descriptor))

    def text(self) -> str:
        """The text for the model: everything, or start and end with a note between them."""
        if not self.cut:
            return clean(self._head.decode("utf-8", "replace"))
        head = _first_lines(bytes(self._head[: MAX_BYTES // 3]), MAX_LINES // 3)
        tail = _last_lines(bytes(self._tail[-(MAX_BYTES - MAX_BYTES // 3) :]), MAX_LINES - MAX_LINES // 3)
        note = self._note(head, tail)
        head_text = head.decode("utf-8", "replace").rstrip("\n")
        return clean(f"{head_text}\n{note}\n{tail.decode('utf-8', 'replace')}")

    def _note(self, head: bytes, tail: bytes) -> str:
        seen = head.count(b"\n")
        lines = self.lines - seen - tail.count(b"\n") - (not tail.endswith(b"\n"))
        left_out = f"{count(lines, 'line')}, {size(self.total - len(head) - len(tail))}" if lines > 0 else ""
        left_out = left_out or size(self.total - len(head) - len(tail))
        if self._lost is not None:
            return f"[… {left_out} left out; the whole output could not be kept: {self._lost}]"
        call = json.dumps({"path": self.path, "offset": seen + 1}, ensure_ascii=False)
        whole = (
            "the whole output" if self._kept == self.total else f"the first {size(self._kept)} of the output"
        )
        return f"[… {left_out} left out; {whole} is in {self.path}: read {call}]"

    async def _keep(self, data: bytes) -> None:
        """Write what fits. A disk that is full, and a session that has kept enough, lose the rest and say so."""
        if self._lost is not None:
            return
        try:
            await self._clock.in_thread(lambda: self._write(data))
        except OSError as error:
            self._lost = error.strerror or str(error)

    def _write(self, data: bytes) -> None:
        data = data[: max(0, min(MAX_KEPT - self._kept, self._session.room()))]
        if not data:
            if self._file is None:
                self._lost = f"the session has kept {size(MAX_SESSION)} already"
            return
        if self._file is None:
            self._file, self.path = self._session.create()
        view = memoryview(data)
        while view:
            written = os.write(self._file, view)
            self._kept += written
            self._session.took(written)
            view = view[written:]


class _Live:
    """Merges live output, so that a flood of it stays cheap for every listener."""

    def __init__(self, progress: Callable[[str], None]) -> None:
        self._progress = progress
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""
        self._skipped = 0
        self._timer: asyncio.TimerHandle | None = None

    def add(self, data: bytes) -> None:
        self._pending += self._decoder.decode(data)
        if (over := len(self._pending) - LIVE_CHARS) > 0:
            self._skipped += over
            self._pending = self._pending[over:]
        if self._timer is None:
            self._flush()
            self._timer = asyncio.get_running_loop().call_later(LIVE_S, self._due)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._pending += self._decoder.decode(b"", True)
        self._flush()

    def _due(self) -> None:
        self._timer = None
        if self._pending:
            self._flush()
            self._timer = asyncio.get_running_loop().call_later(LIVE_S, self._due)

    def _flush(self) -> None:
        text, skipped = self._pending, self._skipped
        self._pending, self._skipped = "", 0
        if skipped:
            text = f"[… {skipped:,} characters]\n{text}"
        if text:
            self._progress(clean(text))


def _first_lines(data: bytes, limit: int) -> bytes:
    """At most `limit` lines, whole ones where there is one; else cut between characters."""
    lines = data.split(b"\n", limit)
    if len(lines) > limit:
        return data[: len(data) - len(lines[-1])]
    end = data.rfind(b"\n")
    return data[: end + 1] if end >= 0 else data.decode("utf-8", "ignore").encode()


def _last_lines(data: bytes, limit: int) -> bytes:
    lines = data.removesuffix(b"\n").rsplit(b"\n", limit)
    if len(lines) > limit:
        return data[len(lines[0]) + 1 :]
    start = data.find(b"\n", 0, len(data) - 1)
    if start >= 0:
        return data[start + 1 :]
    return data.lstrip(bytes(range(0x80, 0xC0)))
