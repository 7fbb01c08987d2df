"""Models on this machine: a llama.cpp server as a child of the run, started on the first request, ended with the run.

Two servers may run for one model, each with its own chat template: one where a reply may be text or calls, and one
where it must be a call (see chatml_forced.jinja). Most runs need only one of them.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import sys
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, suppress
from dataclasses import replace
from importlib.resources import files
from typing import Final, cast

from handrail.clock import Clock, RealClock
from handrail.messages import AssistantMessage, Failure, Phase, clean
from handrail.providers.base import Finished, ModelInfo, Part, Provider, ProviderNotice, Request, close
from handrail.providers.local_models import LocalModel

WINDOW: Final = 16_384
"""Tokens of window where nobody said: more may not fit into the memory of this machine."""

NOTE_S: Final = 5.0  # how often a start that takes long says so
START_S: Final = 600.0
END_S: Final = 3.0
TAIL: Final = 40  # lines of the server's words that are kept for when it fails
SUBMIT: Final = "submit"  # the tool that ends a step
TALK: Final = frozenset({SUBMIT, "ask_human"})  # tools that do nothing by themselves

# A line of llama.cpp's log. Its «error loading model» is left out: it reads like the «loading model» of a server that
# will be ready soon.
_ERROR: Final = re.compile(r"[\d.]+ E \s*(?:\S+\s+)?\S+: (?:error loading model: )?(.+)")

Wire = Callable[[str, str], Provider]
"""Makes what speaks to a server, from its address and its key."""


class ServerFailed(Exception):
    """The server did not start. `transient`: it may do so when it is tried again."""

    def __init__(self, words: str, *, transient: bool = False) -> None:
        super().__init__(words)
        self.transient = transient


class LocalServer:
    """llama.cpp's server as a child on a free loopback port. `template` None is the model's own."""

    def __init__(self, model: LocalModel, window: int, template: str | None, clock: Clock) -> None:
        self._model, self._window, self._template, self._clock = model, window, template, clock
        self._process: Process | None = None
        self._listening: asyncio.Task[None] | None = None
        self._words: deque[str] = deque(maxlen=TAIL)
        self.key = secrets.token_urlsafe(24)
        self.url = ""

    @property
    def pid(self) -> int | None:
        """The server's process, None while none runs."""
        process = self._process
        return process.pid if process is not None and process.returncode is None else None

    async def start(self) -> AsyncGenerator[ProviderNotice, None]:
        """Start it, unless it runs; ends when it is healthy. Notes say what is going on while that takes long.

        Raises ServerFailed when it ends or takes longer than START_S.
        """
        if self._process is not None and self._process.returncode is None and self.url:
            return
        await self.aclose()
        yield ProviderNotice(f"starting {self._model.path.name} on this machine")
        with self._clock.busy():
            process = await self._spawn()
        ready = asyncio.ensure_future(self._ready(process))
        try:
            for waited in range(int(START_S / NOTE_S)):
                if waited:
                    yield ProviderNotice(
                        f"{self._model.path.name} is still being loaded ({waited * NOTE_S:g} s)"
                    )
                with self._clock.busy():
                    done, _ = await asyncio.wait([ready], timeout=NOTE_S)
                if done:
                    self.url = ready.result()
                    return
        finally:
            if not ready.done():
                ready.cancel()
        raise ServerFailed(
            f"timed out: {self._model.path.name} was not loaded within {START_S:g} s", transient=True
        )

    async def aclose(self) -> None:
        """End the server: SIGTERM, then SIGKILL."""
        process, self._process, self.url = self._process, None, ""
        if process is None:
            return
        with self._clock.busy():
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.terminate()
                try:
                    async with asyncio.timeout(END_S):
                        await process.wait()
                except TimeoutError:
                    process.kill()
                    await process.wait()
            if process.stdin is not None:
                process.stdin.close()
            if self._listening is not None:
                await self._listening

    async def _spawn(self) -> Process:
        # -P: what lies in the folder that the run works in must not be imported.
        command = [sys.executable, "-P", "-m", "handrail.providers.local_server", str(self._model.path)]
        command += ["--window", str(self._window), "--name", self._model.name]
        if self._template is not None:
            command += ["--template", str(files("handrail.providers").joinpath(self._template))]
        process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True
        )
        self._process = process
        self._words.clear()
        self._listening = asyncio.ensure_future(self._listen(process))
        assert process.stdin is not None
        with suppress(ConnectionError):  # it ended at once; why is told when its words are read
            process.stdin.write(self.key.encode() + b"\n")
            await process.stdin.drain()
        return process

    async def _ready(self, process: Process) -> str:
        assert process.stdout is not None
        line = await process.stdout.readline()
        try:
            return str(json.loads(line)["url"])
        except (ValueError, KeyError):
            await process.wait()
            if self._listening is not None:
                await self._listening
            raise ServerFailed(
                f"the server for {self._model.path.name} did not start: {self._why(process)}."
                " Is the file whole, and is there memory for it?"
            ) from None

    def _why(self, process: Process) -> str:
        """The first error that the server told of, else its last words."""
        lines = [clean(line).strip() for line in self._words if line.strip()]
        errors = [found[1] for line in lines if (found := _ERROR.match(line))]
        return [*errors, *reversed(lines), f"it ended with {process.returncode}"][0][:300].rstrip(".")

    async def _listen(self, process: Process) -> None:
        assert process.stderr is not None
        begun = b""
        while piece := await process.stderr.read(8192):
            *lines, begun = (begun[-8192:] + piece).split(b"\n")
            self._words.extend(line.decode("utf-8", "replace") for line in lines)


