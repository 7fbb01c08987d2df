"""`handrail steer` and `handrail follow-up`: speak to a run in another terminal (rule L8)."""

from __future__ import annotations

import click


def _words(words: tuple[str, ...]) -> tuple[str, str]:
    """The id and the text; without an id, it is the only run."""
    if len(words) > 2:
        raise click.UsageError("Put the text in quotes.")
    id, text = words if len(words) == 2 else ("", words[0])
    if not text.strip():
        raise click.UsageError("The text is empty.")
    return id, text


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="[ID] TEXT")
def steer(words: tuple[str, ...]) -> int:
    """Send a message to a run in another terminal. The model sees it with the next request.

    ID may be left out when one run is active; the beginning of an ID is enough.

    \b
    handrail steer "leave the API unchanged"
    handrail steer 1kq0z "leave the API unchanged"
    """
    from handrail_tui.sessions.remote import RemoteRun

    id, text = _words(words)
    run = RemoteRun(id)
    run.send("steer", text=text)
    click.echo(f"queued for the next request of {run.id}")
    return 0


@click.command("follow-up")
@click.argument("words", nargs=-1, required=True, metavar="[ID] TEXT")
def follow_up(words: tuple[str, ...]) -> int:
    """Give a run in another terminal its next task, for when the current one is done.

    \b
    handrail follow-up 1kq0z "then add a regression test"
    """
    from handrail_tui.sessions.remote import RemoteRun

    id, text = _words(words)
    run = RemoteRun(id)
    run.send("follow_up", text=text)
    click.echo(f"queued for {run.id}, after the current task")
    return 0
