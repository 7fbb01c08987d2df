"""Hooks: a person's own commands, run when a run needs them, waits for a limit, or has ended.

A hook gets the event as one JSON line on stdin, and `HANDRAIL_*` variables; its environment has no provider keys.
It never blocks the run, and is killed when it takes too long. A hook that fails is reported as a notice.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from handrail import events as ev
from handrail.settings import Hooks
from handrail.tools.environ import scrubbed_environment
from handrail_tui.lines.json_lines import to_json
from handrail_tui.view.text import one_line

LIMIT_S: Final = 30.0
"""Time limit of a hook, in real seconds."""


class HookRunner:
    """A listener that runs the commands of `hooks` in the folder `cwd`; `report(words)` is called with what went
    wrong, in the event loop, and only before `run_finished`."""

    def __init__(
        self,
        hooks: Hooks,
        *,
        session: str,
        cwd: Path,
        report: Callable[[str], None],
        limit_s: float = LIMIT_S,
    ) -> None:
        self._hooks, self._session, self._cwd, self._limit_s = hooks, session, cwd, limit_s
        self._report = report
        self._over = False
        self._threads: list[threading.Thread] = []

    def __call__(self, event: ev.Event) -> None:
        if isinstance(event, ev.RunStarted):
            self._over = False
        name = _hook_of(event)
        self._over = self._over or isinstance(event, ev.RunFinished | ev.RunInterrupted)
        command = getattr(self._hooks, name) if name else None
        if not command:
            return
        loop = asyncio.get_running_loop()
        work = threading.Thread(target=self._run, args=(name, command, event, loop), name=f"hook {name}")
        self._threads = [t for t in self._threads if t.is_alive()] + [work]
        work.start()

    def join(self) -> None:
        """Wait for all hooks. The interpreter does the same at exit."""
        for thread in self._threads:
            thread.join()

    def _run(self, name: str, command: str, event: ev.Event, loop: asyncio.AbstractEventLoop) -> None:
        words = run_hook(command, to_json(event), self._environment(name, event), self._cwd, self._limit_s)
        if words:
            with suppress(RuntimeError):  # the loop is closed: nobody to report to
                loop.call_soon_threadsafe(self._failed, f"the hook {name} {words}")

    def _failed(self, words: str) -> None:
        if not self._over:
            self._report(words)

    def _environment(self, name: str, event: ev.Event) -> dict[str, str]:
        told = {
            "HANDRAIL_HOOK": name,
            "HANDRAIL_EVENT": event.type,
            "HANDRAIL_SESSION": self._session,
            "HANDRAIL_FOLDER": str(self._cwd),
            "HANDRAIL_TEXT": one_line(_text(event), 500),
        }
        return {**scrubbed_environment(os.environ), **told}


def _hook_of(event: ev.Event) -> str:
    match event:
        case ev.HumanRequested() | ev.ApprovalRequested():
            return "on_needs_you"
        case ev.WaitStarted(decision="wait"):
            return "on_wait"
        case ev.RunFinished():
            return "on_finish"
        case _:
            return ""


def _text(event: ev.Event) -> str:
    """The event in a few words, for a command that only shows a message."""
    match event:
        case ev.HumanRequested():
            return event.needed
        case ev.ApprovalRequested():
            return f"{event.tool} {event.title}"
        case ev.WaitStarted():
            return event.words
        case ev.RunFinished():
            return event.outcome
        case _:
            return ""


def run_hook(command: str, line: str, env: Mapping[str, str], cwd: Path, limit_s: float) -> str:
    """Run one command, or kill it and all it started at the time limit. Returns what went wrong, or nothing."""
    try:
        child = subprocess.Popen(
            command,
            shell=True,
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        return f"could not start: {error.strerror}"
    try:
        _, errors = child.communicate(line.encode() + b"\n", timeout=limit_s)
    except subprocess.TimeoutExpired:
        _end(child)
        return f"took longer than {limit_s:g} s and was killed"
    except BrokenPipeError:  # it did not read its input
        errors = b""
    if child.returncode == 0:
        return ""
    said = one_line(errors.decode("utf-8", "replace"), 300)
    return f"failed with code {child.returncode}" + (f": {said}" if said else "")


def _end(child: subprocess.Popen[bytes]) -> None:
    """Kill a hook and its process group."""
    with suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(child.pid, signal.SIGKILL)
        else:
            child.kill()
    child.communicate()