class Local:
    """A model of this machine, asked through any of the three wires. `wire` makes the one that is used."""

    def __init__(
        self, model: ModelInfo, weights: LocalModel, wire: Wire, *, clock: Clock | None = None
    ) -> None:
        self._model = replace(model, window=model.window or WINDOW)
        self._weights, self._wire = weights, wire
        self._clock = clock or RealClock()
        self._servers: dict[str | None, LocalServer] = {}
        self._wires: dict[str, Provider] = {}

    @property
    def model(self) -> ModelInfo:
        return self._model

    async def aclose(self) -> None:
        """Close the connections and end the servers."""
        wires, self._wires = self._wires, {}
        servers, self._servers = self._servers, {}
        for provider in wires.values():
            await close(provider)
        await asyncio.gather(*(server.aclose() for server in servers.values()))

    async def stream(self, request: Request) -> AsyncIterator[Part]:
        """Ask once; the server is started when there is none.

        A request of a step (it offers `submit`) must be answered by a call, and where nothing but the answer is left to
        do, by that call: so small a model would not come to it by itself.
        """
        names = {tool.name for tool in request.tools}
        if request.tool_choice == "auto" and SUBMIT in names:
            tools = [tool for tool in request.tools if tool.name == SUBMIT or names - TALK]
            request = replace(request, tool_choice="required", tools=tools)
        server = self._server_for(request)
        try:
            async with aclosing(server.start()) as notes:
                async for note in notes:
                    yield note
        except ServerFailed as error:
            yield Finished(self._failed(error))
            return
        if server.url not in self._wires:
            self._wires[server.url] = self._wire(server.url, server.key)
        stream = cast(AsyncGenerator[Part, None], self._wires[server.url].stream(request))
        async with aclosing(stream) as parts:
            async for part in parts:
                yield part

    def _server_for(self, request: Request) -> LocalServer:
        template = None
        if self._weights.chatml:
            forced = bool(request.tools) and request.tool_choice == "required"
            template = "chatml_forced.jinja" if forced else "chatml_tools.jinja"
        if template not in self._servers:
            window = self._model.window or WINDOW
            self._servers[template] = LocalServer(self._weights, window, template, self._clock)
        return self._servers[template]

    def _failed(self, error: ServerFailed) -> AssistantMessage:
        phase: Phase = "connect" if error.transient else "response"
        failure = Failure(str(error), self._model.provider, phase)
        return AssistantMessage((), "error", None, self._model.name, failure=failure)
