"""The text in a file most similar to text that was not found, to help with the next attempt."""

from __future__ import annotations

import difflib
import heapq
from collections import Counter
from collections.abc import Iterable

from handrail.messages import clean
from handrail.tools.output import cut_line, lines_of

_MAX_LINES = 20_000
_SHOWN = 30
_PIECES = 40
_CANDIDATES = 50
_WIDTH = 200


def nearest(wanted: str, text: str) -> str:
    """A sentence with the lines of `text` nearest to `wanted`, and what differs."""
    old = [line.removesuffix("\r") for line in lines_of(wanted.strip("\n"))] or [wanted]
    lines = [line.removesuffix("\r") for line in lines_of(text)][:_MAX_LINES]
    at = _by_equal_lines(old, lines)
    if at is None:
        at = _by_likeness(old, lines)
    if at is None:
        return "Nothing in it is similar: read it again"
    found = lines[at : at + len(old)]
    head = (
        f"Nearest: line {at + 1:,}" if len(old) == 1 else f"Nearest: lines {at + 1:,} to {at + len(found):,}"
    )
    if [line.split() for line in found] == [line.split() for line in old]:
        head += ", only white space differs"
    return clean(f"{head}\n{_difference(old, found)}")


def _by_equal_lines(old: list[str], lines: list[str]) -> int | None:
    """Where most lines are equal but for white space around them, in a window as long as `old`."""
    wanted = Counter(key for line in old if (key := line.strip()))
    keys = [line.strip() for line in lines]
    best, at, score = 0, None, 0
    for end, key in enumerate(keys):
        score += key in wanted
        start = end - len(old) + 1
        if start > 0:
            score -= keys[start - 1] in wanted
        if score > best:
            best, at = score, max(start, 0)
    if at is None:
        return None
    return _aligned(old, keys, at)


def _aligned(old: list[str], keys: list[str], at: int) -> int:
    """The window, moved so that its first equal line is where it is in `old`."""
    place = {line.strip(): n for n, line in reversed(list(enumerate(old)))}
    for n in range(at, min(at + len(old), len(keys))):
        if keys[n] and keys[n] in place:
            return max(0, n - place[keys[n]])
    return at


def _by_likeness(old: list[str], lines: list[str]) -> int | None:
    """Where the line nearest to the longest line of `old` stands."""
    longest = max(range(len(old)), key=lambda n: len(old[n].strip()))
    wanted = old[longest].strip()[:_WIDTH]
    candidates = {line.strip()[:_WIDTH]: n for n, line in reversed(list(enumerate(lines)))}
    near = difflib.get_close_matches(wanted, _promising(wanted, candidates), n=1, cutoff=0.6)
    return max(0, candidates[near[0]] - longest) if near else None


def _promising(wanted: str, candidates: Iterable[str]) -> list[str]:
    """The few candidates that share most pieces of three characters: comparing all of them takes seconds."""
    step = max(1, len(wanted) // _PIECES)
    pieces = {wanted[n : n + 3] for n in range(0, max(1, len(wanted) - 2), step)}
    return heapq.nlargest(_CANDIDATES, candidates, key=lambda line: sum(piece in line for piece in pieces))


def _difference(old: list[str], found: list[str]) -> str:
    marks = {" ": " " * 10, "-": "- (yours) ", "+": "+ (file)  "}
    left, right = ([cut_line(line, _WIDTH) for line in each[:_SHOWN]] for each in (old, found))
    shown = [marks[line[0]] + line[2:] for line in difflib.ndiff(left, right) if line[0] in marks]
    if len(old) > _SHOWN:
        shown.append(f"… {len(old) - _SHOWN:,} more lines")
    return "\n".join(shown)
