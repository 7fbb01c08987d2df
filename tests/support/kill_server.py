"""Runs the real program again and again in forked children, each of which may kill itself at a byte of its journal.

A script: it reads one JSON object a line, `{"args", "home", "folder", "kill_at"}`, runs `handrail ARGS` in a child
and answers `{"code", "signal"}`. Only the model and the time are not the real ones:
the model's replies are written down below, and waits take no time.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from runs import call, fails, says, submit

import handrail.clock
import handrail.session.journal as journals
from handrail import events as ev
from handrail.clock import EPOCH, Clock, VirtualClock
from handrail.loop.request import is_rebuilt
from handrail.providers import catalog
from handrail.providers.base import ModelInfo, Provider
from handrail.providers.scripted import ScriptedProvider, ScriptedReply
from handrail.session.records import read_journal
from handrail.session.store import Store
from handrail_tui.main import main

LONGEST_S = 20
"""Seconds that one life may take: a life that hangs ends as a failure, not as a test without an end."""

STORY: Sequence[ScriptedReply] = [
    says(
        "I look around first, and note it.",
        call("read", path="notes.txt"),
        call("bash", command="echo one >> side.txt"),
        takes_s=3,
    ),
    says("I begin with the first half of it, and then", stop="length", takes_s=4),
    says("", call("ask_human", kind="captcha", needed="Solve it."), call("read", path="notes.txt")),
    fails("overloaded", 503),
    fails("You have hit your usage limit. Try again in 42 min.", 429),
    says("", submit("five"), call("bash", command="echo two >> side.txt")),
    says("", submit(5)),
]


class _Os:
    """What the journal sees of `os`: its writes stop at a byte, and the process with them."""

    def __init__(self, kill_at: int | None) -> None:
        self._kill_at = kill_at

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def write(self, fd: int, data: bytes) -> int:
        at = os.fstat(fd).st_size
        if self._kill_at is not None and at < self._kill_at <= at + len(data):
            os.write(fd, data[: self._kill_at - at])
            os.kill(os.getpid(), signal.SIGKILL)
        return os.write(fd, data)


def _past() -> list[ev.Event]:
    """What the one session of this home has on record."""
    found = Store().list()
    return list(read_journal(found[0].path).events()) if found else []


def _replies_used(past: list[ev.Event]) -> int:
    """Replies that were heard to their end; one that the program did not live to hear is asked for again."""
    return sum(isinstance(e, ev.MessageFinished) and not is_rebuilt(e.message) for e in past)


def _live(job: dict[str, Any]) -> int:
    """One life of the program. Whoever calls this is never the same again: it belongs into a child."""
    os.chdir(job["folder"])
    os.environ["XDG_STATE_HOME"] = os.environ["XDG_CONFIG_HOME"] = job["home"]
    out = os.open(Path(job["home"]) / "out.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(out, 1)
    os.dup2(out, 2)
    past = _past()
    start = past[-1].at if past else EPOCH
    replies = STORY[_replies_used(past) :]

    def provider(resolved: Any, clock: Clock) -> Provider:
        return ScriptedProvider(replies, clock, ModelInfo("my/model"))

    handrail.clock.RealClock = lambda: VirtualClock(start)  # type: ignore[misc, assignment]
    catalog.make_provider = provider  # type: ignore[assignment]
    journals.os = _Os(job["kill_at"])  # type: ignore[assignment]
    return main(job["args"])


def _warm_up(job: dict[str, Any]) -> None:
    """Live a life here, so that all that is imported and built on first use is there for every child."""
    kept = [os.dup(fd) for fd in (0, 1, 2)]
    _live(job)
    sys.stdout.flush()
    for fd, copy in enumerate(kept):
        os.dup2(copy, fd)
    journals.os = os
    gc.collect()
    gc.freeze()


def serve() -> None:
    """Answer jobs until stdin ends; the first one is a life to get warm in, and is not answered."""
    _warm_up(json.loads(sys.stdin.readline()))
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            code = 70
            try:
                signal.alarm(LONGEST_S)
                code = _live(json.loads(line))
                sys.stdout.flush()
            except BaseException:
                traceback.print_exc()
                sys.stderr.flush()
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        signalled = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
        sys.stdout.write(json.dumps({"code": code, "signal": signalled}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()
