"""The process of an agent: one a run, in a group of its own, ended with everything that it started (rule L9)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from handrail.clock import Clock
from handrail.errors import ConfigError
from handrail.messages import clean
from handrail.tools.environ import MARK
from handrail.tools.processes import GRACE_S, Process, end_family

STDERR: Final = "agent-stderr.log"
REAP_S: Final = 1.0
"""Real seconds between the end of its output and its own."""

_TAIL: Final = 4_000


class AgentProcess:
    """A started agent. `stdout` and `stdin` carry the protocol, stderr goes to a file in `folder`."""

    def __init__(
        self, process: asyncio.subprocess.Process, mark: str, log: Path | None, clock: Clock
    ) -> None:
        assert process.stdout is not None and process.stdin is not None
        self.stdout, self.stdin = process.stdout, process.stdin
        self.pid = process.pid
        self._process, self._mark, self._log, self._clock = process, mark, log, clock

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        cwd: Path,
        environ: Mapping[str, str],
        mark: str,
        folder: Path | None,
        clock: Clock,
    ) -> AgentProcess:
        """Raises ConfigError when it cannot be started."""
        log = folder / STDERR if folder is not None else None
        errors = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600) if log else None
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                cwd=cwd,
                env={**environ, MARK: mark},
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors if errors is not None else asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            raise ConfigError(f"'{command[0]}' cannot be started: {error.strerror or error}.") from None
        finally:
            if errors is not None:
                os.close(errors)
        return cls(process, mark, log, clock)

    async def code(self) -> int | None:
        """Its exit code; None when it does not end, though its output has."""
        with suppress(TimeoutError):
            async with asyncio.timeout(REAP_S):
                await self._process.wait()
        return self._process.returncode

    async def end(self) -> list[Process]:
        """End it and everything that it started: asked first, killed two seconds later. What may still be running."""
        self.stdin.close()
        left = await end_family(self._clock, self.pid, self._mark, GRACE_S)
        with self._clock.busy():
            await self._process.wait()
        return left

    def last_words(self) -> str:
        """The end of what it wrote to stderr."""
        if self._log is None:
            return ""
        try:
            with self._log.open("rb") as file:
                file.seek(max(0, self._log.stat().st_size - _TAIL))
                said = file.read().decode("utf-8", "replace")
        except OSError:
            return ""
        lines = [line for line in clean(said).splitlines() if line.strip()]
        return "\n".join(lines[-8:])
