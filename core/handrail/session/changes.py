"""The files a run changed, read from its events, and undoing a turn's changes: exactly, or not at all.

Only the file tools record diffs in their results. Changes made by shell commands are not tracked; where an agent of
others works, the whole folder is looked at after each prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from handrail import events as ev
from handrail.clock import Clock
from handrail.errors import ConfigError
from handrail.mask import MASK
from handrail.tools.base import ToolContext, ToolError
from handrail.tools.paths import Place, locate
from handrail.tools.saving import delete, save
from handrail.tools.textfile import TextFile, load

SNAPSHOT: Final = "changed"
"""The name of a result that tells how a file really changed since a prompt; its call's id is `changed:TURN:N`, where
TURN is the first turn of that prompt. What was told of the file from there on is superseded."""

_HUNK: Final = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NO_NEWLINE: Final = "\\ No newline at end of file"
_LOST: Final = "�"


class CannotUndo(ConfigError):
    """A change that cannot be undone exactly. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file changed by one call. `run` counts the prompts of the session from 1, `turn` the requests of that run.

    `path` is relative to the working folder, or absolute outside of it. `new`: there was no such file before.
    """

    run: int
    turn: int
    path: str
    diff: str

    @property
    def new(self) -> bool:
        return self.diff.startswith("--- /dev/null\n")

    @property
    def added(self) -> int:
        return sum(line.startswith("+") for line in self.diff.split("\n")[2:])

    @property
    def removed(self) -> int:
        return sum(line.startswith("-") for line in self.diff.split("\n")[2:])


def changes(events: Iterable[ev.Event]) -> list[FileChange]:
    """The recorded changes, in order."""
    found: list[FileChange] = []
    run = 0
    for event in events:
        if isinstance(event, ev.RunStarted):
            run += not event.resumed
        elif isinstance(event, ev.ToolFinished) and event.diff and not event.is_error:
            path = _path(event.diff)
            if path is not None and event.name == SNAPSHOT:
                since = int(event.call_id.split(":")[1])
                found = [c for c in found if (c.run, c.path) != (run, path) or c.turn < since]
            if path is not None:
                found.append(FileChange(run, event.turn or 0, path, event.diff))
    return found


def _path(diff: str) -> str | None:
    """The file that a diff changes."""
    lines = diff.split("\n", 2)
    if len(lines) < 3 or not lines[1].startswith("+++ "):
        return None
    return lines[1][4:].removeprefix("b/")


def of_turn(all_: Sequence[FileChange], turn: int) -> list[FileChange]:
    """The changes of turn `turn`, in the last run that has changes in such a turn."""
    runs = [c.run for c in all_ if c.turn == turn]
    return [c for c in all_ if c.turn == turn and c.run == runs[-1]] if runs else []


def undo(undone: Sequence[FileChange], later: Sequence[FileChange], cwd: Path, clock: Clock) -> list[str]:
    """Undo the changes in `undone`: each file is restored. Returns the paths, in order.

    Where these changes touched a file, it must still be as they left it; `later` are the changes since, to name their
    turn. All files are checked before the first one is written; when one cannot be written, those
    already written are restored. Line ends stay as the file has them now. Raises CannotUndo.
    """
    ctx = ToolContext(cwd, clock)
    planned = [_Planned.of(path, undone, later, ctx) for path in dict.fromkeys(c.path for c in undone)]
    done: list[_Planned] = []
    try:
        for plan in planned:
            plan.write()
            done.append(plan)
    except (ToolError, OSError) as error:
        for plan in reversed(done):
            plan.put_back()
        raise CannotUndo(f"{error}. Nothing was changed.") from error
    return [plan.path for plan in planned]


@dataclass(frozen=True, slots=True)
class _Planned:
    """One file before and after the undo. `after` None: it is deleted."""

    path: str
    place: Place
    file: TextFile
    after: bytes | None

    @classmethod
    def of(
        cls, path: str, undone: Sequence[FileChange], later: Sequence[FileChange], ctx: ToolContext
    ) -> _Planned:
        place = locate(path, ctx)
        if not place.inside and not Path(path).is_absolute():
            raise CannotUndo(
                f"{path} now leads out of the working folder: it is another file. Nothing was changed."
            )
        try:
            file = load(place)
        except FileNotFoundError:
            raise CannotUndo(f"{path} no longer exists. Nothing was changed.") from None
        except ToolError as error:
            raise CannotUndo(f"{error}. Nothing was changed.") from None
        text: str | None = file.text.replace("\r\n", "\n")
        mine = [c for c in undone if c.path == path]
        for change in reversed(mine):
            try:
                text = _before(text or "", change)
            except ValueError as error:
                raise CannotUndo(_refusal(path, str(error), later)) from None
        if text is None:
            return cls(path, place, file, None)
        if file.text.count("\r\n") not in (0, file.text.count("\n")):
            raise CannotUndo(f"{path} has mixed line ends. Nothing was changed.")
        if file.ending == "\r\n":
            text = text.replace("\n", "\r\n")
        return cls(path, place, file, file.encode(text))

    def write(self) -> None:
        """Restore it. Raises ToolError when something has changed the file since it was checked."""
        if self.after is None:
            delete(self.place, self.file)
        else:
            save(self.place, self.after, self.file)

    def put_back(self) -> None:
        data = self.file.encode(self.file.text)
        if self.after is not None:
            save(self.place, data, load(self.place))
        else:
            save(self.place, data, None)
            self.place.real.chmod(self.file.mode)


def _refusal(path: str, why: str, later: Sequence[FileChange]) -> str:
    turns = sorted({c.turn for c in later if c.path == path})
    if turns:
        since = f"It was changed later in turn {', '.join(map(str, turns))}: undo that first"
    else:
        since = "It has been changed since"
    return f"{path}: {why}. {since}. Nothing was changed."


def _before(text: str, change: FileChange) -> str | None:
    """The text before a change that resulted in `text`; None when there was no file. Raises ValueError."""
    lines = _split(text)
    for new_start, old, new in reversed(_hunks(change.diff)):
        if lines[new_start : new_start + len(new)] != new:
            raise ValueError(f"what turn {change.turn} left at line {new_start + 1} no longer exists")
        lines[new_start : new_start + len(new)] = old
    if not change.new:
        return "".join(lines)
    if lines:
        raise ValueError(f"it contains more than turn {change.turn} wrote")
    return None


def _hunks(diff: str) -> list[tuple[int, list[str], list[str]]]:
    """Each hunk's position in the new file (from 0), its old lines and its new lines, with line ends."""
    hunks: list[tuple[int, list[str], list[str]]] = []
    sides: list[list[str]] = []
    for line in diff.split("\n")[2:-1]:
        if match := _HUNK.match(line):
            start, size = int(match[3]), int(match[4] or 1)
            hunks.append((start - 1 if size else start, [], []))
        elif line == _NO_NEWLINE:
            for side in sides:
                side[-1] = side[-1].removesuffix("\n")
        elif hunks and line[:1] in (" ", "-", "+"):
            _, old, new = hunks[-1]
            sides = [old] if line[0] == "-" else [new] if line[0] == "+" else [old, new]
            for side in sides:
                side.append(line[1:] + "\n")
            if line[0] == "-" and (MASK in line or _LOST in line):
                raise ValueError("the record does not contain the old text: it was a secret, or not text")
        else:
            raise ValueError("its diff was too long to be stored")
    return hunks


def _split(text: str) -> list[str]:
    lines = text.split("\n")
    last = lines.pop()
    return [line + "\n" for line in lines] + ([last] if last else [])
