"""The process above a command: it stays until we have seen what the command left running (rule L9).

A process that leaves its session and clears its environment belongs to nobody once its parent has ended. On Linux the
keeper adopts such processes (PR_SET_CHILD_SUBREAPER), so that they are found below it for as long as it lives.

It says the command's process id and, when that has ended, its exit code, negative for a signal, each on a line of its
stdout. Its stderr is the command's output. It ends when its stdin is closed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

ADOPTS: Final = sys.platform == "linux"
"""Whether every process that a command started can be found."""

# A program of its own and not a `preexec_fn`: forking a program with threads is not safe. Python ignores SIGPIPE and
# SIGXFSZ, and what it starts would too.
_PROGRAM: Final = """\
import ctypes, os, signal, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
nothing = os.open(os.devnull, os.O_RDWR)
command = os.fork()
if not command:
    try:
        os.setsid()
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        os.execv(sys.argv[1], sys.argv[1:])
    finally:
        os._exit(127)
os.dup2(nothing, 2)
os.write(1, b"%d\\n" % command)
ended = 0
while ended != command:
    ended, status = os.wait()
os.write(1, b"%d\\n" % os.waitstatus_to_exitcode(status))
os.read(0, 1)
"""


def keeper(command: Sequence[str]) -> Sequence[str]:
    """The arguments that run `command` with a keeper above it."""
    return [sys.executable, "-I", "-S", "-c", _PROGRAM, *command]
