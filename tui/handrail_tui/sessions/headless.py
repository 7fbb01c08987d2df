"""A run without a screen: lines out, signals and typed answers in."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from handrail import events as ev
from handrail_tui.lines import faults
from handrail_tui.lines.json_lines import JsonLines, Out
from handrail_tui.lines.plain import Plain
from handrail_tui.lines.prompts import Prompter, Typed
from handrail_tui.sessions import signals

if TYPE_CHECKING:
    from handrail.events import RunEnded
    from handrail.session import Session
    from handrail_tui.sessions.prepare import Begin


@dataclass(frozen=True, slots=True)
class OutputMode:
    """How a run speaks: JSON or words, to which stream, and whether a person at this terminal is asked."""

    json: bool
    stream: TextIO
    asks: bool

    @classmethod
    def of(cls, *, json: bool, stream: TextIO) -> OutputMode:
        """Words on a terminal with somebody at its keys ask; JSON, pipes and logs never do (rules H4, H5)."""
        return cls(json, stream, asks=not json and stream.isatty() and sys.stdin.isatty())

    @staticmethod
    def on_screen() -> bool:
        """Whether there is a terminal to draw on: keys come from stdin, and Textual draws on stderr."""
        return sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()

    def listener(self, out: Out) -> ev.Listener:
        """What writes the events to `out`."""
        if self.json:
            return JsonLines(out)
        return Plain(out, color=out.terminal and not os.environ.get("NO_COLOR"))


async def play(
    session: Session, begin: Begin, manner: OutputMode, goodbye: Callable[[RunEnded], str] = lambda last: ""
) -> RunEnded:
    """Carry the run that `begin` begins; every event is a line. Signals and a reader that goes away end it as rule
    J7 says. Where the lines are for people, `goodbye` has the last word."""
    out = Out(manner.stream, gone=lambda: session.suspend("SIGPIPE"))
    session.listen(manner.listener(out))
    prompter = Prompter(session, out, Typed()) if manner.asks else None
    if prompter is not None:
        session.listen(prompter)
    try:
        with signals.handled(session):
            last = await begin()
        if not manner.json and (words := goodbye(last)):
            out.line(words)
        return last
    finally:
        if prompter is not None:
            prompter.close()
        if out.closed and manner.stream is sys.stdout:
            faults.reader_went_away()
