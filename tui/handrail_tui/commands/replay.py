"""`handrail replay`: play a stored run again."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from handrail.errors import ConfigError
from handrail.events import Event
from handrail.events.wire import Codec
from handrail_tui.commands._options import check_output, output_options


@click.command()
@click.argument("source", metavar="ID | FILE")
@output_options
def replay(source: str, plain: bool, as_json: bool) -> int:
    """Play a stored run: a session, a journal, or a file that `run --json` or `sessions export` wrote.

    On a terminal it plays on the screen with the original timing, long pauses shortened; else it is printed at once.

    \b
    handrail replay 1kq0z
    handrail run --json "…" > run.jsonl; handrail replay run.jsonl
    """
    from handrail_tui.lines.json_lines import JsonLines, Out
    from handrail_tui.lines.plain import Plain
    from handrail_tui.sessions.headless import OutputMode

    check_output(plain, as_json)
    if not (as_json or plain) and OutputMode.on_screen():
        return _show(source)
    out = Out(sys.stdout)
    told = JsonLines(out) if as_json else Plain(out, color=out.terminal and not os.environ.get("NO_COLOR"))
    for event in events_of(source):
        told(event)
        if out.closed:
            from handrail_tui.lines import faults

            return faults.reader_went_away()
    return 0


def _show(source: str) -> int:
    """Play it on the screen."""
    from handrail import settings
    from handrail_tui.commands._screen import show_screen
    from handrail_tui.screens.replay import ReplayScreen
    from handrail_tui.sessions.replay import streamed

    screen = ReplayScreen(streamed(events_of(source)), home=str(Path.home()))
    code, _ = show_screen(screen, settings.load(Path.cwd()).settings)
    return code


def events_of(source: str) -> Iterator[Event]:
    """The events of a session by its id, of a journal, or of a file of events. Raises ConfigError."""
    from handrail.session.records import read_journal
    from handrail.session.store import Store

    path = Path(source)
    if not path.is_file():
        yield from Store().read(source).events()
        return
    contents = read_journal(path)
    if contents.header is not None:
        yield from contents.events()
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield _event(line, f"{path}:{number}")


def _event(line: bytes, place: str) -> Event:
    try:
        return Codec.loads(line)
    except ValueError:
        raise ConfigError(
            f"{place}: this line is not an event of a run, and the file is not a journal."
        ) from None
