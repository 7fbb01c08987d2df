"""What the folder looked like before a prompt, and what was changed since: agents write by themselves.

Git does the looking, in a repository of the session's own: index and objects lie in its folder, and the person's
repository, if there is one, is never touched. What `.gitignore` leaves out is left out.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from handrail.clock import Clock
from handrail.messages import clean
from handrail.tools.diff import unified

REPOSITORY: Final = "snapshots.git"
PATIENCE_S: Final = 30.0
_LARGEST: Final = 1_000_000
"""Bytes of a file whose diff is kept."""

_MOST: Final = 200
"""Files whose diffs are kept of one prompt."""

_NOBODY: Final = {"GIT_AUTHOR_NAME": "handrail", "GIT_AUTHOR_EMAIL": "-", "GIT_CONFIG_NOSYSTEM": "1"}


class NoSnapshot(Exception):
    """The folder cannot be looked at; the words say why."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file that changed. `diff` is empty where it is no text, or too large."""

    path: str
    diff: str
    summary: str


class Snapshots:
    """Looks at `cwd` for a session whose folder is `folder`."""

    def __init__(self, cwd: Path, folder: Path, clock: Clock) -> None:
        self._cwd, self._repository, self._clock = cwd, folder / REPOSITORY, clock

    async def take(self) -> str:
        """How the folder looks now. Raises NoSnapshot."""
        return await self._clock.in_thread(self._take)

    async def since(self, before: str) -> list[FileChange]:
        """What changed since `before`. Raises NoSnapshot."""
        return await self._clock.in_thread(lambda: list(self._since(before)))

    def _take(self) -> str:
        if not self._repository.exists():
            self._git("init", "--bare", "--quiet", str(self._repository), bare=True)
        self._git("add", "--all", "--ignore-errors", ".", fails=True)
        return self._git("write-tree").decode().strip()

    def _since(self, before: str) -> Iterator[FileChange]:
        after = self._take()
        if after == before:
            return
        names = self._git("diff-tree", "-r", "-z", "--name-only", before, after).split(b"\0")
        for name in [n for n in names if n][:_MOST]:
            path = name.decode("utf-8", "surrogateescape")
            old, new = self._content(before, path), self._content(after, path)
            shown = clean(path)
            if old is not None and new is not None and (_is_text(old) and _is_text(new)):
                made = unified(old.decode(), new.decode(), shown, new=False)
                yield FileChange(shown, made.text, made.summary)
            elif old is None and new is not None and _is_text(new):
                made = unified("", new.decode(), shown, new=True)
                yield FileChange(shown, made.text, made.summary)
            else:
                yield FileChange(shown, "", "removed" if new is None else "changed")

    def _content(self, tree: str, path: str) -> bytes | None:
        try:
            return self._git("cat-file", "blob", f"{tree}:{path}")
        except NoSnapshot:
            return None

    def _git(self, *arguments: str, bare: bool = False, fails: bool = False) -> bytes:
        environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        environ |= {**_NOBODY, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_OPTIONAL_LOCKS": "0"}
        if not bare:
            environ |= {"GIT_DIR": str(self._repository), "GIT_WORK_TREE": str(self._cwd)}
        command = ["git", "-c", "core.autocrlf=false", "-c", "core.fsmonitor=false", *arguments]
        try:
            done = subprocess.run(
                command, cwd=self._cwd, env=environ, capture_output=True, timeout=PATIENCE_S, check=False
            )
        except FileNotFoundError:
            raise NoSnapshot("git is not installed") from None
        except subprocess.TimeoutExpired:
            raise NoSnapshot(f"looking at the folder took longer than {PATIENCE_S:g} s") from None
        if done.returncode != 0 and not fails:
            raise NoSnapshot(clean(done.stderr.decode("utf-8", "replace")).strip()[:300] or "git failed")
        return done.stdout


def _is_text(data: bytes) -> bool:
    if len(data) > _LARGEST or b"\0" in data:
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
