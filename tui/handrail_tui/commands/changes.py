"""`handrail changes`: the files that a run changed, and undoing a turn."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from handrail.errors import ConfigError
from handrail_tui.lines.json_lines import safe_json
from handrail_tui.view.text import clean_for_terminal, one_line, plural

if TYPE_CHECKING:
    from handrail.session.changes import FileChange

_COLORS: Final = {"+": "green", "-": "red", "@": "cyan"}


@click.command()
@click.argument("id", required=False)
@click.option("--undo", "turn", type=click.IntRange(1), metavar="TURN", help="Undo the changes of this turn.")
@click.option("--yes", is_flag=True, help="Undo without asking.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per change.")
def changes(id: str | None, turn: int | None, yes: bool, as_json: bool) -> int:
    """The files that a run changed, and their diffs by turn. Without ID: the last session of this folder.

    An undo restores exactly what the file tools changed in that turn, or refuses and says what changed since.
    Changes made by shell commands are not tracked and not undone.

    \b
    handrail changes
    handrail changes 1kq0z --undo 3
    """
    from handrail.session import changes as record
    from handrail.session.store import Store
    from handrail_tui.sessions.resume import last_here

    store = Store()
    contents = store.read(id if id is not None else last_here(store, Path.cwd().resolve()))
    found = record.changes(contents.events())
    session = contents.header.session if contents.header else ""
    if turn is not None:
        return _undo(session, found, turn, yes)
    if as_json:
        for change in found:
            click.echo(safe_json(_row(change)))
        return 0
    _show(found)
    return 0


def _row(change: FileChange) -> dict[str, Any]:
    return {
        "run": change.run,
        "turn": change.turn,
        "path": change.path,
        "new": change.new,
        "added": change.added,
        "removed": change.removed,
        "diff": change.diff,
    }


def _show(found: Sequence[FileChange]) -> None:
    if not found:
        click.echo("No files edited. Changes made by shell commands are not tracked.")
        return
    for path in dict.fromkeys(c.path for c in found):
        mine = [c for c in found if c.path == path]
        turns = ", ".join(dict.fromkeys(str(c.turn) for c in mine))
        sums = f"+{sum(c.added for c in mine)} -{sum(c.removed for c in mine)}"
        new = " (new)" if mine[0].new else ""
        click.echo(f"{one_line(path, 200)}{new}  {sums}  turn {turns}")
    several = len({c.run for c in found}) > 1
    for change in found:
        where = f"run {change.run}, turn {change.turn}" if several else f"turn {change.turn}"
        click.echo(f"\n{where}: {one_line(change.path, 200)}")
        _diff(change.diff)


def _diff(diff: str) -> None:
    color = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    for line in clean_for_terminal(diff).rstrip("\n").split("\n"):
        fg = _COLORS.get(line[:1]) if color and not line.startswith(("+++", "---")) else None
        click.echo(click.style(line, fg=fg) if fg else line)


def _undo(session: str, found: Sequence[FileChange], turn: int, yes: bool) -> int:
    """Undo a turn, while no process runs the session, and note it in the journal."""
    from handrail.clock import RealClock
    from handrail.events import Notice
    from handrail.session import changes as record
    from handrail.session.store import Store

    undone = record.of_turn(found, turn)
    if not undone:
        with_changes = ", ".join(dict.fromkeys(str(c.turn) for c in found)) or "none"
        raise ConfigError(f"session {session}: turn {turn} changed no files. Turns that did: {with_changes}.")
    clock = RealClock()
    with Store().open(session, clock, accept_damage=True) as journal:
        if not yes:
            _ask(undone, turn)
        later = found[found.index(undone[-1]) + 1 :]
        paths = record.undo(undone, later, _folder(journal.contents.events()), clock)
        words = f"the person undid the changes of turn {turn}: {', '.join(paths)}"
        journal.append(Notice(at=clock.now(), text=words))
    click.echo(f"turn {turn} undone: {one_line(', '.join(paths), 500)} ({plural(len(paths), 'file')})")
    return 0


def _ask(undone: Sequence[FileChange], turn: int) -> None:
    if not sys.stdin.isatty():
        raise click.UsageError("There is no terminal to confirm on. Use --yes to undo without asking.")
    for change in undone:
        _diff(change.diff)
    click.confirm(f"Undo this (turn {turn})?", default=False, err=True, abort=True)


def _folder(events: Any) -> Path:
    """The folder of the session's last run."""
    from handrail.events import RunStarted

    return Path([e.cwd for e in events if isinstance(e, RunStarted)][-1])
