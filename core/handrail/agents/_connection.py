"""A running agent: its process, the protocol with it, and the session that it keeps by itself."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from handrail.agents._process import AgentProcess
from handrail.agents._rpc import PeerGone, RpcError
from handrail.agents.acp_client import AcpClient, PermissionAsked, PromptEnded
from handrail.agents.registry import AgentEntry
from handrail.clock import Clock

KEPT: Final = "agent.json"
START_S: Final = 60.0
CANCEL_S: Final = 5.0
"""Real seconds that an agent has to end its turn after `session/cancel`."""


Began: TypeAlias = Literal["new", "resumed", "lost"]
"""How its session began. `lost`: there was an old one, and it cannot be taken up."""


class AgentFailed(Exception):
    """The agent cannot be talked to, or refuses what it was asked. `gone`: it ended."""

    def __init__(self, words: str, *, gone: bool = False) -> None:
        super().__init__(words)
        self.gone = gone


class AgentConnection:
    """One agent for one run. `folder` keeps its stderr and the id of its session, so that it can be taken up again."""

    def __init__(
        self, entry: AgentEntry, process: AgentProcess, client: AcpClient, folder: Path | None
    ) -> None:
        self.entry, self.client = entry, client
        self._process, self._folder = process, folder

    @classmethod
    async def start(
        cls,
        entry: AgentEntry,
        arguments: Sequence[str],
        *,
        cwd: Path,
        environ: Mapping[str, str],
        mark: str,
        folder: Path | None,
        clock: Clock,
        update: Callable[[Mapping[str, Any]], object],
        permission: Callable[[PermissionAsked], object],
    ) -> AgentConnection:
        """Start it and say who we are. Raises ConfigError, AgentFailed."""
        process = await AgentProcess.start(
            [*entry.command, *arguments], cwd=cwd, environ=environ, mark=mark, folder=folder, clock=clock
        )
        client = AcpClient(process.stdout, process.stdin, update=update, permission=permission)
        made = cls(entry, process, client, folder)
        try:
            await made._in_time(client.start())
        except BaseException:
            await made.close()
            raise
        return made

    async def open(self, cwd: Path, servers: Sequence[dict[str, Any]], environ: Mapping[str, str]) -> Began:
        """Begin its session, or take up the one that is kept in the folder. Raises AgentFailed."""
        login = [method for method, variable in self.entry.authenticate.items() if environ.get(variable)]
        old = self._kept()
        resumed: bool = await self._in_time(self.client.open(cwd, servers, session=old, login=login))
        if self.entry.mode is not None:
            await self._in_time(self.client.set_mode(self.entry.mode))
        self._keep()
        return "resumed" if resumed else "lost" if old is not None else "new"

    async def prompt(self, text: str) -> PromptEnded:
        """Ask; returns when its turn is over. Raises AgentFailed."""
        try:
            return await self.client.prompt(text)
        except RpcError as error:
            raise AgentFailed(error.words) from None
        except PeerGone as gone:
            raise await self._gone(gone) from None

    async def cancel(self, prompting: asyncio.Task[PromptEnded]) -> bool:
        """Stop the prompt under way. False: the agent did not end it in time."""
        await self.client.cancel()
        await asyncio.wait({prompting}, timeout=CANCEL_S)
        return prompting.done()

    async def close(self) -> list[str]:
        """End it and everything that it started. What may still be running, in words."""
        left = await self._process.end()
        await self.client.close()
        return [str(process) for process in left]

    async def _in_time(self, doing: Any) -> Any:
        try:
            async with asyncio.timeout(START_S):
                return await doing
        except TimeoutError:
            raise AgentFailed(f"it did not answer within {START_S:g} s{self._last_words()}") from None
        except RpcError as error:
            raise AgentFailed(f"{error.words}{self._last_words()}") from None
        except PeerGone as gone:
            raise await self._gone(gone) from None

    async def _gone(self, gone: PeerGone) -> AgentFailed:
        code = await self._process.code()
        ended = f"{gone}" if code is None else f"it ended with code {code}"
        return AgentFailed(f"{ended}{self._last_words()}", gone=True)

    def _last_words(self) -> str:
        said = self._process.last_words()
        return f". Its last words:\n{said}" if said else ""

    def _kept(self) -> str | None:
        if self._folder is None:
            return None
        try:
            kept = json.loads((self._folder / KEPT).read_text("utf-8"))
        except (OSError, ValueError):
            return None
        id = kept.get("session") if isinstance(kept, dict) else None
        return id if isinstance(id, str) else None

    def _keep(self) -> None:
        if self._folder is None:
            return
        path = self._folder / KEPT
        with suppress(OSError):
            new = path.with_suffix(".new")
            fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(fd, "w", encoding="utf-8") as file:
                json.dump({"agent": self.entry.name, "session": self.client.session}, file)
            new.replace(path)
