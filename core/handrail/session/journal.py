"""The journal of a session: an append-only file of JSON lines (rules J1 to J3).

No byte is ever changed or removed. `append` hands a record to the operating system: it survives the end of the
program. `commit` makes it survive the end of the machine. Acknowledged means committed.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from pathlib import Path
from typing import Any

from handrail.clock import Clock, to_rfc3339
from handrail.errors import ConfigError
from handrail.events import Event, MessageDelta
from handrail.session._files import open_regular, still_there
from handrail.session.lock import Holder, Lock, LockHeld, take
from handrail.session.records import (
    HEADER,
    PIECE,
    REPAIRED,
    VERSION,
    Damage,
    JournalContents,
    JournalHeader,
    JournalRecord,
    encode,
    event_data,
    read_journal,
)

__all__ = [
    "Journal",
    "JournalBroken",
    "JournalContents",
    "JournalDamaged",
    "JournalError",
    "JournalLocked",
    "JournalTooNew",
    "make_folder",
    "read_journal",
]


class JournalError(ConfigError):
    """A journal that cannot be used. The message tells a person what is wrong, where, and what to do."""


class JournalLocked(JournalError):
    """Another process is writing this session."""

    def __init__(self, path: Path, holder: Holder) -> None:
        self.pid, self.host = holder.pid, holder.host
        who = f"process {holder.pid} on {holder.host}" if holder.pid else "another process"
        super().__init__(
            f"{path} is being written by {who}. End that run first, or control it from here: "
            "handrail answer, approve, stop."
        )


class JournalDamaged(JournalError):
    """Something in the middle of the file is wrong; `places` says where."""

    def __init__(self, path: Path, places: tuple[Damage, ...]) -> None:
        self.places = places
        shown = "; ".join(str(p) for p in places[:5])
        more = f"; and {len(places) - 5} more places" if len(places) > 5 else ""
        super().__init__(
            f"{path} is damaged: {shown}{more}. Its good records can be read, exported and forked."
        )


class JournalTooNew(JournalError):
    """This file was written by a newer version of the program."""

    def __init__(self, path: Path, version: int) -> None:
        self.version = version
        super().__init__(
            f"{path} was written by a newer handrail (journal version {version}; this one knows {VERSION}). "
            "Update handrail to continue it."
        )


class JournalBroken(JournalError):
    """The journal cannot be written: no request and no tool may start (rule J6)."""


class Journal:
    """A journal that is open for appending, and locked.

    `session` is the id in its header, `contents` its contents when it was opened; `notices` says what was repaired
    on opening.
    """

    def __init__(
        self, path: Path, fd: int, lock: Lock, clock: Clock, contents: JournalContents, session: str
    ) -> None:
        self.path = path
        self.session = session
        self.contents = contents
        self.notices: tuple[str, ...] = ()
        self._fd: int | None = fd
        self._lock = lock
        self._clock = clock
        self._next = contents.next_n
        self._end = contents.size  # where the good records end
        self._cut = 0  # bytes after that, of a record that was not fully written
        self._open_line = contents.ends_open
        self._synced = 0
        self._failed: str | None = None
        self._turn = asyncio.Lock()
        self._gate = threading.Lock()  # the file is never closed while a thread syncs it

    @classmethod
    def create(cls, path: Path, *, session: str, meta: dict[str, Any], clock: Clock) -> Journal:
        """A new journal, its header on disk. Raises FileExistsError, JournalLocked, JournalBroken."""
        lock = None
        try:
            make_folder(path.parent)
            lock = _locked(path)
            fd = _open(path, os.O_CREAT | os.O_EXCL)
        except (OSError, JournalLocked) as error:
            if lock is not None:
                lock.release()
            if isinstance(error, FileExistsError | JournalLocked):
                raise
            raise JournalBroken(f"{path} cannot be made: {error.strerror or error}.") from error
        journal = cls(path, fd, lock, clock, JournalContents(), session)
        try:
            at = clock.now()
            head = {"session": session, "at": at, "began": to_rfc3339(at), "meta": meta}
            journal._put(HEADER, json.dumps(head, allow_nan=False).encode())
            journal._sync()
            _sync_folder(path.parent)
        except BaseException:
            journal.close()
            raise
        return journal

    @classmethod
    def open(cls, path: Path, clock: Clock, *, accept_damage: bool = False) -> Journal:
        """Open for appending. Takes the lock and closes a torn tail, which is then in `notices` (rule J2).

        Raises JournalLocked, JournalTooNew, JournalDamaged (unless `accept_damage`: then the good records
        are used), JournalBroken, FileNotFoundError.
        """
        if not path.exists():
            raise FileNotFoundError(f"There is no journal {path}.")
        lock: Lock | None = None
        fd: int | None = None
        try:
            lock = _locked(path)
            fd = _open(path)
            contents = read_journal(path)
            header = _hold_usable(path, contents, accept_damage)
            journal = cls(path, fd, lock, clock, contents, header.session)
        except BaseException as error:
            if fd is not None:
                os.close(fd)
            if lock is not None:
                lock.release()
            if isinstance(error, OSError):
                raise JournalBroken(f"{path} cannot be opened: {error.strerror or error}.") from error
            raise
        if contents.torn_tail is not None:
            try:
                journal._close_tail(contents.torn_tail)
            except BaseException:
                journal.close()
                raise
        return journal

    def append(self, event: Event) -> None:
        """Write one event, whole or not at all. Raises JournalBroken; the call may be repeated.

        Raises ValueError for an event that could not be read back; nothing is written then.
        """
        self._put(event.type, event_data(event))

    def append_record(self, record: JournalRecord) -> None:
        """Write the kind and the data of `record`, unchanged. Raises JournalBroken; the call may be repeated."""
        self._put(record.kind, record.data)

    def append_piece(self, piece: MessageDelta) -> None:
        """Write a new piece of a streaming reply (rule J3). Raises JournalBroken."""
        self._put(PIECE, event_data(piece))

    async def commit(self) -> None:
        """Return when everything appended so far is on disk. Calls that wait together share one sync.

        Raises JournalBroken. A failed sync cannot be retried: what the disk lost is unknown, so the journal
        must be opened again.
        """
        target = self._end
        async with self._turn:
            if self._synced < target or self._failed:
                await self._clock.in_thread(self._sync)

    def close(self) -> None:
        """Sync, close, release the lock. Safe to call twice. Raises JournalBroken when the sync fails."""
        if self._fd is None:
            return
        try:
            if self._failed is None and self._synced < self._end:
                self._sync()
        finally:
            with self._gate:
                os.close(self._fd)
                self._fd = None
            self._lock.release()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _put(self, kind: str, data: bytes) -> None:
        if self._cut:
            self._set_aside()
        if self._open_line:
            self._write(b"\n", behind=self._end, counts=False)
        self._write(encode(self._next, kind, data), behind=self._end)

    def _write(self, line: bytes, *, behind: int, counts: bool = True) -> None:
        """Write `line` at byte `behind`, the end of the file.

        A line that lacks only its line end still holds its record: that is no failure, the next write ends the line.
        """
        if self._fd is None or self._failed:
            raise JournalBroken(f"{self.path} cannot be written: {self._failed or 'it is closed'}.")
        done = 0
        try:
            while done < len(line):
                done += os.write(self._fd, line[done:])
        except OSError as error:
            if not counts or done < len(line) - 1:
                self._cut = behind + done - self._end
                raise JournalBroken(
                    f"{self.path} cannot be written: {error.strerror or error}. "
                    "The run waits until it can: free some disk space."
                ) from error
        self._end, self._cut = behind + done, 0
        self._open_line = done < len(line)
        self._next += counts

    def _set_aside(self) -> None:
        """End the line of a record that was cut off, and record that (rule J2).

        Both are one write: if that is cut off too, the next attempt sets all of it aside.
        """
        said = {"offset": self._end, "length": self._cut, "at": self._clock.now()}
        repair = encode(self._next, REPAIRED, json.dumps(said).encode())
        self._write(b"\n" + repair, behind=self._end + self._cut)

    def _close_tail(self, tail: Damage) -> None:
        self._end, self._cut = tail.offset, tail.length
        self._set_aside()
        self._sync()
        self.notices = (
            f"The end of {self.path} was torn (line {tail.line}, byte {tail.offset}: {tail.what}). "
            f"{tail.length} bytes were set aside; every whole record is there.",
        )

    def _sync(self) -> None:
        with self._gate:
            if self._fd is None or self._failed:
                raise JournalBroken(f"{self.path} cannot be synced: {self._failed or 'it is closed'}.")
            end = self._end
            if not still_there(self.path, self._fd):  # nothing of what was written could be found again
                raise JournalBroken(
                    f"{self.path} was deleted or replaced while the run was writing it. "
                    "Put the file back where it was, or stop the run."
                )
            try:
                os.fsync(self._fd)
            except OSError as error:
                self._failed = f"{error.strerror or error}; open it again"
                raise JournalBroken(f"{self.path} cannot be synced: {error.strerror or error}.") from error
            self._synced = max(self._synced, end)


def _hold_usable(path: Path, contents: JournalContents, accept_damage: bool) -> JournalHeader:
    if contents.version > VERSION:
        raise JournalTooNew(path, contents.version)
    if contents.header is None:
        raise JournalDamaged(path, (*contents.damage, Damage(0, 1, "the header is missing")))
    if contents.damage and not accept_damage:
        raise JournalDamaged(path, contents.damage)
    return contents.header


def _locked(path: Path) -> Lock:
    lock = Lock(path.with_suffix(".lock"))
    try:
        lock.acquire()
    except LockHeld as held:
        raise JournalLocked(path, held.holder) from None
    return lock


def _open(path: Path, flags: int = 0) -> int:
    fd = open_regular(path, os.O_WRONLY | os.O_APPEND | flags)
    try:
        if not take(fd):  # the lock file may have been removed: the journal itself counts
            raise JournalLocked(path, Holder())
        if hasattr(os, "fchmod") and flags & os.O_CREAT:
            os.fchmod(fd, 0o600)  # regardless of the umask
    except BaseException:
        os.close(fd)
        raise
    return fd


def make_folder(folder: Path) -> None:
    """Make the folder and its missing parents, each with mode 0700 whatever the umask (rule J5)."""
    missing = [p for p in (folder, *folder.parents) if not p.exists()]
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)
        path.chmod(0o700)
        _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Make a new name in `folder` survive a crash of the machine. Windows has no such call."""
    if os.name != "posix":
        return
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
