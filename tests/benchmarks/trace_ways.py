"""How many source files two journeys enter: a failure from HTTP to its card, and an answer to the next request.

    python tests/benchmarks/trace_ways.py [--list] [--check]

A run streams from a local server, with its journal on disk and its screen open. From the moment the server sends a 429
until the card is mounted, and from `Session.answer` until the next request arrives, every project file that runs a
function is counted once. `--list` prints the files; `--check` exits with 1 when a journey enters more than intended
(failure: 54 files, 28 of them in the library; answer: 50).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

from handrail import events as ev
from handrail.clock import RealClock
from handrail.policy import RecoveryPolicy
from handrail.providers.base import ModelInfo
from handrail.providers.chat import OpenAIChat
from handrail.session import Session
from handrail.session.store import Store
from handrail.session.writer import JournalWriter
from handrail_tui.app import HandrailApp

ROOT = Path(__file__).parents[2]
SOURCES = tuple(str(ROOT / folder) + "/" for folder in ("core", "tui", "themes"))
FAILURE, FAILURE_CORE, ANSWER = 54, 28, 50

LIMITED = (429, {"error": {"message": "Rate limit reached", "type": "rate_limit_error"}})
ASKS = {
    "id": "c1",
    "index": 0,
    "function": {"name": "ask_human", "arguments": json.dumps({"kind": "login", "needed": "Sign in."})},
}


class Tracer:
    """Counts the project's files that run a function while it is on."""

    def __init__(self) -> None:
        self.files: set[str] = set()

    def start(self) -> None:
        threading.setprofile(self._entered)
        sys.setprofile(self._entered)

    def stop(self) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def _entered(self, frame: FrameType, event: str, argument: Any) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(SOURCES):
            self.files.add(name)

    @property
    def core(self) -> int:
        return sum(name.startswith(SOURCES[0]) for name in self.files)


class Server:
    """Replies to each request with the next of `replies`; a callback hears of each request before its reply."""

    def __init__(self, replies: Iterator[bytes], heard: Callable[[int], None]) -> None:
        self._replies, self._heard = replies, heard
        self._requests = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.split("content-length:")[1].split("\r\n")[0])
        await reader.readexactly(length)
        self._requests += 1
        self._heard(self._requests)
        writer.write(next(self._replies))
        await writer.drain()
        writer.close()


def error(status: int, body: Any) -> bytes:
    data = json.dumps(body).encode()
    head = f"HTTP/1.1 {status} Error\r\ncontent-type: application/json\r\ncontent-length: {len(data)}"
    return f"{head}\r\nconnection: close\r\n\r\n".encode() + data


def stream(delta: dict[str, Any], reason: str) -> bytes:
    chunks = [
        {"choices": [{"index": 0, "delta": delta}]},
        {"choices": [{"delta": {}, "finish_reason": reason}]},
    ]
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    return f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{body}".encode()


@contextmanager
def kept_session(port: int, folder: Path) -> Iterator[Session]:
    clock = RealClock()
    provider = OpenAIChat(ModelInfo("demo/m"), base_url=f"http://127.0.0.1:{port}/v1")
    writer = JournalWriter(Store(folder).create(clock, meta={}), clock)
    policy = RecoveryPolicy(retry_base_s=30.0)
    yield Session(provider, clock=clock, record=writer, attended=True, recovery=policy)
    writer.close()


async def on_screen(
    replies: list[bytes],
    heard: Callable[[int], None],
    act: Callable[[HandrailApp, Session], Awaitable[None]],
) -> None:
    """Run a session against these replies with its screen open, and `act` on it."""
    server = await asyncio.start_server(Server(iter(replies), heard).serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with TemporaryDirectory() as folder, kept_session(port, Path(folder)) as session:
        app = HandrailApp(session, lambda: session.run("Go."))
        async with app.run_test() as pilot:
            await act(app, session)
            session.stop()
            await pilot.pause()
    server.close()


async def card(app: HandrailApp) -> None:
    """Return when a card is mounted."""
    while not any(found.is_mounted for found in app.screen.query("Card")):  # noqa: ASYNC110
        await asyncio.sleep(0)  # there is no event to wait for: the screen publishes none for its cards


async def failure() -> Tracer:
    """A 429 from the server to the card that says when it is tried again."""
    tracer = Tracer()

    async def act(app: HandrailApp, session: Session) -> None:
        await card(app)
        tracer.stop()

    await on_screen([error(*LIMITED)], lambda number: tracer.start(), act)
    return tracer


async def answer() -> Tracer:
    """`Session.answer` to the request that carries the answer to the model."""
    tracer = Tracer()
    arrived = asyncio.Event()

    def heard(number: int) -> None:
        if number == 2:
            tracer.stop()
            arrived.set()

    async def act(app: HandrailApp, session: Session) -> None:
        questions: list[str] = []
        session.listen(lambda event: isinstance(event, ev.HumanRequested) and questions.append(event.id))
        await card(app)
        tracer.start()
        session.answer(questions[0] if questions else "q1", "resolved", "Signed in.")
        await arrived.wait()

    said = stream({"content": "Done."}, "stop")
    await on_screen([stream({"tool_calls": [ASKS]}, "tool_calls"), said], heard, act)
    return tracer


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="print the files")
    parser.add_argument(
        "--check", action="store_true", help="exit with 1 when a journey enters too many files"
    )
    options = parser.parse_args()
    failed, answered = asyncio.run(failure()), asyncio.run(answer())
    for name, tracer in (("failure to card", failed), ("answer to request", answered)):
        sys.stdout.write(f"{name}: {len(tracer.files)} files, {tracer.core} of them in the library\n")
        if options.list:
            sys.stdout.writelines(f"  {Path(file).relative_to(ROOT)}\n" for file in sorted(tracer.files))
    too_long = len(failed.files) > FAILURE or failed.core > FAILURE_CORE or len(answered.files) > ANSWER
    return int(options.check and too_long)


if __name__ == "__main__":
    sys.exit(main())
