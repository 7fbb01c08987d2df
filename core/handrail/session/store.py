"""Where sessions are stored on disk: one folder each, named by its id, with the journal in it (rules J1, J5).

sessions/1kq0z8d3vhm/journal.jsonl     the journal, mode 0600
sessions/1kq0z8d3vhm/journal.lock      names the process that writes it
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import platformdirs

from handrail.clock import Clock
from handrail.errors import ConfigError
from handrail.events import SettingsChanged
from handrail.session.journal import Journal, JournalLocked
from handrail.session.lock import Lock, LockHeld, holder
from handrail.session.records import HEADER, REPAIRED, JournalContents, JournalRecord, read_journal
from handrail.session.summary import SessionSummary, summarise

JOURNAL = "journal.jsonl"
Summaries: TypeAlias = list[SessionSummary]
_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: no digits that look alike
_RANDOM = 2
# Recovery's decision about a turn follows its end: a fork without it would replay a broken reply (rule R7).
_BELONGS = frozenset({"decided", "checkpoint_made"})


class SessionNotFound(ConfigError):
    """The given id matches no session, or more than one."""


def default_root() -> Path:
    """The platform's folder for state, `handrail/sessions` in it."""
    return Path(platformdirs.user_state_dir("handrail", appauthor=False)) / "sessions"


class Store:
    """The sessions under `root` (default: `default_root()`). The folder is created with the first session."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root if root is not None else default_root()

    def create(self, clock: Clock, *, meta: dict[str, Any] | None = None) -> Journal:
        """A new session: its journal, open and locked. Raises JournalBroken."""
        while True:
            id = new_id(clock.now())
            try:
                return Journal.create(self.journal_of(id), session=id, meta=meta or {}, clock=clock)
            except (FileExistsError, JournalLocked):
                continue

    def open(self, prefix: str, clock: Clock, *, accept_damage: bool = False) -> Journal:
        """Open the journal of a session to continue it. Raises SessionNotFound, and what Journal.open raises."""
        return Journal.open(self.path_of(prefix), clock, accept_damage=accept_damage)

    def read(self, prefix: str) -> JournalContents:
        """The contents of a session's journal. Needs no lock. Raises SessionNotFound, ConfigError."""
        path = self.path_of(prefix)
        try:
            return read_journal(path)
        except OSError as error:
            raise ConfigError(f"{path} cannot be read: {error.strerror or error}.") from error

    def path_of(self, prefix: str) -> Path:
        """The journal of the one session whose id starts with `prefix`. Raises SessionNotFound."""
        wanted = prefix.strip().lower()
        found = [id for id in self.ids() if id.startswith(wanted)]
        if not wanted or not found:
            raise SessionNotFound(f"No session starts with '{prefix}'. `handrail sessions` lists them.")
        if len(found) > 1 and wanted not in found:
            shown = ", ".join(found[-5:]) + (", …" if len(found) > 5 else "")
            raise SessionNotFound(
                f"{len(found)} sessions start with '{prefix}': {shown}. Give more of the id."
            )
        return self.journal_of(wanted if wanted in found else found[0])

    def list(self) -> Summaries:
        """All sessions, most recent event first."""
        found = [summarise(self.journal_of(id)) for id in self.ids()]
        return sorted(found, key=lambda s: (s.last, s.id), reverse=True)

    def delete(self, prefix: str) -> None:
        """Delete a session's folder. Raises SessionNotFound, JournalLocked, ConfigError."""
        path = self.path_of(prefix)
        lock = Lock(path.with_suffix(".lock"))
        try:
            if (held := holder(path.with_suffix(".lock"))) is not None:
                raise LockHeld(held)
            lock.acquire()
            # Renamed first, so that an interrupted deletion leaves nothing that looks like a session.
            gone = path.parent.rename(path.parent.with_name(f".deleted-{path.parent.name}"))
            shutil.rmtree(gone)
        except LockHeld as other:
            raise JournalLocked(path, other.holder) from None
        except OSError as error:
            raise ConfigError(f"{path.parent} cannot be deleted: {error.strerror or error}.") from error
        finally:
            lock.release()

    def fork(self, prefix: str, clock: Clock, *, at_turn: int | None = None, cwd: Path | None = None) -> str:
        """A new session with the records up to the end of turn `at_turn`, by default all. Returns its id.

        It works in `cwd`, by default in the folder of its parent.
        The header names the parent. Where several runs have a turn of that number, the last one is used.
        Raises SessionNotFound, also for a turn that was not finished; JournalBroken.
        """
        path = self.path_of(prefix)
        contents = self.read(path.parent.name)
        parent = contents.header.session if contents.header else path.parent.name
        records = _up_to(contents.records, at_turn, parent)
        meta = {**(contents.header.meta if contents.header else {}), "parent": parent, "at_turn": at_turn}
        id = new_id(clock.now())
        while self.journal_of(id).exists():
            id = new_id(clock.now())
        made = self.root / f".new-{id}"
        try:
            with Journal.create(made / JOURNAL, session=id, meta=meta, clock=clock) as journal:
                for record in records:
                    journal.append_record(record)
                if cwd is not None:
                    journal.append(SettingsChanged(at=clock.now(), cwd=str(cwd)))
            made.rename(self.root / id)
        except BaseException as error:
            shutil.rmtree(made, ignore_errors=True)
            if isinstance(error, OSError):
                raise ConfigError(f"{self.root / id} cannot be made: {error.strerror or error}.") from error
            raise
        return id

    def ids(self) -> Sequence[str]:
        """The ids of all sessions, oldest first. A name with a dot is a session that is being created or deleted.

        A link to a folder elsewhere is no session. Raises ConfigError.
        """
        try:
            return sorted(p.name for p in self.root.iterdir() if p.name[0] != "." and _is_session(p))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise ConfigError(f"{self.root} cannot be read: {error.strerror or error}.") from error

    def journal_of(self, id: str) -> Path:
        """The journal of the session `id`, whether it exists or not."""
        return self.root / id / JOURNAL


def _is_session(folder: Path) -> bool:
    return not folder.is_symlink() and os.path.lexists(folder / JOURNAL)


def new_id(now: float) -> str:
    """An id that sorts by time: milliseconds in base 32, then random digits. Eleven characters."""
    number, digits = int(now * 1000), ""
    for _ in range(9):
        number, digit = divmod(number, 32)
        digits = _DIGITS[digit] + digits
    return digits + "".join(secrets.choice(_DIGITS) for _ in range(_RANDOM))


def _up_to(records: list[JournalRecord], at_turn: int | None, session: str) -> list[JournalRecord]:
    """The records up to the end of a turn, without those that describe the file itself."""
    end = len(records)
    if at_turn is not None:
        turns = {r.fields.get("turn"): n for n, r in enumerate(records) if r.kind == "turn_finished"}
        if at_turn not in turns:
            whole = f"; finished are 1 to {max(t for t in turns if t)}" if any(turns) else ""
            raise SessionNotFound(f"Session {session} has no finished turn {at_turn}{whole}.")
        end = turns[at_turn] + 1
        while end < len(records) and records[end].kind in _BELONGS:
            end += 1
    return [r for r in records[:end] if r.kind not in (HEADER, REPAIRED)]
