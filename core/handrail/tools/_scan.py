"""A replacement for ripgrep: a separate program that prints ripgrep's JSON.

It is a process, not a thread, because Python's regular expressions block all other threads while they run, and a
process can be ended. Run as `python -P -m handrail.tools._scan`, with the request as JSON on stdin.
"""

from __future__ import annotations

import base64
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from handrail.tools._globs import Glob
from handrail.tools._tree import files

MAX_FILE: Final = 50_000_000
"""In bytes; larger files are not searched."""

_BOMS: Final = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"))


def main(request: dict[str, Any], out: BinaryIO) -> int:
    """Do the search. Returns the exit code: 0, or 2 for an invalid pattern."""
    root = Path(request["root"])
    names = files(root) if request["file"] is None else iter([request["file"]])
    if request["pattern"] is None:
        for name in names:
            out.write(os.fsencode(name) + b"\0")
        return 0
    try:
        pattern = re.compile(
            re.escape(request["pattern"]) if request["literal"] else request["pattern"],
            re.IGNORECASE if request["ignore_case"] else 0,
        )
    except (re.error, RecursionError, OverflowError) as error:
        sys.stderr.write(f"not a regular expression: {error}\n")
        return 2
    glob = Glob(request["glob"]) if request["glob"] else None
    for name in names:
        if glob is None or glob.match(name):
            for event in search(root / name, name, pattern, request["context"]):
                out.write(json.dumps(event, separators=(",", ":")).encode() + b"\n")
            out.flush()
    return 0


def search(path: Path, name: str, pattern: re.Pattern[str], context: int) -> Iterator[dict[str, Any]]:
    """The matches in one file as ripgrep tells them, with `context` lines around. A binary file has none."""
    text = _text(path)
    lines = text.split("\n") if text else []
    if lines and lines[-1] == "":
        lines.pop()
    lines = [line.removesuffix("\r") for line in lines]
    found = {number: match for number, line in enumerate(lines) if (match := pattern.search(line))}
    if not found:
        return
    told = _field(name)
    yield {"type": "begin", "data": {"path": told}}
    shown = sorted(
        {n for at in found for n in range(max(0, at - context), min(len(lines), at + context + 1))}
    )
    for number in shown:
        match = found.get(number)
        start = len(lines[number][: match.start()].encode("utf-8", "surrogateescape")) if match else 0
        yield {
            "type": "match" if match else "context",
            "data": {
                "path": told,
                "lines": _field(lines[number]),
                "line_number": number + 1,
                "submatches": [{"start": start}] if match else [],
            },
        }
    yield {"type": "end", "data": {"path": told, "binary_offset": None}}


def _text(path: Path) -> str:
    """The text of a file, empty when it is binary, too large, or not to be read."""
    try:
        if path.stat().st_size > MAX_FILE:
            return ""
        data = path.read_bytes()
    except OSError:
        return ""
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    return "" if b"\0" in data else data.decode("utf-8", "surrogateescape")


def _field(text: str) -> dict[str, str]:
    """Text in ripgrep's JSON: bytes in base64 where it is no UTF-8."""
    data = os.fsencode(text)
    try:
        return {"text": data.decode("utf-8")}
    except UnicodeDecodeError:
        return {"bytes": base64.b64encode(data).decode()}


if __name__ == "__main__":
    sys.exit(main(json.load(sys.stdin), sys.stdout.buffer))
