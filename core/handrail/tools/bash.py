"""The tool `bash`: a command in its own shell, which is ended with everything it started."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import signal
from asyncio.subprocess import PIPE
from contextlib import suppress
from functools import partial
from typing import Final, Literal, TypeAlias

from pydantic import Field

from handrail.tools import processes
from handrail.tools._commands import pattern_of
from handrail.tools._keeper import ADOPTS, keeper
from handrail.tools._typed import Arguments, TypedTool
from handrail.tools.base import Preview, ToolContext, ToolError, ToolResult
from handrail.tools.capture import Capture
from handrail.tools.environ import child_environment
from handrail.tools.kept import kept_output
from handrail.tools.output import count, one_line
from handrail.tools.paths import locate, require_folder
from handrail.tools.processes import end_family, family
from handrail.tools.sandbox import Sandbox
from handrail.tools.stopping import whole

DEFAULT_S: Final = 120.0
MAX_S: Final = 600.0

_DRAIN_S: Final = 0.1
"""Seconds to wait for more output after the shell ended, while another process still holds its pipe."""

_END_S: Final = 1.0
"""Seconds to wait for the end of a process that was killed."""

_BLOCK: Final = 65_536

End: TypeAlias = Literal["exited", "timed out", "stopped"]


class BashArguments(Arguments):
    command: str = Field(min_length=1, description="the command; it may be several lines")
    timeout: float = Field(DEFAULT_S, gt=0, description=f"seconds it may take, at most {MAX_S:g}")
    description: str = Field("", description="what it does, in a few words, for the person who watches")


class BashTool(TypedTool[BashArguments]):
    """Runs a command in the working folder. Times are real seconds: a process knows no other
    clock."""

    name = "bash"
    description = (
        "Run a shell command in the working folder and get its output, stdout and stderr together. Every call is a "
        "new shell. There is no input and no terminal: use options that never prompt or page. What is to run in the "
        "background needs its output redirected to a file. Long output is cut in the middle and kept in a file."
    )
    effect = "run"

    def __init__(
        self, default_s: float = DEFAULT_S, max_s: float = MAX_S, sandbox: Sandbox | None = None
    ) -> None:
        super().__init__(BashArguments)
        self._default_s, self._max_s = default_s, max_s
        self._sandbox = sandbox
        if sandbox is not None:
            self.held = sandbox.words
            self.description += f" It runs in a {sandbox.words}, and everything ends with the command."

    def preview(self, args: BashArguments, ctx: ToolContext) -> Preview:
        title = one_line(args.command)
        about = [f"# {one_line(args.description)}"] if args.description else []
        detail = "\n".join([*about, args.command]) if about or title != args.command else ""
        always = pattern_of(args.command, lambda operand: locate(operand, ctx).inside)
        return Preview(title, detail, pattern=always.text, covers=always.covers, asks_again=always.asks_again)

    async def run(self, args: BashArguments, ctx: ToolContext) -> ToolResult:
        wanted = args.timeout if "timeout" in args.model_fields_set else self._default_s
        with ctx.clock.busy():
            return await _Command(args.command, min(wanted, self._max_s), ctx, self._sandbox).run()


class _Command:
    """One command from start to result."""

    def __init__(self, command: str, limit: float, ctx: ToolContext, sandbox: Sandbox | None) -> None:
        self._command, self._limit, self._ctx, self._sandbox = command, limit, ctx, sandbox
        self._mark = secrets.token_hex(8)
        self._capture = Capture(ctx.clock, ctx.progress, kept_output(ctx))
        self._left: list[processes.Process] = []
        self._root: int | None = None
        self._code: int | None = None

    async def run(self) -> ToolResult:
        """Run it until it exits, times out or is stopped. A stop is passed on once every process has ended."""
        pipe, cancelled = await whole(self._start())
        pump = asyncio.ensure_future(self._pump(pipe))
        end: End = "stopped"
        if not cancelled:
            end, cancelled = await self._wait(pipe)
        _, late = await whole(self._settle(end, pipe, pump))
        result = self._result(end)
        if cancelled or late:
            self._ctx.leave(self._told(result))
            raise asyncio.CancelledError
        return result

    async def _start(self) -> _Pipe:
        shell = shutil.which("bash") or shutil.which("sh")
        if shell is None or os.name != "posix":
            raise ToolError("there is no bash or sh on this machine")
        argv = [shell, "-c", self._command]
        if self._sandbox is not None:
            argv = self._sandbox.argv(argv, locate(".", self._ctx).real)
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        try:
            process = await asyncio.create_subprocess_exec(
                *keeper(argv),
                stdin=PIPE,
                stdout=PIPE,
                stderr=writing,
                cwd=self._ctx.cwd,
                env=child_environment(self._ctx.env, self._mark),
                start_new_session=True,
            )
        except OSError as error:
            os.close(reading)
            require_folder(locate(".", self._ctx))
            raise ToolError(f"the command could not be started: {error.strerror or error}") from None
        finally:
            os.close(writing)
        return _Pipe(process, reading)

    async def _wait(self, pipe: _Pipe) -> tuple[End, bool]:
        try:
            async with asyncio.timeout(self._limit):
                self._root = await pipe.said()
                self._code = await pipe.said()
        except TimeoutError:
            return "timed out", False
        except asyncio.CancelledError:
            return "stopped", True
        return "exited", False

    async def _pump(self, pipe: _Pipe) -> None:
        while data := await pipe.read():
            await self._capture.add(data)

    async def _settle(self, end: End, pipe: _Pipe, pump: asyncio.Future[None]) -> None:
        """End the processes that must end, read the last output, list the processes that are left."""
        clock, above = self._ctx.clock, pipe.process.pid
        if end == "exited" and self._sandbox is None:
            await asyncio.wait([pump], timeout=_DRAIN_S)
            self._left = await clock.in_thread(partial(family, self._root or above, self._mark, above))
        else:
            end_them = partial(end_family, clock, self._root or above, self._mark, processes.GRACE_S)
            self._left = await end_them(above)
            with suppress(ProcessLookupError):  # it may have been about to start the command
                pipe.process.kill()
            await pipe.ended()
            self._left = self._left or await end_them()
        pipe.release()
        await pipe.ended()
        pipe.stop()
        await pump
        pipe.close()
        await self._capture.close()

    def _result(self, end: End) -> ToolResult:
        output = self._capture.text().rstrip("\n")
        lines = count(self._capture.lines, "line") if self._capture.total else "no output"
        notes, few = self._notes(end)
        if not output and not notes:
            output = "[no output]"
        text = "\n".join(part for part in (output, *notes) if part)
        return ToolResult(text, is_error=bool(few), summary=f"{few} · {lines}" if few else lines)

    def _notes(self, end: End) -> tuple[list[str], str]:
        """What a person and the model must know besides the output, and a short form of it, empty on success."""
        notes, few = [], ""
        if end == "timed out":
            few = "timed out"
            notes.append(f"[timed out after {self._limit:g} s and ended, with {self._everything}]")
        elif end == "stopped":
            few = "stopped"
            notes.append(f"[stopped, with {self._everything}]")
        elif self._code is None:
            few = "ended"
            notes.append("[it ended the process above it: what it had started may still be running]")
        elif self._code:
            few = _exit(self._code)
            notes.append(f"[{few}]")
        for each in self._left:
            if end == "exited":
                notes.append(f"[running in the background: {each}; its output is no longer read]")
            else:
                notes.append(f"[may still be running: {each}]")
        return notes, few

    @property
    def _everything(self) -> str:
        if ADOPTS or self._sandbox is not None:
            return "everything it had started"
        return "what it had started; a process that left its session may still be running"

    @staticmethod
    def _told(result: ToolResult) -> str:
        return "".join(block.text for block in result.blocks if block.type == "text")


def _exit(code: int) -> str:
    if code >= 0:
        return f"exit {code}"
    try:
        return f"ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"ended by signal {-code}"


class _Pipe:
    """The keeper of the shell, and our end of the output. Reading stops at the end of the pipe, or at `stop`, since
    a background process may hold it open for hours. The shell's own output is read first."""

    def __init__(self, process: asyncio.subprocess.Process, descriptor: int) -> None:
        self.process = process
        self._descriptor = descriptor
        self._stopping = False
        self._waiter: asyncio.Future[None] | None = None
        self._last_reads = 1_048_576 // _BLOCK  # as much as a pipe can hold

    async def read(self) -> bytes:
        """The next bytes; none at the end."""
        while True:
            try:
                if self._stopping:
                    self._last_reads -= 1
                    return os.read(self._descriptor, _BLOCK) if self._last_reads >= 0 else b""
                await self._readable()
                return os.read(self._descriptor, _BLOCK)
            except BlockingIOError:
                if self._stopping:
                    return b""

    async def said(self) -> int | None:
        """The next number that the keeper says; None when it has ended without one."""
        assert self.process.stdout is not None
        line = await self.process.stdout.readline()
        return int(line) if line else None

    def release(self) -> None:
        """Let the keeper end, once the command has."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    async def ended(self) -> None:
        """Wait until the keeper has ended. One that cannot be ended, since its command cannot, is left alone."""
        await asyncio.wait([asyncio.ensure_future(self.process.wait())], timeout=_END_S)

    def stop(self) -> None:
        """Read what is already available."""
        self._stopping = True
        self._wake()

    def close(self) -> None:
        os.close(self._descriptor)

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        loop.add_reader(self._descriptor, self._wake)
        try:
            await self._waiter
        finally:
            loop.remove_reader(self._descriptor)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
