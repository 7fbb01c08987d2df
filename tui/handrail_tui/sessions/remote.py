"""A run in another process, as the commands `answer`, `approve`, `steer`, `stop` and their like reach it."""

from __future__ import annotations

from typing import Any, Final

from handrail.errors import ConfigError
from handrail.session import control
from handrail.session.lock import holder
from handrail.session.store import Store

_LISTED: Final = 5


class RemoteRun:
    """The run of the session whose id begins with `prefix`; an empty one means the only session that runs.

    `if_not_running` says what to do instead; `{id}` in it is the session's id. Raises ConfigError when no process
    runs it, or when several could be meant.
    """

    def __init__(self, prefix: str, if_not_running: str = "Resume it: handrail resume {id}") -> None:
        store = Store()
        path = store.path_of(prefix or _only_running(store))
        self.id, self._folder = path.parent.name, path.parent
        if holder(path.with_suffix(".lock")) is None:
            raise ConfigError(f"session {self.id} is not running. {if_not_running.format(id=self.id)}")

    def status(self) -> dict[str, Any]:
        """The run's state, its open questions and approvals."""
        return self.send("status")

    def send(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Send the run a command. Raises ConfigError with its reason when it refuses."""
        try:
            return control.call(self._folder, command, **arguments)
        except control.Refused as error:
            raise ConfigError(f"session {self.id}: {error}.") from None

    def open_one(self, kind: str, which: str | None) -> dict[str, Any]:
        """The open question or approval `which`, else the oldest one."""
        found: list[dict[str, Any]] = self.status()[f"{kind}s"]
        if not found:
            raise ConfigError(f"session {self.id} has no open {kind}.")
        if which is None:
            return found[0]
        ids = [str(one["id"]) for one in found]
        if which not in ids:
            raise ConfigError(f"session {self.id} has no open {kind} '{which}'. Open: {', '.join(ids)}.")
        return found[ids.index(which)]


def is_running(prefix: str) -> bool:
    """Whether `prefix` names one session, and a process runs it."""
    try:
        return holder(Store().path_of(prefix).with_suffix(".lock")) is not None
    except ConfigError:
        return False


def _only_running(store: Store) -> str:
    """The id of the one session that runs. Raises ConfigError for none or several."""
    running = [id for id in store.ids() if holder(store.journal_of(id).with_suffix(".lock")) is not None]
    if not running:
        raise ConfigError("No session is running. `handrail sessions` lists those that can be resumed.")
    if len(running) > 1:
        shown = ", ".join(running[-_LISTED:]) + (", …" if len(running) > _LISTED else "")
        raise ConfigError(
            f"{len(running)} sessions are running: {shown}. Say which one by the beginning of its id."
        )
    return running[0]
