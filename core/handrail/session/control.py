"""Controlling a run from another process, over a local channel in the session's folder (rules H4, J5).

The process that runs a stored session listens on a Unix socket (a loopback port where there are none) while a run
lasts. `control.json` beside the journal holds the address and a token; only the user may read it. A request is one
line of JSON, and so is the reply:

    {"token": "…", "do": "answer", "id": null, "how": "answered", "text": "4711"}     {"ok": true, "id": "q1", …}

A channel left behind by a killed program is detected and removed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import socket
import stat
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from handrail import events as ev
from handrail.errors import ConfigError
from handrail.forms import FormError, described
from handrail.messages import clean
from handrail.session._files import read_regular
from handrail.session.person import PersonCommands
from handrail.session.who import named, this_terminal, user_of

ADDRESS: Final = "control.json"
SOCKET: Final = "control.sock"
LONGEST: Final = 1_000_000
"""The longest request in bytes. Longer ones are refused."""

_LONGEST_PATH: Final = 100
"""The longest socket path in bytes that every system accepts."""

_LONGEST_ADDRESS: Final = 10_000
_FOLDER: Final = "handrail-"

_MOST_CALLERS: Final = 32
"""Connections at once. When there are more the oldest one is closed."""

_PATIENCE_S: Final = 10.0
"""Real seconds a caller waits for a reply. A healthy run replies at once."""


class NotReachable(ConfigError):
    """No run of this session is listening."""


class Refused(ConfigError):
    """The run refused the request and says why."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a run listens: a socket path or a loopback port."""

    token: str
    path: str = ""
    port: int = 0

    def connect(self) -> socket.socket:
        """A connection. Raises OSError."""
        if self.path:
            made = socket.socket(socket.AF_UNIX)
            target: Any = self.path
        else:
            made, target = socket.socket(socket.AF_INET), ("127.0.0.1", self.port)
        made.settimeout(_PATIENCE_S)
        try:
            made.connect(target)
        except BaseException:
            made.close()
            raise
        return made


class Control:
    """A listener that opens the channel when a run begins and closes it when the run ends.

    It has no state of its own: a request becomes a command to the session, and replies are read from the session's
    state. If the channel cannot be opened the run continues, with a notice.
    """

    def __init__(self, session: PersonCommands, folder: Path) -> None:
        self._session, self._folder = session, folder
        self._address: Address | None = None
        self._server: asyncio.Task[asyncio.Server] | None = None
        self._calls: dict[asyncio.Task[None], None] = {}  # in the order in which they came

    def __call__(self, event: ev.Event) -> None:
        if isinstance(event, ev.RunStarted):
            self._open()
        elif isinstance(event, ev.RunFinished | ev.RunInterrupted):
            self.close()

    def _open(self) -> None:
        if self._address is not None:
            return
        _clear(self._folder)
        try:
            listening, self._address = _listen(self._folder)
        except OSError as error:
            words = f"this run cannot be controlled from another terminal: {error.strerror or error}"
            self._session.notice(words, level="warning")
            return
        start = asyncio.start_unix_server if self._address.path else asyncio.start_server
        serving: Any = start(self._serve, sock=listening, limit=LONGEST)
        self._server = asyncio.ensure_future(serving)

    def close(self) -> None:
        """Stop listening. Safe to call twice."""
        if self._address is None:
            return
        self._address = None
        _clear(self._folder)
        server, self._server = self._server, None
        if server is not None:
            server.add_done_callback(_end_server)
        for call in self._calls:
            call.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._calls[task] = None
        if len(self._calls) > _MOST_CALLERS:
            next(iter(self._calls)).cancel()
        try:
            async with asyncio.timeout(_PATIENCE_S):
                with self._session.clock.busy():
                    answer = self._answer(await reader.readline())
                    writer.write(json.dumps(answer).encode() + b"\n")
                    await writer.drain()
        except (OSError, ValueError, TimeoutError, asyncio.CancelledError):
            # The caller left or sent too much, or the run has ended: there is nobody to reply to.
            return
        finally:
            self._calls.pop(task, None)
            writer.close()

    def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            asked = json.loads(line)
        except (ValueError, RecursionError):
            asked = None
        address = self._address
        if address is None or not isinstance(asked, dict):
            return {"ok": False, "error": "this is not a request"}
        token = str(asked.get("token")).encode("utf-8", "surrogatepass")
        if not secrets.compare_digest(token, address.token.encode()):
            return {"ok": False, "error": "the token is wrong"}
        return answer(self._session, asked)


