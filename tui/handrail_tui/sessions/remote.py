"""A run in another process, as the commands `answer`, `approve` and `stop` reach it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from handrail.errors import ConfigError
from handrail.session import control
from handrail.session.lock import holder
from handrail.session.store import Store


class RemoteRun:
    """The run of the session whose id begins with `prefix`. Raises ConfigError when no process runs it."""

    def __init__(self, prefix: str, if_not_running: str) -> None:
        """`if_not_running` says what to do instead; `{id}` in it is the session's id."""
        path = Store().path_of(prefix)
        self.id, self._folder = path.parent.name, path.parent
        if holder(path.with_suffix(".lock")) is None:
            raise ConfigError(f"session {self.id} is not running. {if_not_running.format(id=self.id)}")

    def status(self) -> dict[str, Any]:
        """The run's state, its open questions and approvals."""
        return self.send("status")

    def send(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Send the run a command. Raises ConfigError with its reason when it refuses."""
        try:
            return control.call(Path(self._folder), command, **arguments)
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
