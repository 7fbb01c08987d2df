"""The tool `read`: a text file by lines, or a picture.

Lines have no numbers: the model reads exactly what `edit` matches, and numbers cost tokens. The note at the end
gives the line range.
"""

from __future__ import annotations

import base64
import codecs
import io
import json
import os
import shlex
import threading
from dataclasses import dataclass, field
from typing import BinaryIO, Final

from pydantic import Field

from handrail.messages import Image, Text, clean
from handrail.tools._typed import Arguments, TypedTool
from handrail.tools.base import Preview, ToolContext, ToolError, ToolResult
from handrail.tools.output import MAX_BYTES, MAX_LINE, MAX_LINES, count, cut_line, size
from handrail.tools.paths import Place, locate, missing
from handrail.tools.textfile import (
    MAX_EDIT,
    SNIFF,
    Encoding,
    Stamp,
    encoding_of,
    kind_of,
    opened,
    remember,
    stamp_of,
)

PICTURES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")
MAX_PICTURE: Final = 3_750_000
"""In bytes; in base64 this is the 5 MB that providers accept."""

MAX_SCAN: Final = 4_000_000_000
"""The most bytes that are read to find the lines asked for, and to count the rest."""

_PIECE: Final = 65_536
_BLOCK: Final = 1_048_576


class ReadArguments(Arguments):
    path: str = Field(min_length=1, description="the file, relative to the working folder or absolute")
    offset: int = Field(1, ge=1, description="first line to read, counted from 1")
    limit: int = Field(MAX_LINES, ge=1, description=f"how many lines; at most {MAX_LINES:,} come at once")


class ReadTool(TypedTool[ReadArguments]):
    """Reads text (line ends as \\n, invalid UTF-8 replaced, rule L11) and pictures; other binary files are
    named."""

    name = "read"
    description = (
        "Read a file. Text comes as it is, without line numbers; at most "
        f"{MAX_LINES:,} lines or {MAX_BYTES // 1000} kB at once: use offset and limit for the rest. "
        "Pictures (png, jpeg, gif, webp) are shown."
    )

    def __init__(self) -> None:
        super().__init__(ReadArguments)

    def preview(self, args: ReadArguments, ctx: ToolContext) -> Preview:
        place = locate(args.path, ctx)
        title = place.shown
        if args.model_fields_set & {"offset", "limit"}:
            end = args.offset + args.limit - 1 if "limit" in args.model_fields_set else ""
            title += f":{args.offset}-{end}"
        return Preview(title, pattern=f"read {place.exact}", outside=place.outside, shows=place.shows)

    async def run(self, args: ReadArguments, ctx: ToolContext) -> ToolResult:
        stopped = threading.Event()
        try:
            place, result, stamp = await ctx.clock.in_thread(lambda: _read(args, ctx, stopped))
        finally:
            stopped.set()  # a thread cannot be cancelled: it looks at this
        remember(ctx, place, stamp)
        return result


def _read(args: ReadArguments, ctx: ToolContext, stopped: threading.Event) -> tuple[Place, ToolResult, Stamp]:
    place = locate(args.path, ctx)
    try:
        ctx.require_shown(place.shows)
        with opened(place) as file:
            info = os.fstat(file.fileno())
            head = file.read(SNIFF)
            file.seek(0)
            encoding, bom = encoding_of(head)
            kind = kind_of(head, place.path.name) if encoding == "utf-8" else None
            if encoding != "utf-8":
                result = _text(_as_utf8(file, encoding, bom, place), args, place, stopped)
            elif kind is None:
                result = _text(file, args, place, stopped)
            elif kind in PICTURES and info.st_size <= MAX_PICTURE:
                result = _picture(file.read(), kind, place)
            else:
                raise ToolError(_binary(kind, info.st_size, place))
    except FileNotFoundError:
        raise missing(place) from None
    return place, result, stamp_of(info)


def _as_utf8(file: BinaryIO, encoding: Encoding, bom: bytes, place: Place) -> BinaryIO:
    """A UTF-16 file as if it were UTF-8, as far as one that `edit` can change is long."""
    data = file.read(MAX_EDIT + 1)
    if len(data) > MAX_EDIT:
        raise ToolError(
            f"{place.shown}: UTF-16 text of more than {size(MAX_EDIT)}: convert it first, with iconv"
        )
    return io.BytesIO(data.removeprefix(bom).decode(encoding, "replace").encode("utf-8", "replace"))


def _picture(data: bytes, kind: str, place: Place) -> ToolResult:
    said = f"{kind}, {size(len(data))}"
    encoded = base64.b64encode(data).decode()
    return ToolResult((Text(f"{place.shown}: {said}"), Image(encoded, kind)), summary=said)


