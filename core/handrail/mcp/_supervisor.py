"""One server from its start to its end: process, deadline, lists, reconnection. One task owns all of it.

off ── switch on ──▶ starting ──▶ ready ──▶ restarting ──▶ ready
                        └──────▶ failed ◀──────┘
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, TypeVar

from handrail.clock import Clock, RealClock
from handrail.mcp._deadline import within
from handrail.mcp._log import ServerLog
from handrail.mcp._process import Watcher
from handrail.mcp._wire import Place, Wire, http_wire, inside_wire, process_wire
from handrail.messages import clean
from handrail.server_settings import ServerSettings
from handrail.tools.output import one_line

if TYPE_CHECKING:
    import mcp_types as types

    from handrail.mcp._connection import Connection, Lists

T = TypeVar("T")
State: TypeAlias = Literal["off", "starting", "ready", "restarting", "failed"]

PAUSE_S: Final = 1.0
"""Before a server that died is started again, once."""

CALM_S: Final = 0.2
"""Without a further change before changed lists are fetched."""

CALM_ROUNDS: Final = 20
"""How often calm is waited for; a server that never rests is asked all the same."""

LAST_WORDS_S: Final = 0.3
"""Real seconds for the reason of an end to come."""

STEADY_S: Final = 60.0
"""A server that was up for so long, or answered a call, may be started again after its next death."""


class Lost(Exception):
    """The connection is gone. `sent` says whether the server may have seen what was under way."""

    def __init__(self, why: str, *, sent: bool = True) -> None:
        super().__init__(why)
        self.sent = sent


class CallInFlight(Protocol):
    """A call that the server is at work on."""

    async def asked(self, params: types.ElicitRequestParams) -> types.ElicitResult: ...

    def lost(self, lost: Lost) -> None: ...


class NotRunning(Exception):
    """The server cannot be called now; the message says why and what to do."""


class Supervisor:
    """Keeps one server. `on_change` is told when its state or its tools changed."""

    def __init__(
        self,
        name: str,
        settings: ServerSettings | None,
        *,
        cwd: Path,
        clock: Clock,
        folder: Path | None,
        watcher: Watcher,
        on_change: Callable[[], None],
        inside: Any = None,
    ) -> None:
        self.name, self.inside = name, inside
        self.settings = settings or ServerSettings(command=name)
        self.root = cwd.resolve()
        # A real process answers in real seconds, whatever the clock of the run shows.
        self.clock = clock if inside is not None else RealClock()
        self.run_clock = clock
        self.folder = folder
        self.log = ServerLog(folder, name)
        self.state: State = "off"
        self.why = ""
        self.lists: Lists | None = None
        self.calls: list[CallInFlight] = []
        self.switched_off = False
        self.auth: Any = None
        self._watcher, self._on_change = watcher, on_change
        self._connection: Connection | None = None
        self._task: asyncio.Task[None] | None = None
        self._moved = asyncio.Event()
        self._wanted = False
        self._lost: asyncio.Future[Lost] | None = None
        self._may_restart = True
        self._stale = asyncio.Event()

    # What others ask of it

    def start(self) -> None:
        """Start in the background; a server that runs is left as it is."""
        if self._task is None or self._task.done() or not self._wanted:
            self._wanted, self._may_restart = True, True
            self._set("starting")
            self._task = asyncio.ensure_future(self._run())

    async def stop(self) -> None:
        """End it, with everything that it started."""
        self._wanted = False
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        self.log.close()
        self._set("off")

    @property
    def settled(self) -> bool:
        """Whether it is up, or will not come up by itself."""
        return self.state in ("ready", "failed", "off")

    @property
    def connection(self) -> Connection | None:
        """The live connection, None while there is none."""
        return self._connection

    async def moved(self) -> None:
        """Return at the next change of its state."""
        await self._moved.wait()

    async def ready(self) -> Connection:
        """The live connection; waits while it starts. Raises NotRunning."""
        while not self.settled:
            with self.busy():
                await self.moved()
        if self._connection is None:
            raise NotRunning(self.trouble)
        return self._connection

    @property
    def trouble(self) -> str:
        """Why it is not up, and what to do, for a person and the model."""
        if self.state == "off":
            return f"the server {self.name} is switched off"
        return (
            f"the server {self.name} is not running: {self.why}. `handrail mcp test {self.name}` shows more"
        )

    def busy(self) -> Any:
        """Real work is pending, for a clock that would jump over it."""
        return nullcontext() if self.inside is not None else self.run_clock.busy()

    def worked(self) -> None:
        """A call came back: the server is good for another start."""
        self._may_restart = True

    def report_lost(self, why: str, *, sent: bool = True) -> None:
        """A call found the connection broken."""
        if self._lost is not None and not self._lost.done():
            self._lost.set_result(Lost(why, sent=sent))

    # What the server asks of us (Host)

    async def elicit(self, params: types.ElicitRequestParams) -> types.ElicitResult:
        import mcp_types as types

        if not self.calls:  # nobody's call: there is no run that could hold for a person
            self.said("[handrail] a question outside of a call was cancelled")
            return types.ElicitResult(action="cancel")
        return await self.calls[-1].asked(params)

    def changed(self, what: str) -> None:
        self._stale.set()

    def said(self, line: str) -> None:
        self.log.add(line.encode("utf-8", "replace")[:4_096] + b"\n")

    # Its task

    async def _run(self) -> None:
        while True:
            began = self.clock.now()
            try:
                lost = await self._live()
            except TimeoutError:
                words = self.log.last_words
                lost = Lost(
                    f"it did not answer within {self.settings.start_s:g} s" + (f": {words}" if words else "")
                )
            except Exception as error:  # whatever a server, its command or the SDK does
                lost = Lost(_words(error), sent=not _never_arrived(error))
            self._connection = None
            self.why = one_line(clean(str(lost)), 300)
            self._tell_calls(lost)
            if self.clock.now() - began >= STEADY_S:
                self._may_restart = True
            if self.lists is None or not self._may_restart:
                self._set("failed")
                return
            self._may_restart = False
            self._set("restarting")
            await self.clock.sleep(PAUSE_S)

    async def _live(self) -> Lost:
        """From the start to the loss of the connection. Raises what the SDK and the system raise."""
        with self.busy():
            await self.run_clock.in_thread(_import_sdk)
        from handrail.mcp._connection import Connection

        self._lost = asyncio.get_running_loop().create_future()
        async with AsyncExitStack() as stack:
            with self.busy():
                async with within(self.clock, self.settings.start_s):
                    wire = await stack.enter_async_context(self._wire())
                    connection = Connection(wire.target, self, wire.border)
                    broken = asyncio.ensure_future(wire.closed())
                    stack.callback(broken.cancel)
                    await self._unless_broken(connection.enter(stack), broken)
                    self.lists = await self._unless_broken(connection.lists(), broken)
            self._connection = connection
            self._set("ready")
            tasks = [
                asyncio.ensure_future(_quietly(connection.watch())),
                asyncio.ensure_future(self._refresh(connection)),
            ]
            for task in tasks:
                stack.callback(task.cancel)
            await asyncio.wait({self._lost, broken}, return_when=asyncio.FIRST_COMPLETED)
            self._connection = None
            self._set("restarting")
            await asyncio.wait(
                {broken}, timeout=LAST_WORDS_S
            )  # a process says more of its end than its pipe does
            lost = Lost(broken.result()) if broken.done() else self._lost.result()
            self._tell_calls(lost)
        return lost

    async def _unless_broken(self, work: Coroutine[Any, Any, T], broken: asyncio.Future[str]) -> T:
        """`work` in this task; should the wire close first, the reason is that of the wire."""
        task = asyncio.current_task()
        assert task is not None
        broken.add_done_callback(cut := lambda _: task.cancel())
        try:
            return await work
        except Exception as error:
            if _is_closed(error):
                raise Lost(await broken) from None
            raise
        except asyncio.CancelledError:
            if broken.done() and not broken.cancelled() and task.uncancel() == 0:
                raise Lost(broken.result()) from None
            raise
        finally:
            broken.remove_done_callback(cut)

    def _wire(self) -> AbstractAsyncContextManager[Wire]:
        if self.inside is not None:
            return inside_wire(self.inside)
        if self.settings.url is not None:
            return http_wire(self.settings, self.auth)
        place = Place(self.root, self.folder, self._watcher, self.clock)
        return process_wire(self.name, self.settings, place, self.log)

    async def _refresh(self, connection: Connection) -> None:
        """Fetch changed lists, once they have been calm for a moment."""
        while True:
            await self._stale.wait()
            for _ in range(CALM_ROUNDS):
                self._stale.clear()
                await self.clock.sleep(CALM_S)
                if not self._stale.is_set():
                    break
            try:
                async with within(self.clock, self.settings.start_s):
                    self.lists = await connection.lists()
            except Exception as error:
                self.said(f"[handrail] its lists could not be fetched again: {_words(error)}")
            else:
                self._on_change()

    def _tell_calls(self, lost: Lost) -> None:
        for call in tuple(self.calls):
            call.lost(lost)

    def _set(self, state: State) -> None:
        self.state = state
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()
        self._on_change()


def _import_sdk() -> None:
    """The SDK's import takes most of a second: in a thread, and only when a server is configured."""
    import handrail.mcp._connection  # noqa: F401


async def _quietly(work: Coroutine[Any, Any, None]) -> None:
    """A stream of changes that ends costs nothing but the changes."""
    with suppress(Exception):
        await work


def _words(error: BaseException) -> str:
    """A failure in words: of a group, that of its first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, ModuleNotFoundError):
        return "the extra is not installed: pip install 'handrail[mcp]'"
    if type(error).__name__.startswith("OAuth"):
        return f"the login has expired or was refused ({error}): handrail mcp login NAME"
    if isinstance(error, FileNotFoundError):
        return f"there is no command or folder {error.filename!r}"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error) or type(error).__name__


def _never_arrived(error: BaseException) -> bool:
    """Whether the failure says that nothing reached the server."""
    if isinstance(error, BaseExceptionGroup):
        return all(_never_arrived(each) for each in error.exceptions)
    return type(error).__name__ == "ConnectError"


def _is_closed(error: BaseException) -> bool:
    return getattr(error, "code", None) == -32000
