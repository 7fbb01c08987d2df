"""Commands held in their folder by the operating system: bubblewrap on Linux, sandbox-exec on macOS.

In it a command may write the working folder and a temporary folder of its own, and nothing else. It may read what the
person may read, except Handrail's own state and the sockets of running programs. Without `network` it reaches no
other machine. On Linux everything that it started ends with it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal, TypeAlias

import platformdirs

from handrail.errors import ConfigError

SandboxMode: TypeAlias = Literal["off", "on", "network"]
"""off: none. on: without a network. network: with one."""

UNPROTECTED: Final = "commands may read, change and send whatever you can"
"""What holds without a sandbox, in words for people."""

_TRIAL_S: Final = 10.0
_PROFILE: Final = """\
(version 1)
(allow default)
(deny file-write*)
(allow file-write* (subpath (param "FOLDER")) (subpath (param "TEMP")) (literal "/dev/null") (literal "/dev/tty"))
(deny file-read* file-write* (subpath (param "STATE")))
"""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A way to hold commands that was tried and works. `program` is bwrap or sandbox-exec."""

    program: str
    network: bool = False

    @property
    def words(self) -> str:
        """What it does, for people."""
        return f"sandbox: only the working folder is writable, {'with' if self.network else 'no'} network"

    def argv(self, command: Sequence[str], folder: Path) -> list[str]:
        """`command`, held in `folder`."""
        make = _bubblewrap if Path(self.program).name == "bwrap" else _seatbelt
        return [self.program, *make(folder, self.network), *command]


def find_sandbox(mode: SandboxMode) -> Sandbox | None:
    """The sandbox for `mode`; None for off. Raises ConfigError when this system has none that works."""
    if mode == "off":
        return None
    program, problem = _tried()
    if program is None:
        raise ConfigError(f'there is no sandbox: {problem}. Without one (sandbox = "off"), {UNPROTECTED}.')
    return Sandbox(program, mode == "network")


def problem_of() -> str | None:
    """Why this system has no sandbox, or None when it has one."""
    return _tried()[1] or None


@cache
def _tried() -> tuple[str | None, str]:
    """The program, if it works here; otherwise what is wrong. In a container it is often there and not allowed."""
    name = "sandbox-exec" if sys.platform == "darwin" else "bwrap"
    program = shutil.which(name)
    if program is None:
        how = "it comes with macOS" if sys.platform == "darwin" else "install bubblewrap"
        return None, f"{name} was not found; {how}"
    trial = Sandbox(program).argv(["/bin/sh", "-c", "exit 0"], Path("/"))
    try:
        done = subprocess.run(trial, capture_output=True, timeout=_TRIAL_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, f"{name} does not work here ({error})"
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        return None, f"{name} does not work here ({said[-1] if said else done.returncode})"
    return program, ""


def _state() -> Path:
    return Path(platformdirs.user_state_dir("handrail", appauthor=False))


def _bubblewrap(folder: Path, network: bool) -> list[str]:
    state = _state()
    hidden = [place for place in (Path("/tmp"), Path("/run"), Path("/dev/shm"), state) if place.is_dir()]
    options = ["--die-with-parent", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--cap-drop", "ALL"]
    if not network:
        options.append("--unshare-net")
    options += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    for place in hidden:
        if place.is_symlink():
            continue
        options += ["--tmpfs", str(place)]
    if network:  # name resolution: /etc/resolv.conf is often a symlink to here
        options += ["--ro-bind-try", "/run/systemd/resolve", "/run/systemd/resolve"]
    if folder != Path("/"):
        options += ["--bind", str(folder), str(folder), "--chdir", str(folder)]
    return [*options, "--setenv", "TMPDIR", "/tmp", "--"]


def _seatbelt(folder: Path, network: bool) -> list[str]:
    profile = _PROFILE if network else f"{_PROFILE}(deny network*)\n"
    places = {"FOLDER": folder, "TEMP": Path("/private/tmp"), "STATE": _state()}
    given = [word for name, place in places.items() for word in ("-D", f"{name}={place}")]
    return ["-p", profile, *given]
