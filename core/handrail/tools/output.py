"""Limits on what a model gets to read, and notes on what was left out.

Cutting happens between characters and, where it can, between lines (rule L11).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

MAX_LINES = 2_000
MAX_BYTES = 50_000
MAX_LINE = 2_000
"""The most characters of one line; search results use less."""

_TITLE = 200
_UNITS = ("kB", "MB", "GB", "TB")


def count(number: int, one: str, many: str | None = None) -> str:
    """`1 line`, `2 lines`, `1,234 matches`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def size(number: int) -> str:
    """Bytes for people: `812 B`, `1.2 kB`, `3 MB` (thousands, not 1,024)."""
    if number < 1_000:
        return f"{number} B"
    value = float(number)
    for unit in _UNITS:
        value /= 1_000
        if value < 999.95 or unit == _UNITS[-1]:
            break
    return f"{value:.1f}".removesuffix(".0") + f" {unit}"


def one_line(text: str, limit: int = _TITLE) -> str:
    """`text` as a title: line breaks shown as ↵, at most `limit` characters."""
    joined = " ↵ ".join(line.strip() for line in text.strip().splitlines())
    return joined if len(joined) <= limit else joined[: limit - 1] + "…"


def cut_line(line: str, limit: int = MAX_LINE) -> str:
    """`line`, or its first `limit` characters and how many are missing."""
    if len(line) <= limit:
        return line
    return f"{line[:limit]} [… {len(line) - limit:,} more characters]"


@dataclass(frozen=True, slots=True)
class Fitted:
    """The lines that fit, and how many there were."""

    lines: tuple[str, ...]
    of: int

    @property
    def cut(self) -> bool:
        return len(self.lines) < self.of


def fit(lines: Iterable[str], max_lines: int = MAX_LINES, max_bytes: int = MAX_BYTES) -> Fitted:
    """As many of `lines` as `max_lines` and `max_bytes` (of UTF-8) allow; always the first one."""
    kept: list[str] = []
    room, total, full = max_bytes, 0, False
    for line in lines:
        total += 1
        room -= len(line.encode("utf-8", "replace")) + 1
        full = full or len(kept) >= max_lines or (room < 0 and bool(kept))
        if not full:
            kept.append(line)
    return Fitted(tuple(kept), total)


def lines_of(text: str) -> Iterator[str]:
    """The lines of `text` without their ends. Only a line feed ends a line, as everywhere here."""
    lines = text.split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    return iter(lines)
