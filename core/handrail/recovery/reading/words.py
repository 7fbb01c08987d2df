"""How patterns of words are written down: one alternative a line, each beginning at a word."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property


class Words:
    """Patterns of one meaning: one alternative a line; a line that begins with `+ ` continues the one above.

    An alternative that begins with a Latin letter begins at a word: `stream` is not found in `upstream`. One that may
    stand inside a word says so (`[a-z]{0,20}timeout`). They are compiled on first use, which saves start-up time.
    """

    def __init__(self, lines: str) -> None:
        self._lines = lines

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        joined = "|".join(line.strip() for line in self._lines.strip().splitlines()).replace("|+ ", "")
        return re.compile("|".join(map(_bordered, _alternatives(joined))))

    def search(self, text: str) -> re.Match[str] | None:
        return self._pattern.search(text)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        return self._pattern.fullmatch(text)


def _alternatives(pattern: str) -> Iterator[str]:
    """The alternatives of a pattern at its top level."""
    depth, start, position = 0, 0, 0
    while position < len(pattern):
        char = pattern[position]
        if char == "\\":
            position += 1
        elif char == "[":
            position = pattern.index("]", position + 2)
        elif char in "()":
            depth += 1 if char == "(" else -1
        elif char == "|" and depth == 0:
            yield pattern[start:position]
            start = position + 1
        position += 1
    yield pattern[start:]


def _bordered(alternative: str) -> str:
    first = alternative.removeprefix("(?:")[:1]
    border = (first.isascii() and (first.isalpha() or first in "([")) or alternative.startswith(r"\d")
    return rf"(?<![a-z0-9]){alternative}" if border else alternative