def answer(session: PersonCommands, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Carry out a request on a session and return the reply."""
    do = _DEEDS.get(str(asked.get("do")))
    if do is None:
        return {"ok": False, "error": f"it may be: {', '.join(_DEEDS)}"}
    try:
        return {"ok": True, **do(session, asked)}
    except Refused as error:
        return {"ok": False, "error": str(error)}


def _status(session: PersonCommands, asked: Mapping[str, Any]) -> dict[str, Any]:
    state = session.state
    questions = [
        {
            "id": q.id,
            "kind": q.kind,
            "needed": q.needed,
            "where": q.where,
            "secret": q.secret,
            "fields": described(q.fields),
        }
        for q in state.questions.values()
    ]
    approvals = [
        {"id": a.id, "tool": a.tool, "title": a.title, "why": a.why, "pattern": a.pattern, "diff": a.diff}
        for a in state.approvals.values()
    ]
    return {
        "session": session.id,
        "turn": state.requests,
        "until": state.wait.until if state.wait is not None else None,
        "questions": questions,
        "approvals": approvals,
    }


def _do_answer(session: PersonCommands, asked: Mapping[str, Any]) -> dict[str, Any]:
    id = _chosen(session.state.questions, asked, "question")
    how, text = asked.get("how"), str(asked.get("text") or "")
    if how not in ("resolved", "answered", "declined", "cancelled"):
        raise Refused(f"a question cannot be answered with {how!r}")
    secret = session.state.questions[id].secret and how == "answered"
    try:
        taken = session.answer(id, how, text, secret=secret, by=_who(asked))
    except FormError as error:
        fields = "\n".join(described(session.state.questions[id].fields))
        raise Refused(f"the answer does not fit: {error}\n{fields}") from None
    if not taken:
        raise Refused(f"the question {id} is no longer open")
    return {"id": id}


def _do_approve(session: PersonCommands, asked: Mapping[str, Any]) -> dict[str, Any]:
    approvals = session.state.approvals
    id = _chosen(approvals, asked, "approval")
    how: Any = asked.get("how")
    if how == "session" and approvals[id].pattern is None:
        raise Refused("this call can only be allowed once")
    title = f"{approvals[id].tool} {approvals[id].title}".strip()
    try:
        open_still = session.approve(id, how, str(asked.get("text") or ""), by=_who(asked))
    except ValueError as error:  # an unknown word: the call is denied
        raise Refused(f"{error}. The call was denied") from None
    if not open_still:
        raise Refused(f"the approval {id} is no longer open")
    return {"id": id, "title": title}


def _who(asked: Mapping[str, Any]) -> str:
    """Who sent a request. Only this user knows the token; the terminal is what the sender says."""
    return named(user_of(), str(asked.get("terminal") or "another process")[:80])


def _do_stop(session: PersonCommands, asked: Mapping[str, Any]) -> dict[str, Any]:
    session.stop()
    return {}


def _do_steer(session: PersonCommands, asked: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": session.steer(_words(asked))}


def _do_follow_up(session: PersonCommands, asked: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": session.follow_up(_words(asked))}


def _do_skip(session: PersonCommands, asked: Mapping[str, Any]) -> dict[str, Any]:
    _wait_of(session)
    session.skip_wait()
    return {}


def _do_later(session: PersonCommands, asked: Mapping[str, Any]) -> dict[str, Any]:
    until = asked.get("until")
    _wait_of(session)
    if isinstance(until, bool) or not isinstance(until, (int, float)) or not session.postpone_wait(until):
        raise Refused("a wait can only be postponed to a moment that has not passed")
    return {"until": until}


def _words(asked: Mapping[str, Any]) -> str:
    text = asked.get("text")
    if not isinstance(text, str) or not text.strip():
        raise Refused("there is no text to send")
    return text


def _wait_of(session: PersonCommands) -> None:
    """Raises Refused when the run waits for no moment."""
    if session.state.wait is None:
        raise Refused("it is not waiting for a limit or a retry")


def _chosen(open_ones: Mapping[str, Any], asked: Mapping[str, Any], what: str) -> str:
    """The question or approval with that id; without an id, the oldest."""
    id = asked.get("id")
    if not open_ones:
        raise Refused(f"no {what} is open")
    if id is None:
        return next(iter(open_ones))
    if id not in open_ones:
        raise Refused(f"there is no open {what} {id!r}; open: {', '.join(open_ones)}")
    return str(id)


_DEEDS: Final[dict[str, Callable[[PersonCommands, Mapping[str, Any]], dict[str, Any]]]] = {
    "status": _status,
    "answer": _do_answer,
    "approve": _do_approve,
    "stop": _do_stop,
    "steer": _do_steer,
    "follow_up": _do_follow_up,
    "skip": _do_skip,
    "later": _do_later,
}


# The caller's side --------------------------------------------------------------------------------------------------


def call(folder: Path, do: str, **said: Any) -> dict[str, Any]:
    """Send a request to the run of the session in `folder`. Blocking.

    Raises NotReachable when no run listens there, Refused with the run's reason when it refuses.
    """
    address = _read(folder)
    said = {"terminal": this_terminal(), **said, "token": address.token, "do": do}
    request = json.dumps(said).encode() + b"\n"
    try:
        with address.connect() as connection, connection.makefile("rb") as answers:
            connection.sendall(request)
            line = answers.readline(LONGEST)
        told = json.loads(line)
    except (OSError, ValueError) as error:
        raise NotReachable(f"no run of this session answers: {error or type(error).__name__}") from None
    if not isinstance(told, dict) or not told.get("ok"):
        words = told.get("error") if isinstance(told, dict) else None
        raise Refused(str(words or "the run did not understand the request"))
    return told


def _read(folder: Path) -> Address:
    try:
        with read_regular(folder / ADDRESS) as file:
            said = json.loads(file.read(_LONGEST_ADDRESS))
        address = Address(str(said["token"]), str(said.get("path", "")), int(said.get("port", 0)))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise NotReachable("no run of this session is listening") from None
    if not address.path and hasattr(socket, "AF_UNIX"):  # a port is only used where there are no such sockets
        raise NotReachable("no run of this session is listening")
    if address.path and not _is_ours(Path(address.path), folder):
        raise NotReachable(
            f"{folder / ADDRESS} names a place that is not a run's: {clean(address.path)[:200]!r}"
        )
    return address


def _is_ours(path: Path, folder: Path) -> bool:
    """Whether a run of the session in `folder` may listen at `path`. The file that says so may come from elsewhere.

    That is a socket of this user: in the folder, or in a folder of its own in the folder for temporary files.
    """
    if path not in (folder / SOCKET, Path(tempfile.gettempdir()) / path.parent.name / SOCKET):
        return False
    if path.parent != folder and not path.parent.name.startswith(_FOLDER):
        return False
    try:
        there = path.lstat()
        return stat.S_ISSOCK(there.st_mode) and there.st_uid == os.getuid() and not path.parent.is_symlink()
    except OSError:
        return False


def _listen(folder: Path) -> tuple[socket.socket, Address]:
    """Open a listening socket and write its address to disk. Raises OSError."""
    listening = socket.socket(socket.AF_UNIX if hasattr(socket, "AF_UNIX") else socket.AF_INET)
    try:
        address = _bind(listening, folder, secrets.token_hex(16))
        listening.listen(128)
        listening.setblocking(False)
        fd = os.open(folder / ADDRESS, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            json.dump({"token": address.token, "path": address.path, "port": address.port}, file)
    except OSError:
        listening.close()
        raise
    return listening, address


def _bind(listening: socket.socket, folder: Path, token: str) -> Address:
    """Choose the socket's path: in the folder or, if that path is too long, in a new folder with mode 0700."""
    if listening.family == socket.AF_INET:
        listening.bind(("127.0.0.1", 0))
        return Address(token, port=listening.getsockname()[1])
    path = folder / SOCKET
    if len(os.fsencode(path)) > _LONGEST_PATH:
        path = Path(tempfile.mkdtemp(prefix=_FOLDER)) / SOCKET
    listening.bind(str(path))
    path.chmod(0o600)
    return Address(token, path=str(path))


def _clear(folder: Path) -> None:
    """Remove a channel's files. Only the process that holds the session's lock may do this."""
    with contextlib.suppress(NotReachable, OSError):
        path = Path(_read(folder).path)
        if path.name == SOCKET and path.parent != folder:  # `_read` has checked that it is a socket of ours
            path.unlink(missing_ok=True)
            path.parent.rmdir()  # an empty folder, or nothing
    for name in (ADDRESS, SOCKET):
        with contextlib.suppress(OSError):
            (folder / name).unlink(missing_ok=True)


def _end_server(task: asyncio.Task[asyncio.Server]) -> None:
    if not task.cancelled() and task.exception() is None:
        task.result().close()
