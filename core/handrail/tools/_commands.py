"""What «always this session» would allow for a shell command (rule H5): this exact command, or its
subcommand."""

from __future__ import annotations

import re
from typing import Final

_SUBCOMMANDS: Final = {
    "git": "add blame branch commit diff fetch log ls-files merge pull push restore rev-parse show stash status switch "
    "tag",
    "cargo": "bench build check clippy doc fmt test tree",
    "go": "build doc fmt list test vet",
    "npm": "ci install ls outdated test view",
    "pnpm": "install list outdated test",
    "yarn": "install list outdated test",
    "pip": "check freeze install list show",
    "uv": "add lock sync tree",
    "docker": "images inspect logs ps",
    "kubectl": "describe get logs",
}
_RUN: Final = ("npm", "pnpm", "yarn")
"""Programs whose `run NAME` runs a script of the project."""

_PLAIN: Final = re.compile(r"""(?:[\w ./=:@%+,~^-]|'[^'\n]*'|"[^"$`\\!\n]*")*""", re.ASCII)
"""A command without operators, expansions, redirections, patterns, comments or line breaks."""

_NAME: Final = re.compile(r"[a-z][a-z0-9:_-]*")


def pattern_of(command: str) -> str:
    """`bash: git diff *` if its arguments do not matter, else `bash exactly: …`.

    The two forms begin differently, so that no command can look like a pattern.
    """
    if _PLAIN.fullmatch(command):
        words = command.split()
        if len(words) >= 2 and words[1] in _SUBCOMMANDS.get(words[0], "").split():
            return f"bash: {words[0]} {words[1]} *"
        if len(words) >= 3 and words[0] in _RUN and words[1] == "run" and _NAME.fullmatch(words[2]):
            return f"bash: {words[0]} run {words[2]} *"
    return f"bash exactly: {command}"