def _binary(kind: str, length: int, place: Place) -> str:
    if kind in PICTURES:
        return f"{place.shown}: {kind}, {size(length)}: too large to show, at most {size(MAX_PICTURE)}"
    return f"{place.shown}: no text but {kind}, {size(length)}"


class _Bounded:
    """A file that is read until `stopped`, and not without end: a sparse file may be larger than any disk."""

    def __init__(self, file: BinaryIO, stopped: threading.Event) -> None:
        self._file, self._stopped = file, stopped
        self._left = MAX_SCAN

    def readline(self, size: int) -> bytes:
        return self._took(self._file.readline(size))

    def read(self, size: int) -> bytes:
        return self._took(self._file.read(size))

    def _took(self, data: bytes) -> bytes:
        self._left -= len(data)
        if self._stopped.is_set():
            raise ToolError("stopped")
        if self._left < 0:
            raise ToolError(
                f"more than {size(MAX_SCAN)} would have to be read to find and count these lines: use bash, "
                "with tail, head -c or dd"
            )
        return data


@dataclass(slots=True)
class _Excerpt:
    """The requested lines, as far as they fit."""

    first: int
    lines: list[str] = field(default_factory=list)
    long: list[int] = field(default_factory=list)
    of: int = 0

    @property
    def last(self) -> int:
        return self.first + len(self.lines) - 1


def _text(file: BinaryIO, args: ReadArguments, place: Place, stopped: threading.Event) -> ToolResult:
    part = _part(_Bounded(file, stopped), args)
    if part.of == 0:
        return ToolResult("[the file is empty]", summary="empty")
    if not part.lines:
        raise ToolError(f"{place.shown} has {count(part.of, 'line')}: line {args.offset:,} is past its end")
    text = clean("\n".join(part.lines))
    notes = "\n".join(_notes(part, args, place))
    return ToolResult(f"{text}\n\n{notes}" if notes else text, summary=count(len(part.lines), "line"))


def _part(file: _Bounded, args: ReadArguments) -> _Excerpt:
    """Read the requested lines; only count the rest."""
    part = _Excerpt(args.offset)
    room = MAX_BYTES
    while part.of < args.offset - 1 and _skip_line(file):
        part.of += 1
    while (
        len(part.lines) < min(args.limit, MAX_LINES)
        and (line := _next_line(file, start=part.of == 0)) is not None
    ):
        part.of += 1
        text, long = line
        room -= len(text.encode()) + 1
        if room < 0 and part.lines:
            break
        part.lines.append(text)
        if long:
            part.long.append(part.of)
    part.of += _count_lines(file)
    return part


def _next_line(file: _Bounded, *, start: bool) -> tuple[str, bool] | None:
    """The next line, cut when it is long, and whether it was. `start`: a byte order mark may stand before
    it."""
    piece = file.readline(_PIECE)
    if not piece:
        return None
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text, more = decoder.decode(piece), 0
    while not piece.endswith(b"\n") and (piece := file.readline(_PIECE)):
        more += len(decoder.decode(piece))
    if start:
        text = text.removeprefix("\ufeff")
    if more:
        return f"{text[:MAX_LINE]} [… {len(text) - MAX_LINE + more:,} more characters]", True
    text = (text + decoder.decode(b"", True)).removesuffix("\n").removesuffix("\r")
    return cut_line(text), len(text) > MAX_LINE


def _skip_line(file: _Bounded) -> bool:
    piece = file.readline(_PIECE)
    any_left = bool(piece)
    while piece and not piece.endswith(b"\n"):
        piece = file.readline(_PIECE)
    return any_left


def _count_lines(file: _Bounded) -> int:
    lines, last = 0, b"\n"
    while block := file.read(_BLOCK):
        lines += block.count(b"\n")
        last = block[-1:]
    return lines + (last != b"\n")


def _notes(part: _Excerpt, args: ReadArguments, place: Place) -> list[str]:
    notes: list[str] = [place.note] if place.note else []
    if part.long:
        first = part.long[0]
        how = f"sed -n {first}p {shlex.quote(str(place.path))} | cut -c {MAX_LINE + 1}-"
        which = (
            count(len(part.long), "line") + f" over {MAX_LINE:,} characters cut, the first is line {first:,}"
        )
        notes.append(f"[{which}; its rest, in the shell: {how}]")
    if part.last < part.of:
        call = {"path": args.path, "offset": part.last + 1}
        if "limit" in args.model_fields_set:
            call["limit"] = args.limit
        notes.append(
            f"[lines {part.first:,} to {part.last:,} of {part.of:,}; more: "
            f"{ReadTool.name} {json.dumps(call, ensure_ascii=False)}]"
        )
    return notes
