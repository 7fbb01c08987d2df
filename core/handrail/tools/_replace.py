"""Exact replacements in a text, whatever its line ends."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Replacement:
    """Replace `old` by `new`: its only occurrence, or every occurrence with `every`."""

    old: str
    new: str
    every: bool = False


@dataclass
class NotFound(Exception):
    """Replacement `index` matches nowhere."""

    index: int


@dataclass
class Ambiguous(Exception):
    """Replacement `index` matches more than once: at the lines `lines`."""

    index: int
    lines: list[int]


@dataclass
class Overlap(Exception):
    """Replacement `index` touches text that replacement `other` replaces too."""

    index: int
    other: int


@dataclass
class SplitCharacter(Exception):
    """Replacement `index` begins inside a character of an unknown encoding, or may do so."""

    index: int


def replace(text: str, replacements: Sequence[Replacement], ending: str) -> tuple[str, int]:
    """`text` with all `replacements` made, and how many places changed.

    Each is looked for in `text` as it is, not in what an earlier one made of it. A line feed in `old` matches
    CRLF too; lines of `new` end with `ending`; all else stays byte for byte. Raises NotFound, Ambiguous,
    Overlap, SplitCharacter.
    """
    plain = text.replace("\r\n", "\n")
    spans: list[tuple[int, int, int, str]] = []
    for index, each in enumerate(replacements):
        old = each.old.replace("\r\n", "\n")
        places = list(_places(plain, old))
        if any(_may_split(plain, at) for at in places):
            raise SplitCharacter(index)
        if not places:
            raise NotFound(index)
        if len(places) > 1 and not each.every:
            raise Ambiguous(index, [plain.count("\n", 0, at) + 1 for at in places])
        new = each.new.replace("\r\n", "\n").replace("\n", ending)
        spans.extend((at, at + len(old), index, new) for at in places)
    spans.sort()
    for (_, end, first, _), (start, _, second, _) in pairwise(spans):
        if start < end:
            raise Overlap(max(first, second), min(first, second))
    return _spliced(text, plain, spans), len(spans)


def _places(text: str, old: str) -> Iterator[int]:
    at = text.find(old)
    while at >= 0:
        yield at
        at = text.find(old, at + len(old))


def _may_split(text: str, at: int) -> bool:
    """Whether `text[at]` may be the second byte of a character, as in Shift-JIS, GBK or Big5: the byte before it is not
    UTF-8 (a lone surrogate here), and it is in the range of second bytes."""
    return at > 0 and "\udc80" <= text[at - 1] <= "\udcff" and "\x30" <= text[at] <= "\x7e"


def _spliced(text: str, plain: str, spans: Sequence[tuple[int, int, int, str]]) -> str:
    """Spans are places in `plain`; in `text` each lies further back by the carriage returns before it."""
    returns = list(_returns(text)) if len(text) != len(plain) else []
    pieces: list[str] = []
    done = 0
    for start, end, _, new in spans:
        pieces += [text[done : start + bisect_left(returns, start)], new]
        done = end + bisect_left(returns, end)
    pieces.append(text[done:])
    return "".join(pieces)


def _returns(text: str) -> Iterator[int]:
    """The positions in the plain text of line feeds that follow a carriage return."""
    at, seen = text.find("\r\n"), 0
    while at >= 0:
        yield at - seen
        seen += 1
        at = text.find("\r\n", at + 2)
