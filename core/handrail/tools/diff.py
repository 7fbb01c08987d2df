"""Unified diffs that stay cheap on large files."""

from __future__ import annotations

import difflib
import hashlib
import re
from dataclasses import dataclass

from handrail.messages import clean

CONTEXT = 3
MAX_DIFF = 100_000
"""The most characters of a diff in an event; the rest is counted."""

_TOO_MANY = 20_000
_HUNK = re.compile(r"^@@ -(\d+)(,\d+)? \+(\d+)(,\d+)? @@")


@dataclass(frozen=True, slots=True)
class Diff:
    """A unified diff with the lines added and removed. `text` is empty when nothing differs.

    `digest` is the same for the same change of the same lines, wherever in the file they stand.
    """

    text: str
    added: int
    removed: int
    digest: str = ""

    @property
    def summary(self) -> str:
        """`+6 -2`."""
        return f"+{self.added} -{self.removed}"


def unified(before: str, after: str, path: str, *, new: bool = False) -> Diff:
    """The diff of two texts. `path` is in its header; `new` says that there was no file before."""
    old_lines, new_lines = _split(before), _split(after)
    start = _common(old_lines, new_lines)
    end = _common(old_lines[start:][::-1], new_lines[start:][::-1])
    low = max(0, start - CONTEXT)
    old_part = old_lines[low : min(len(old_lines), len(old_lines) - end + CONTEXT)]
    new_part = new_lines[low : min(len(new_lines), len(new_lines) - end + CONTEXT)]
    hunks = _hunks(old_part, new_part, low)
    if not hunks:
        return Diff("", 0, 0)
    added = sum(line.startswith("+") for line in hunks)
    removed = sum(line.startswith("-") for line in hunks)
    a, b = (path, path) if path.startswith("/") else (f"a/{path}", f"b/{path}")
    head = [f"--- {'/dev/null' if new else a}", f"+++ {b}"]
    return Diff(_capped([*head, *hunks]), added, removed, _digest(hunks))


def _digest(hunks: list[str]) -> str:
    """Of the whole lines, before they are cleaned and cut, without their numbers."""
    lines = ("@@" if _HUNK.match(line) else line for line in hunks)
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def _hunks(old: list[str], new: list[str], shift: int) -> list[str]:
    if old == new:
        return []
    if len(old) + len(new) > _TOO_MANY:
        # Comparing this much line by line takes seconds; one hunk says the same.
        head = f"@@ -{_range(shift, len(old))} +{_range(shift, len(new))} @@\n"
        raw = [head, *("-" + line for line in old), *("+" + line for line in new)]
    else:
        raw = list(difflib.unified_diff(old, new, n=CONTEXT))[2:]
        raw = [_shifted(line, shift) if line.startswith("@@") else line for line in raw]
    lines: list[str] = []
    for line in raw:
        lines.append(line.removesuffix("\n"))
        if not line.endswith("\n"):
            lines.append("\\ No newline at end of file")
    return lines


def _range(start: int, length: int) -> str:
    return f"{start + 1 if length else start},{length}"


def _shifted(hunk: str, shift: int) -> str:
    found = _HUNK.match(hunk)
    if found is None:
        return hunk
    old, old_size, new, new_size = found.groups()
    return f"@@ -{int(old) + shift}{old_size or ''} +{int(new) + shift}{new_size or ''} @@\n"


def _split(text: str) -> list[str]:
    lines = text.split("\n")
    last = lines.pop()
    return [line + "\n" for line in lines] + ([last] if last else [])


def _common(left: list[str], right: list[str]) -> int:
    """How many lines at the start are equal."""
    shared = min(len(left), len(right))
    return next((n for n in range(shared) if left[n] != right[n]), shared)


def _capped(lines: list[str]) -> str:
    room = MAX_DIFF
    for number, line in enumerate(lines):
        room -= len(line) + 1
        if room < 0:
            return clean("\n".join([*lines[:number], f"… {len(lines) - number:,} more lines of diff", ""]))
    return clean("\n".join([*lines, ""]))
