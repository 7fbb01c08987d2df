"""The task of a run: the prompt, and piped input as context."""

from __future__ import annotations

import os
import stat
import sys
import threading
from dataclasses import dataclass
from typing import Final

import click

from handrail.messages import clean
from handrail_tui.lines import faults

LONGEST: Final = 10_000_000
"""Limit of piped input in bytes; more than any model reads."""

_PATIENCE_S: Final = 3.0


@dataclass(frozen=True, slots=True)
class Task:
    """The prompt, and piped input as context."""

    prompt: str
    context: str | None = None


def read_task(prompt: str | None) -> Task:
    """The task of a command line: `PROMPT`, `-` for a prompt from stdin, and piped input beside a prompt as context.

    Raises click.UsageError when there is no prompt.
    """
    if prompt is not None and prompt != "-":
        piped = clean(_stdin()) if _is_piped() else ""
        return Task(_said(clean(prompt)), piped if piped.strip() else None)
    if prompt is None and sys.stdin.isatty():
        raise click.UsageError('There is no prompt. Give one: "…", or - to read it from stdin.')
    return Task(_said(clean(_stdin())))


def _said(prompt: str) -> str:
    if not prompt.strip():
        raise click.UsageError('The prompt is empty. Give one: "…", or - to read it from stdin.')
    return prompt


def _is_piped() -> bool:
    """Whether stdin is a pipe, a file or a socket."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError, AttributeError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


def _stdin() -> str:
    """All of stdin as text. After a while a hint says that it waits: some callers leave stdin open by mistake."""
    hint = threading.Timer(
        _PATIENCE_S, faults.say, ["waiting for the end of stdin (use </dev/null for no input) …"]
    )
    hint.daemon = True
    hint.start()
    try:
        data = sys.stdin.buffer.read(LONGEST + 1)
    finally:
        hint.cancel()
    if len(data) > LONGEST:
        raise click.UsageError(
            f"stdin is larger than {LONGEST // 1_000_000} MB. Save it to a file and name the file in the prompt."
        )
    return data.decode("utf-8", "replace")
