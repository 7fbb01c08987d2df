"""`handrail stop`: stop a run in another terminal."""

from __future__ import annotations

import click


@click.command()
@click.argument("id", required=False, default="")
@click.option("--json", "as_json", is_flag=True, help="Print the id of the session as JSON.")
def stop(id: str, as_json: bool) -> int:
    """Stop a run in another terminal: its stream, its tools, its waits. It can be resumed.

    ID may be left out when one run is active; the beginning of an ID is enough.

    \b
    handrail stop
    handrail stop 1kq0z
    """
    from handrail_tui.lines.json_lines import safe_json
    from handrail_tui.sessions.remote import RemoteRun

    run = RemoteRun(id, "`handrail sessions show {id}` shows its state.")
    run.send("stop")
    if as_json:
        click.echo(safe_json({"session": run.id, "stopped": True}))
        return 0
    click.echo(f"stopped. Resume it: handrail resume {run.id}")
    return 0
