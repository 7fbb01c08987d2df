"""`handrail stop`: stop a run in another terminal."""

from __future__ import annotations

import click


@click.command()
@click.argument("id")
def stop(id: str) -> int:
    """Stop a run in another terminal: its stream, its tools, its waits. It can be resumed.

    \b
    handrail stop 1kq0z
    """
    from handrail_tui.sessions.remote import RemoteRun

    run = RemoteRun(id, "`handrail sessions show {id}` shows its state.")
    run.send("stop")
    click.echo(f"stopped. Resume it: handrail resume {run.id}")
    return 0
