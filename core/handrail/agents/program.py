"""Any program under the gateway: started with its providers' addresses changed, followed to its exit code."""

from __future__ import annotations

import asyncio
import shlex
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from handrail import events as ev
from handrail.agents.gateway import Gateway
from handrail.agents.gateway_session import GatewaySession
from handrail.errors import ConfigError
from handrail.loop.context import RunContext

KILL_S: Final = 5.0
"""Seconds from the signal that ends a program to the one that it cannot ignore."""


class ProgramRun:
    """One run of `command` under `session`, which emits into `context` (see `emitter`). `shares_terminal`: the program
    gets the keys of the terminal, Ctrl-C among them."""

    def __init__(
        self,
        command: Sequence[str],
        session: GatewaySession,
        context: RunContext,
        cwd: Path,
        *,
        shares_terminal: bool = False,
    ) -> None:
        self._command, self._session, self._context, self._cwd = tuple(command), session, context, cwd
        self._shares_terminal = shares_terminal
        self._process: asyncio.subprocess.Process | None = None
        self._signal: str | None = None
        self._commits: set[asyncio.Task[None]] = set()

    async def run(
        self, gateway: Gateway, environ: Mapping[str, str], *, stdout: IO[bytes] | int | None = None
    ) -> tuple[int, ev.RunFinished | ev.RunInterrupted]:
        """Start the program and wait for its end: its exit code, as a shell counts, and the last event. `stdout` is
        where its output goes, by default where ours does. Raises ConfigError when it cannot be started."""
        session, context = self._session, self._context
        gateway.add(session)
        env = gateway.environ(session, environ)
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, cwd=self._cwd, env=env, stdout=stdout
            )
        except OSError as error:
            raise ConfigError(f"'{self._command[0]}' cannot be started: {error.strerror or error}.") from None
        unsubscribe = context.listen(self._keep)
        context.emit(session.started(shlex.join(self._command), str(self._cwd)))
        await context.commit()
        try:
            code = await self._process.wait()
        except asyncio.CancelledError:
            await self._end(self._process)
            raise
        await session.close()
        code = code if code >= 0 else 128 - code
        last = self._last(code)
        context.emit(last)
        unsubscribe()
        await asyncio.gather(*self._commits)
        await context.commit()
        return code, last

    def stop(self) -> None:
        """Ctrl-C: the program of a terminal gets it by itself, any other one from here."""
        self._pass_on("SIGINT", send=not self._shares_terminal)

    def suspend(self, signal: str | None = None) -> None:
        """We are told to end, and so is the program; one that stays is killed."""
        self._pass_on(signal or "SIGTERM", send=True)

    def _pass_on(self, name: str, *, send: bool) -> None:
        self._signal, process = name, self._process
        if send and process is not None and process.returncode is None:
            process.send_signal(getattr(signal, name, signal.SIGTERM))
            if name != "SIGINT":
                self._context.clock.call_later(KILL_S, self._kill)

    def _kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        if process.returncode is None:
            process.terminate()
            try:
                async with asyncio.timeout(KILL_S):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()

    def _keep(self, event: ev.Event) -> None:
        """A finished reply is on the disk soon after (rule J1)."""
        if isinstance(event, ev.MessageFinished | ev.WaitStarted):
            task = asyncio.create_task(self._context.commit())
            self._commits.add(task)
            task.add_done_callback(self._commits.discard)

    def _last(self, code: int) -> ev.RunFinished | ev.RunInterrupted:
        session = self._session
        refusal, failed = session.refusal, session.last_failure
        if self._signal in ("SIGTERM", "SIGHUP"):
            return session.interrupted(self._signal)
        if self._signal is not None:
            return session.finished("cancelled", stopped=True)
        if code == 0:
            return session.finished("completed")
        if refusal is not None and refusal.limit is None:
            outcome: ev.Outcome = "turn-limit" if refusal.code == "max_turns" else "budget"
            return session.finished(outcome, error=refusal.words, bound=refusal.code)
        if failed is None:
            ended = f"{Path(self._command[0]).name} ended with code {code}"
            return session.finished("provider", class_="unknown", error=ended)
        class_, failure = failed
        if class_ == "usage_limit":
            return session.finished(
                "usage-limit", class_=class_, error=failure.text, until=session.limited_until
            )
        return session.finished("provider", class_=class_, error=failure.text)


def emitter(context: RunContext) -> ev.Listener:
    """What a session of the gateway emits into, so that its events are masked, kept and told (rules J1, J5)."""

    def emit(event: ev.Event) -> None:
        if isinstance(event, ev.MessageDelta | ev.ToolProgress):
            context.pass_on(event)
        else:
            context.emit(event)

    return emit
