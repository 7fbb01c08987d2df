"""The files that a run changed, and undo of a turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from handrail.events import Event, RunStarted, ToolFinished
from handrail.session.changes import FileChange, changes, undo
from handrail.session.protocol import SessionProtocol


class FileEvents:
    """What of a run is about files: the folders it worked in, and each diff."""

    def __init__(self) -> None:
        self._events: list[Event] = []

    def add(self, event: Event) -> None:
        """Keep `event` if it is about files."""
        if isinstance(event, RunStarted) or (isinstance(event, ToolFinished) and event.diff):
            self._events.append(event)

    def clear(self) -> None:
        """Forget all of them."""
        self._events.clear()

    @property
    def folder(self) -> Path:
        """The folder of the newest run; the current one before any run."""
        folders = [event.cwd for event in self._events if isinstance(event, RunStarted)]
        return Path(folders[-1]) if folders else Path.cwd()

    def changes(self) -> list[FileChange]:
        """Each change of a file, the oldest first."""
        return changes(self._events)


@dataclass(frozen=True, slots=True)
class RunChanges:
    """The changes of a run. `why_not` says why none can be undone now; empty: they can."""

    session: SessionProtocol
    folder: Path
    found: Sequence[FileChange]
    why_not: str = ""

    def undo(self, undone: Sequence[FileChange], later: Sequence[FileChange]) -> list[str]:
        """Take `undone` back; `later` came after them. Returns the paths. Blocks; raises ConfigError, OSError."""
        return undo(undone, later, self.folder, self.session.clock)

    def record_undo(self, turn: int, paths: Sequence[str]) -> None:
        """Put the undo of `turn` into the journal."""
        self.session.notice(f"the person undid the changes of turn {turn}: {', '.join(paths)}")
