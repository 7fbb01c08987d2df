"""`handrail stop`: stop a run that another terminal holds."""

from __future__ import annotations

import click


@click.command()
@click.argument("id")
def stop(id: str) -> int:
    """Stop a run that another terminal holds: its stream, its tools, its waits. It can be gone on with.

    \b
    handrail stop 1kq0z
    """
    from handrail_tui.sessions.remote import RemoteRun

    run = RemoteRun(id, "There is nothing to stop; `handrail sessions show {id}` says how it stands.")
    run.send("stop")
    click.echo(f"stopped. Go on: handrail resume {run.id}")
    return 0
