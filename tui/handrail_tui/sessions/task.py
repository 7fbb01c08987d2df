"""What a run is asked: the prompt, and piped input beside it."""

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
"""Bytes of piped input that are taken; more than any model reads."""

_PATIENCE_S: Final = 3.0


@dataclass(frozen=True, slots=True)
class Task:
    """The prompt, and the input that goes with it as context."""

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
        raise click.UsageError('There is no prompt. Say what to do: "…", or - to read it from stdin.')
    return Task(_said(clean(_stdin())))


def _said(prompt: str) -> str:
    if not prompt.strip():
        raise click.UsageError('The prompt is empty. Say what to do: "…", or - to read it from stdin.')
    return prompt


def _is_piped() -> bool:
    """Whether stdin is a pipe, a file or a socket: something that was put there to be read."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError, AttributeError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


def _stdin() -> str:
    """All of stdin as text. A wait for its end is said: some callers leave it open by mistake."""
    hint = threading.Timer(_PATIENCE_S, faults.say, ["reading stdin until it ends (</dev/null gives none) …"])
    hint.daemon = True
    hint.start()
    try:
        data = sys.stdin.buffer.read(LONGEST + 1)
    finally:
        hint.cancel()
    if len(data) > LONGEST:
        raise click.UsageError(
            f"There are more than {LONGEST // 1_000_000} MB on stdin. Save them to a file and name it in the prompt."
        )
    return data.decode("utf-8", "replace")
