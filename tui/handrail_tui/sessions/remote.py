"""A run that another process holds, as the commands `answer`, `approve` and `stop` find it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from handrail.errors import ConfigError
from handrail.session import control
from handrail.session.lock import holder
from handrail.session.store import Store


class RemoteRun:
    """The run of the session whose id begins with `prefix`. Raises ConfigError when no process holds it."""

    def __init__(self, prefix: str, otherwise: str) -> None:
        """`otherwise` is the command that does it without a run; `{id}` in it is the session's."""
        path = Store().path_of(prefix)
        self.id, self._folder = path.parent.name, path.parent
        if holder(path.with_suffix(".lock")) is None:
            raise ConfigError(f"no program runs session {self.id} now. {otherwise.format(id=self.id)}")

    def status(self) -> dict[str, Any]:
        """What is open, and where the run stands."""
        return self.send("status")

    def send(self, do: str, **said: Any) -> dict[str, Any]:
        """Tell the run. Raises ConfigError with the run's words when it does not do it."""
        try:
            return control.call(Path(self._folder), do, **said)
        except control.Refused as error:
            raise ConfigError(f"session {self.id}: {error}.") from None

    def open_one(self, kind: str, which: str | None) -> dict[str, Any]:
        """The open question or approval that is meant: `which`, else the one that waits longest."""
        found: list[dict[str, Any]] = self.status()[f"{kind}s"]
        if not found:
            raise ConfigError(f"session {self.id}: no {kind} is open.")
        if which is None:
            return found[0]
        ids = [str(one["id"]) for one in found]
        if which not in ids:
            raise ConfigError(
                f"session {self.id}: there is no open {kind} '{which}'. Open: {', '.join(ids)}."
            )
        return found[ids.index(which)]
