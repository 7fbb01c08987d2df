"""Error messages on stderr: what, where, what to do, never a traceback."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from datetime import datetime
from pathlib import Path

import click

from handrail_tui.lines.exit_codes import FAULT, READER_GONE, USAGE


def say(text: str) -> None:
    """Write `text` to stderr, safe for a terminal (rule L11). A closed stderr is ignored."""
    from handrail_tui.view.text import clean_for_terminal

    try:
        sys.stderr.write(clean_for_terminal(text) + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        pass


def usage(error: click.ClickException) -> int:
    """Report a wrong command, flag or argument; returns the exit code."""
    ctx = getattr(error, "ctx", None)
    path = ctx.command_path if ctx else "handrail"
    say(f"{path}: {error.format_message()}\nSee: {path} --help")
    return USAGE


def config(message: str) -> int:
    """Report a setting, a key or a file that a person can fix; returns the exit code."""
    say(f"handrail: {message}")
    return USAGE


def unexpected(error: BaseException) -> int:
    """Report a bug in Handrail: one line, and a file with the details; returns the exit code."""
    from handrail.mask import Masker, key_values
    from handrail.providers.catalog import key_variables
    from handrail.providers.keys import environment

    masker = Masker(key_values(environment(), key_variables()))
    what = masker.mask(f"{type(error).__name__}: {error}".splitlines()[0])[:300]
    details = masker.mask("".join(traceback.format_exception(error)))
    try:
        where = str(_write(details))
    except OSError as unwritable:
        where = f"no file: it could not be written ({unwritable})"
    say(
        f"handrail: unexpected error (a bug in Handrail): {what}\n"
        f"Details: {where}. Set HANDRAIL_DEBUG=1 to see them here."
    )
    return FAULT


def reader_went_away() -> int:
    """The reader of stdout has closed it (`| head`): end quietly, as other programs do; returns the exit code."""
    # The interpreter flushes stdout once more at exit; let it flush to /dev/null.
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 1)
    os.close(devnull)
    return READER_GONE


def _write(details: str) -> Path:
    """A private file with `details`, in the log folder, else in the folder for temporary files."""
    import platformdirs

    name = f"fault-{datetime.now():%Y%m%d-%H%M%S}-"
    folder: Path | None = platformdirs.user_log_path("handrail")
    try:
        assert folder is not None
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        folder = None
    handle, path = tempfile.mkstemp(".txt", name, folder)
    with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(details)
    return Path(path)
