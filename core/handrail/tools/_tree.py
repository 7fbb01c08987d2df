"""The files below a folder, as git sees them: what a .gitignore names is left out, and `.git` itself."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern


@dataclass(frozen=True, slots=True)
class _Rules:
    """The rules of one .gitignore, the last line first; `base` is its folder, with a slash at the end."""

    base: str
    patterns: Sequence[GitIgnoreSpecPattern]


def files(root: Path) -> Iterator[str]:
    """Paths relative to `root` (absolute, real), sorted folder by folder in byte order. Symlinks are not
    followed and not listed, nor are special files; unreadable folders are skipped."""
    stack = [(iter(_entries(str(root))), _above(root))]
    prefix = len(str(root).rstrip("/")) + 1
    while stack:
        entries, rules = stack[-1]
        entry = next(entries, None)
        if entry is None:
            stack.pop()
        elif (kind := _kind(entry)) == "folder":
            if not _ignored(rules, entry.path + "/"):
                own = _rules(Path(entry.path))
                stack.append((iter(_entries(entry.path)), [*rules, own] if own else rules))
        elif kind == "file" and not _ignored(rules, entry.path):
            yield entry.path[prefix:]


def _kind(entry: os.DirEntry[str]) -> Literal["folder", "file"] | None:
    try:
        if entry.is_dir(follow_symlinks=False):
            return "folder"
        return "file" if entry.is_file(follow_symlinks=False) else None
    except OSError:
        return None  # deleted in the meantime


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            found = [entry for entry in entries if entry.name != ".git"]
    except OSError:
        return []
    return sorted(found, key=lambda entry: os.fsencode(entry.name))


def _above(root: Path) -> list[_Rules]:
    """The rules in force at `root`: its own and those above it, up to the top of the repository."""
    found: list[_Rules] = []
    for folder in (root, *root.parents):
        if rules := _rules(folder):
            found.insert(0, rules)
        if (folder / ".git").exists():
            break
    return found


def _rules(folder: Path) -> _Rules | None:
    try:
        text = (folder / ".gitignore").read_bytes().decode("utf-8-sig", "replace")
    except OSError:
        return None
    patterns: list[GitIgnoreSpecPattern] = []
    for line in text.split("\n"):
        with suppress(ValueError):  # an invalid line does not affect others
            patterns.append(GitIgnoreSpecPattern(line.removesuffix("\r")))
    live = [pattern for pattern in reversed(patterns) if pattern.include is not None]
    return _Rules(f"{folder}/" if folder.name else "/", live)


def _ignored(rules: Sequence[_Rules], path: str) -> bool:
    """The nearest .gitignore with a matching line decides; in it, the last matching line."""
    for each in reversed(rules):
        below = path[len(each.base) :]
        for pattern in each.patterns:
            if _names(pattern, below):
                return bool(pattern.include)
    return False


def _names(pattern: GitIgnoreSpecPattern, path: str) -> bool:
    """Whether `pattern` matches `path` itself and not only one of its parents.

    The library's expressions match what lies in a named folder too, with a group for the slash after its
    name. Here that is decided already: an ignored folder is not entered, and what is around one that was
    entered has no say.
    """
    regex = pattern.regex
    if regex is None:
        return False
    if not regex.pattern.startswith("^"):
        path = path[path.rfind("/", 0, -1) + 1 :]
    found = regex.search(path)
    if found is None:
        return False
    if regex.pattern.endswith("/"):  # `folder/**` matches its contents
        return found.end() < len(path)
    return found.lastgroup is None or found.end() == len(path)
