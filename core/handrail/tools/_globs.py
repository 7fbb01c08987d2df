"""Glob patterns over paths, independent of the program that lists the files.

`*.py` matches a name at any depth; a pattern with a slash matches the path from the folder that is searched,
with `**` for any number of folders. `{a,b}` is either, a leading `!` negates the pattern.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

_MAX_CHOICES: Final = 256


class Glob:
    """A pattern. Raises ValueError when its braces make too many patterns."""

    def __init__(self, pattern: str) -> None:
        self._negated = pattern.startswith("!")
        plain = pattern.removeprefix("!").removeprefix("./")
        self.name_only = "/" not in plain.rstrip("/")
        self.folders = plain.endswith("/")
        self._choices = [_parts(each) for each in _choices(plain)]
        self.last = None if self._negated or plain.endswith("/") else _last(plain)

    def match(self, path: str) -> bool:
        """Whether `path`, relative to the folder that is searched, fits."""
        parts = path.split("/")
        parts = parts[-1:] if self.name_only else parts
        return any(_fits(parts, choice) for choice in self._choices) != self._negated


def _last(pattern: str) -> str | None:
    """The pattern for the file name itself, None when any name matches."""
    start = 0
    for at, char in enumerate(pattern):
        if char == "/" and pattern.count("{", 0, at) == pattern.count("}", 0, at):
            start = at + 1
    last = pattern[start:]
    return None if "/" in last or "**" in last else last


def _parts(pattern: str) -> list[str]:
    """Match folder by folder. A final `**` must match something."""
    parts = pattern.strip("/").split("/")
    return [*parts, "*"] if parts[-1] == "**" else parts


def _fits(path: Sequence[str], pattern: Sequence[str]) -> bool:
    """`reached` holds how many parts of the pattern may be used up so far: no path costs more than a walk
    along it."""
    reached = _past_stars({0}, pattern)
    for part in path:
        ahead: set[int] = set()
        for at in reached:
            if at < len(pattern) and pattern[at] == "**":
                ahead.add(at)
            elif at < len(pattern) and fnmatch.fnmatchcase(part, pattern[at]):
                ahead.add(at + 1)
        reached = _past_stars(ahead, pattern)
    return len(pattern) in reached


def _past_stars(reached: set[int], pattern: Sequence[str]) -> set[int]:
    """`**` may also match no folder at all."""
    found = set(reached)
    for at in reached:
        while at < len(pattern) and pattern[at] == "**":
            at += 1
            found.add(at)
    return found


def _choices(pattern: str) -> list[str]:
    """`a.{b,c}` as `a.b` and `a.c`, braces in braces too. One that is never closed is a character."""
    done: list[str] = []
    todo = [pattern]
    while todo:
        each = todo.pop()
        split = _first_braces(each)
        if split is None:
            done.append(each)
        else:
            before, choices, after = split
            todo.extend(before + choice + after for choice in choices)
        if len(todo) + len(done) > _MAX_CHOICES:
            raise ValueError(f"the pattern stands for more than {_MAX_CHOICES} patterns")
    return done


def _first_braces(text: str) -> tuple[str, list[str], str] | None:
    start = text.find("{")
    depth, cuts = 0, [start]
    for at in range(max(start, 0), len(text)):
        depth += (text[at] == "{") - (text[at] == "}")
        if depth == 1 and text[at] == ",":
            cuts.append(at)
        if depth == 0 and start >= 0:
            cuts.append(at)
            choices = [text[a + 1 : b] for a, b in pairwise(cuts)]
            return text[:start], choices, text[at + 1 :]
    return None
