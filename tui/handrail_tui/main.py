"""The entry point of `handrail`. The version is answered before anything else is imported."""

from __future__ import annotations

import os
import sys


def main(args: list[str] | None = None) -> int:
    """Run the program with `args` (default: those of the process) and return its exit code."""
    if args is None:
        args = sys.argv[1:]
    if args in (["--version"], ["-V"]):
        from handrail import __version__

        sys.stdout.write(f"handrail {__version__}\n")
        return 0
    # Textual reads this when it is imported: a lone Esc acts after 25 ms instead of 100.
    os.environ.setdefault("ESCDELAY", "25")
    from handrail_tui.cli import run

    return run(args)
