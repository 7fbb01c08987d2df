"""The entry point of `handrail`. The version is answered before anything else is imported."""

from __future__ import annotations

import os
import sys


def main(args: list[str] | None = None) -> int:
    """Run the program with `args` (default: those of the process) and return its exit code."""
    _open_standard_streams()
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


def _open_standard_streams() -> None:
    """Put the null device where the caller closed a standard stream (`<&-`, `>&-`).

    Python sets such a stream to None. The number of a closed one would also go to the next file that is opened, such
    as a journal, and what is printed would land in it.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123 - open as long as the program; `pathlib` costs start-up
