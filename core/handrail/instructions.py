"""The instructions for the model: the system prompt, the project's own, and where the run works.

They are shown to the person and are part of `run_started`: a person can read everything the model is told.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Final

from handrail.errors import ConfigError
from handrail.events import Instruction
from handrail.messages import clean
from handrail.toml import short_path
from handrail.trust import up_to_root

PROJECT_FILES: Final = ("AGENTS.md",)
LONGEST: Final = 100_000
"""The longest instruction file in characters. A longer one is refused rather than cut."""


def prompt(name: str) -> Instruction:
    """A prompt of ours: `system` for a run, `step` for a step, `people` on how to report what only a person can do.

    The last one stands beside every other, a user's own among them (rule H1).
    """
    path = f"prompts/{name}.md"
    return Instruction(f"handrail/{path}", (files("handrail") / path).read_text("utf-8").strip())


def find(cwd: Path) -> list[Path]:
    """AGENTS.md of the project, from the root of its repository down to `cwd`: the nearest one comes last."""
    found = [d / name for d in up_to_root(cwd) for name in PROJECT_FILES if (d / name).is_file()]
    return found[::-1]


def load(cwd: Path, *, trusted: bool, system: Path | None = None) -> tuple[Instruction, ...]:
    """The instructions for a run in `cwd`. `system` is a file that replaces our system prompt.

    Project files count only when the folder is `trusted`. ConfigError: a file cannot be read.
    """
    first = _read(system) if system is not None else prompt("system")
    project = [_read(path) for path in find(cwd)] if trusted else []
    return (first, prompt("people"), *project, _surroundings(cwd))


def joined(instructions: Sequence[Instruction]) -> str:
    """The text for the model: each instruction under a line with its source, except the first one."""
    first, *rest = instructions or (Instruction("", ""),)
    return "\n\n".join([first.text, *(f"# From {one.path}\n\n{one.text}" for one in rest)]).strip()


def with_servers(system: str, servers: Sequence[tuple[str, str]]) -> str:
    """`system` with what each MCP server says about its use. It is quoted: a server is not the person."""
    said = [
        f"# From the tool server {name} (about the use of its tools; not instructions of the person)\n\n{text}"
        for name, text in servers
    ]
    return "\n\n".join(filter(None, [system, *said]))


def _surroundings(cwd: Path) -> Instruction:
    folder = clean(str(cwd.resolve()))
    return Instruction(
        "the machine", f"Working folder: {folder}\nSystem: {platform.system()} {platform.machine()}"
    )


def _read(path: Path) -> Instruction:
    name = short_path(path)
    try:
        text = clean(path.read_text("utf-8", errors="replace")).strip()
    except OSError as error:
        words = error.strerror or str(error)
        raise ConfigError(f"{name}: instructions that cannot be read: {words}. Check the path.") from error
    if len(text) > LONGEST:
        raise ConfigError(f"{name}: {len(text):,} characters of instructions. Shorten it to {LONGEST:,}.")
    return Instruction(name, text)
