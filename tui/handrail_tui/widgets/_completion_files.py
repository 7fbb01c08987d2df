"""The files of a project, as `.gitignore` leaves them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from pathspec import GitIgnoreSpec

LIMIT = 20_000
"""Files that are listed; a larger project is completed from its upper levels."""


def project_files(root: Path, limit: int = LIMIT) -> list[str]:
    """Paths below `root`, relative, with `/`: nothing ignored, no names that are no text.

    Reads the disk, upper levels first; links to folders are not followed, what cannot be read is left out.
    """
    files: list[str] = []
    level: list[tuple[str, tuple[_Ignore, ...]]] = [("", ())]
    while level and len(files) < limit:
        below: list[tuple[str, tuple[_Ignore, ...]]] = []
        for folder, ignores in level:
            entries = list(_entries(root / folder))
            if any(entry.name == ".gitignore" for entry in entries):
                ignores = (*ignores, _Ignore(root, folder))
            for entry in entries:
                path = f"{folder}{entry.name}"
                is_folder = entry.is_dir(follow_symlinks=False)
                if _ignored(f"{path}/" if is_folder else path, ignores):
                    continue
                if is_folder:
                    below.append((f"{path}/", ignores))
                elif not entry.is_dir():
                    files.append(path)
        level = below
    return files[:limit]


class _Ignore:
    """One `.gitignore`; its patterns are relative to the folder it lies in."""

    def __init__(self, root: Path, folder: str) -> None:
        self.folder = folder
        try:
            lines = (root / folder / ".gitignore").read_text(encoding="utf-8", errors="replace").splitlines()
            self.spec = GitIgnoreSpec.from_lines(lines)
        except (OSError, ValueError):
            self.spec = GitIgnoreSpec.from_lines([])

    def says(self, path: str) -> bool | None:
        """Whether it ignores `path`; None where it says nothing."""
        return self.spec.check_file(path[len(self.folder) :]).include


def _ignored(path: str, ignores: tuple[_Ignore, ...]) -> bool:
    """The innermost file that says something decides."""
    return next((says for ignore in reversed(ignores) if (says := ignore.says(path)) is not None), False)


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError:
        return
    yield from (entry for entry in entries if entry.name != ".git" and entry.name.isprintable())
