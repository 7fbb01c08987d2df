"""Where the output of commands is kept when it is too long for the model: in the session's folder, and gone with it."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Final

from handrail.tools.base import ToolContext

MAX_SESSION: Final = 1_000_000_000
"""The most bytes that one session keeps."""

_KEPT: Final = "tools.kept_output"


class KeptOutput:
    """The kept output of one session. `folder` is made with the first file; None: a temporary folder, which is removed
    with this object or at the program's exit."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._made: Path | None = None
        self._used: int | None = None

    def create(self) -> tuple[int, str]:
        """A new file, mode 0600: its descriptor and its path. Raises OSError."""
        file, path = tempfile.mkstemp(prefix="output-", suffix=".log", dir=self._place())
        return file, os.path.realpath(path)

    def room(self) -> int:
        """How many bytes may still be kept."""
        if self._used is None:
            self._used = sum(each.stat().st_size for each in self._place().iterdir())
        return max(0, MAX_SESSION - self._used)

    def took(self, size: int) -> None:
        """So many bytes were written."""
        self._used = (self._used or 0) + size

    def has(self, path: Path) -> bool:
        """Whether `path`, which must be resolved, is one of these files, also of an earlier life of the session."""
        folder = self._made or self._folder
        return folder is not None and path.parent == Path(os.path.realpath(folder))

    def _place(self) -> Path:
        if self._made is None:
            if self._folder is not None:
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._made = self._folder
            else:
                self._made = Path(tempfile.mkdtemp(prefix="handrail-"))
                weakref.finalize(self, shutil.rmtree, self._made, ignore_errors=True)
        return self._made


def kept_output(ctx: ToolContext) -> KeptOutput:
    """The kept output of the session that `ctx` belongs to."""
    kept: KeptOutput = ctx.memory.setdefault(_KEPT, KeptOutput())
    return kept


def memory_with(folder: Path | None) -> dict[str, KeptOutput]:
    """The memory of a session whose kept output lies in `folder`."""
    return {_KEPT: KeptOutput(folder)}
