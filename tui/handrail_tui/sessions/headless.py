"""A run without a screen: lines out, signals and typed answers in."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from handrail import events as ev
from handrail_tui.lines import faults
from handrail_tui.lines.json_lines import JsonLines, Out
from handrail_tui.lines.plain import Plain
from handrail_tui.lines.prompts import Prompter, TypedLines
from handrail_tui.sessions import signals

if TYPE_CHECKING:
    from handrail.events import RunEnded
    from handrail_tui.sessions.prepare import PreparedSession


@dataclass(frozen=True, slots=True)
class OutputMode:
    """How a run prints: JSON or text, to which stream, and whether a person at this terminal is asked."""

    json: bool
    stream: TextIO
    asks: bool

    @classmethod
    def of(cls, *, json: bool, stream: TextIO) -> OutputMode:
        """Questions are asked only in text mode with a terminal for both input and output (rules H4, H5)."""
        return cls(json, stream, asks=not json and stream.isatty() and sys.stdin.isatty())

    @staticmethod
    def on_screen() -> bool:
        """Whether there is a terminal for the screen: keys come from stdin, and Textual draws on stderr."""
        return sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()

    def listener(self, out: Out) -> ev.Listener:
        """The listener that writes the events to `out`."""
        if self.json:
            return JsonLines(out)
        return Plain(out, color=out.terminal and not os.environ.get("NO_COLOR"))


async def play(prepared: PreparedSession, mode: OutputMode) -> RunEnded:
    """Run it and write each event as a line. Signals and a closed pipe end it as rule J7 says.

    For people, the last line says how to resume a run that is not done. Raises ValueError for a session that waits
    for a prompt: nobody could type one.
    """
    session, begin = prepared.session, prepared.begin
    if begin is None:
        raise ValueError("nothing to run")
    out = Out(mode.stream, gone=lambda: session.suspend("SIGPIPE"))
    session.listen(mode.listener(out))
    prompter = Prompter(session, out, TypedLines()) if mode.asks else None
    if prompter is not None:
        session.listen(prompter)
    try:
        with signals.handled(session):
            last = await begin()
        if not mode.json and (words := prepared.resume_hint(last)):
            out.line(words)
        return last
    finally:
        if prompter is not None:
            prompter.close()
        if out.closed and mode.stream is sys.stdout:
            faults.reader_went_away()
