"""The lines of a journal: how a record is written, and how damage is detected (rules J1, J2).

A line is `{"v":1,"n":17,"crc":"9f3a12bc","kind":"turn_started","data":{…}}`: the format version, the record's
number in the file from 0, a checksum over the number and everything after the checksum, and the event.
`kind` is the type of an event, whose JSON is `data`, or one of the journal's own: `header` (the first record),
`tail_repaired`, and `piece` (part of a streaming reply, rule J3; its `data` is a message_delta).
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from handrail.events import Event
from handrail.events.wire import Codec
from handrail.session._files import read_regular

VERSION = 1
HEADER, REPAIRED, PIECE = "header", "tail_repaired", "piece"
OWN = frozenset({HEADER, REPAIRED, PIECE})

_START = b'{"v":'
_LINE = re.compile(
    rb'\{"v":(\d{1,6}),"n":(\d{1,15}),"crc":"([0-9a-f]{8})","kind":"([a-z_]{1,40})","data":(\{.*\})\}',
    re.DOTALL,
)
_VERSIONED = re.compile(rb'\{"v":(\d{1,6}),')


@dataclass(slots=True)
class JournalRecord:
    """One good record. `offset` and `length` are in bytes, without the line's end."""

    n: int
    kind: str
    data: bytes
    offset: int = 0
    length: int = 0

    @property
    def event(self) -> Event | None:
        """The event; for a piece its message_delta. Parsed on each access.

        None for the journal's other records, and for an event that this version does not know.
        """
        if self.kind in (HEADER, REPAIRED):
            return None
        try:
            return Codec.loads(self.data)
        except ValueError:
            return None

    @property
    def fields(self) -> dict[str, Any]:
        """`data` as a dict; empty when it is not one."""
        try:
            value = json.loads(self.data)
        except (ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}


