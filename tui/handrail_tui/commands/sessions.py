"""`handrail sessions`: list, show, export, fork and delete stored sessions."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from handrail.errors import ConfigError
from handrail_tui.lines.json_lines import Out, safe_json
from handrail_tui.view.text import clean_for_terminal, local_time, money, one_line, plural

if TYPE_CHECKING:
    from handrail.session.records import JournalContents
    from handrail.session.summary import SessionSummary

_SHOWN: Final = 30


@click.group(invoke_without_command=True)
@click.option("--here", is_flag=True, help="Only sessions of this folder.")
@click.option("--all", "everything", is_flag=True, help=f"All, not only the first {_SHOWN}.")
@click.option("--json", "as_json", is_flag=True, help="All of them, one JSON object per line.")
@click.pass_context
def sessions(ctx: click.Context, here: bool, everything: bool, as_json: bool) -> int | None:
    """The stored sessions, those that need you first. The beginning of an ID is enough everywhere.

    \b
    handrail sessions
    handrail sessions show 1kq0z
    handrail sessions export 1kq0z --to md > session.md
    handrail sessions fork 1kq0z --at 3
    handrail sessions --json | jq 'select(.state == "needs_you")'
    """
    if ctx.invoked_subcommand is not None:
        return None
    from handrail.clock import RealClock
    from handrail.session.store import Store
    from handrail_tui.view import listing

    store, now = Store(), RealClock().now()
    folder = str(Path.cwd().resolve())
    found = listing.ordered(s for s in store.list() if not here or s.cwd == folder)
    if as_json:
        for summary in found:
            click.echo(safe_json(listing.to_json(summary)))
        return 0
    if not found:
        click.echo('No sessions yet. Start one: handrail run "what to do"')
    shown = found if everything else found[:_SHOWN]
    _table([_row(s, now) for s in shown])
    if len(shown) < len(found):
        click.echo(f"… and {len(found) - len(shown)} more: handrail sessions --all")
    return 0


def _row(summary: SessionSummary, now: float) -> tuple[str, ...]:
    from handrail_tui.view import listing

    stands, title, folder, age, turns, cost = listing.row(summary, now)
    return summary.id, stands, title, folder, f"{age} ago", turns, cost


def _table(rows: list[tuple[str, ...]]) -> None:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))] if rows else []
    for row in rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


@sessions.command()
@click.argument("id")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def show(id: str, as_json: bool) -> int:
    """One session: its state, its open question, who allowed what, and how to continue."""
    from handrail.clock import RealClock
    from handrail.session.audit import audit
    from handrail.session.store import Store
    from handrail.session.summary import summarise
    from handrail_tui.view import listing

    store = Store()
    path = store.path_of(id)
    summary, contents = summarise(path), store.read(id)
    allowed = list(audit(contents.events()))
    if as_json:
        entries = [listing.audit_json(entry) for entry in allowed]
        click.echo(safe_json({**listing.to_json(summary), "audit": entries}))
        return 0
    now = RealClock().now()
    for label, words in _facts(summary, contents, now):
        click.echo(f"{label:<9} {words}")
    for entry in allowed:
        click.echo(f"audit     {listing.audit_line(entry, now)}")
    return 0


def _facts(summary: SessionSummary, contents: JournalContents, now: float) -> list[tuple[str, str]]:
    from handrail_tui.view import listing

    facts = [
        ("session", summary.id),
        ("state", listing.state(summary, now)),
        ("title", one_line(summary.title, 100)),
        ("folder", one_line(summary.cwd, 200)),
        ("model", one_line(summary.model, 100)),
        ("began", local_time(summary.started, now, seconds=False)),
        ("last", f"{listing.age(summary, now)} ago"),
        ("spent", f"{plural(summary.turns, 'turn')}{f', {money(summary.cost)}' if summary.cost else ''}"),
        ("parent", summary.parent or ""),
        ("needs", one_line(summary.needs or "", 500)),
        ("journal", one_line(f"{summary.path} ({contents.size / 1000:,.0f} kB)", 500)),
        *(("damaged", str(place)) for place in contents.damage),
        *(("set aside", str(place)) for place in contents.set_aside),
        ("next", listing.next_step(summary)),
    ]
    return [(label, words) for label, words in facts if words]


@sessions.command()
@click.argument("id")
@click.option(
    "--to", "form", type=click.Choice(["md", "jsonl"]), default="md", help="Markdown or JSON events."
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to this new file."
)
def export(id: str, form: str, output: Path | None) -> int:
    """Write a session as Markdown, or its events as JSON lines, to stdout or to a new file."""
    from handrail.session.store import Store
    from handrail_tui.lines.export import as_lines, as_page

    contents = Store().read(id)
    lines = as_page(contents) if form == "md" else as_lines(contents)
    if output is None:
        Out(sys.stdout).line(lines.removesuffix("\n"))
        return 0
    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(lines)
    except FileExistsError:
        raise ConfigError(f"{output} already exists. Give the name of a new file.") from None
    except OSError as error:
        raise ConfigError(f"{output} cannot be written: {error.strerror}.") from None
    return 0


@sessions.command()
@click.argument("id")
@click.option("--at", "turn", type=click.IntRange(1), metavar="TURN", help="Copy up to the end of this turn.")
@click.option(
    "--cwd",
    type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
    metavar="DIR",
    help="The folder that the copy works in.",
)
def fork(id: str, turn: int | None, cwd: Path | None) -> int:
    """Copy a session up to a turn into a new one. Prints the new ID."""
    from handrail.clock import RealClock
    from handrail.session.store import Store

    click.echo(Store().fork(id, RealClock(), at_turn=turn, cwd=cwd))
    return 0


@sessions.command()
@click.argument("id")
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(id: str, yes: bool) -> int:
    """Delete a session. Files that its runs changed stay as they are."""
    from handrail.session.store import Store
    from handrail.session.summary import summarise

    store = Store()
    summary = summarise(store.path_of(id))
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("There is no terminal to confirm on. Use --yes to delete without asking.")
        words = clean_for_terminal(f"Delete session {summary.id}, {one_line(summary.title, 60)!r}?")
        if not click.confirm(words, default=False, err=True):
            return 1
    store.delete(summary.id)
    return 0