@dataclass(frozen=True, slots=True)
class JournalHeader:
    """The first record: the session's id, when it began, and metadata from its creator."""

    session: str
    at: float
    meta: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes that are not a record: `length` bytes at byte `offset`, in line `line`, counted from 1."""

    offset: int
    line: int
    what: str
    length: int = 0

    def __str__(self) -> str:
        return f"line {self.line}, byte {self.offset}: {self.what}"


@dataclass(slots=True)
class JournalContents:
    """What a journal holds.

    `damage` lists what is wrong in the middle, `set_aside` what earlier repairs closed, `torn_tail` what
    follows the last good record. `records` are the good ones in order, the journal's own included.
    """

    header: JournalHeader | None = None
    records: list[JournalRecord] = field(default_factory=list)
    damage: tuple[Damage, ...] = ()
    set_aside: tuple[Damage, ...] = ()
    torn_tail: Damage | None = None
    version: int = VERSION
    next_n: int = 0
    size: int = 0
    ends_open: bool = False
    """The last record is complete, but its line end is missing."""

    def events(self) -> Iterator[Event]:
        """The events in order, without pieces, parsed one at a time."""
        for record in self.records:
            if record.kind not in OWN and (event := record.event) is not None:
                yield event


def encode(n: int, kind: str, data: bytes) -> bytes:
    """A record as a line. `data` is JSON without line breaks."""
    crc = _checksum(n, kind.encode(), data)
    return b'{"v":%d,"n":%d,"crc":"%08x","kind":"%s","data":%s}\n' % (VERSION, n, crc, kind.encode(), data)


def event_data(event: Event) -> bytes:
    """An event as the `data` of a record. Raises ValueError for an event that could not be read back."""
    try:
        data = Codec.dumps(event)
        Codec.loads(data)
    except ValueError as error:
        words = str(error).splitlines()[0]
        raise ValueError(f"{event.type} cannot be stored: it could not be read back: {words}") from error
    return data


def decode(line: bytes, offset: int = 0) -> JournalRecord | None:
    """The record in a line without its line end; None when there is none."""
    match = _LINE.fullmatch(line)
    if match is None:
        return None
    version, n, crc, kind, data = match.groups()
    if int(version) > VERSION or int(crc, 16) != _checksum(int(n), kind, data):
        return None
    return JournalRecord(int(n), kind.decode(), data, offset, len(line))


def _checksum(n: int, kind: bytes, data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32(b"%d %s " % (n, kind)))


def iter_records(path: Path) -> Iterator[JournalRecord]:
    """The good records, one at a time, so that the file need not fit in memory."""
    scan = _Scan()
    with read_regular(path) as file:
        for line in file:
            yield from scan.line(line)


def read_journal(path: Path) -> JournalContents:
    """Everything in the file. Damage is reported in the result and never raised; OSError is.

    Needs no lock: while another process writes the journal, the last record may look torn.
    """
    scan, records = _Scan(), []
    with read_regular(path) as file:
        for line in file:
            records += scan.line(line)
    return scan.contents(records)


class _Scan:
    """Reads a journal line by line and remembers what is wrong with it."""

    def __init__(self) -> None:
        self._size = self._lines = self._next = 0
        self._version = 0
        self._header: JournalHeader | None = None
        self._damage: list[Damage] = []
        self._set_aside: list[Damage] = []
        self._pending: list[Damage] = []  # bad bytes after the last good record
        self._ends_open = False
        self._foreign = False  # what follows is another journal, up to the repair that closes it

    def line(self, line: bytes) -> list[JournalRecord]:
        """The good records of the next line."""
        offset = self._size
        self._size += len(line)
        self._lines += 1
        self._ends_open = not line.endswith(b"\n")
        body = line if self._ends_open else line[:-1]
        record = decode(body, offset)
        if record is not None:
            return self._accepted(record)
        if match := _VERSIONED.match(body):
            self._version = max(self._version, int(match[1]))
        return self._salvaged(body, offset) if body else []

    def contents(self, records: list[JournalRecord]) -> JournalContents:
        tail = None
        if self._pending:
            first = self._pending[0]
            tail = Damage(first.offset, first.line, first.what, self._size - first.offset)
        return JournalContents(
            header=self._header,
            records=records,
            damage=tuple(self._damage),
            set_aside=tuple(self._set_aside),
            torn_tail=tail,
            version=max(self._version, VERSION),
            next_n=self._next,
            size=self._size,
            ends_open=self._ends_open and tail is None and self._size > 0,
        )

    def _salvaged(self, body: bytes, offset: int) -> list[JournalRecord]:
        """The good records of a damaged line: records glued together are read one by one.

        A record starts with bytes that cannot occur inside one, since a quote within JSON text is escaped.
        """
        starts = [m.start() for m in re.finditer(re.escape(_START), body)]
        edges = sorted({0, *starts, len(body)})
        good: list[JournalRecord] = []
        for start, end in pairwise(edges):
            piece = body[start:end]
            record = decode(piece, offset + start)
            if record is not None:
                good += self._accepted(record)
            else:
                self._pending.append(Damage(offset + start, self._lines, _what(piece), len(piece)))
        return good

    def _accepted(self, record: JournalRecord) -> list[JournalRecord]:
        if record.kind == HEADER and self._header is not None:
            self._foreign = True
        if self._foreign and not (record.kind == REPAIRED and record.n == self._next):
            what = f"record {record.n} belongs to another journal that was appended"
            self._pending.append(Damage(record.offset, self._lines, what, record.length))
            return []
        self._foreign = False
        if record.kind == REPAIRED:
            self._set_aside_by(record)
        if record.n < self._next:
            what = f"record {record.n} occurs here a second time"
            self._pending.append(Damage(record.offset, self._lines, what, record.length))
            return []
        if record.n > self._next and not self._pending:
            what = f"records {self._next} to {record.n - 1} are missing before it"
            self._pending.append(Damage(record.offset, self._lines, what))
        self._damage += self._pending
        self._pending.clear()
        self._next = record.n + 1
        self._header = self._header or read_header(record)
        return [record]

    def _set_aside_by(self, record: JournalRecord) -> None:
        """A repair recorded what it closed, so this is not damage."""
        said = record.fields
        offset, length = said.get("offset"), said.get("length")
        if isinstance(offset, int) and isinstance(length, int):
            closed = [d for d in self._pending if offset <= d.offset < offset + length]
            self._set_aside += closed
            self._pending = [d for d in self._pending if d not in closed]


def _what(piece: bytes) -> str:
    if not piece.startswith(_START):
        return "this is not a record"
    return "the record does not fit its checksum" if _LINE.fullmatch(piece) else "the record is cut off"


def read_header(record: JournalRecord) -> JournalHeader | None:
    """The record as a header; None when it is another kind."""
    if record.kind != HEADER:
        return None
    said = record.fields
    at, meta = said.get("at"), said.get("meta")
    return JournalHeader(
        str(said.get("session", "")),
        float(at) if isinstance(at, int | float) else 0.0,
        meta if isinstance(meta, dict) else {},
    )
