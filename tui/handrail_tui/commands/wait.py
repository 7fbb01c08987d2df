"""`handrail skip` and `handrail later`: end or prolong the wait of a run in another terminal (rule U8)."""

from __future__ import annotations

import time

import click

_NOT_WAITING = "session {id} is not waiting."


@click.command()
@click.argument("id", required=False, default="")
def skip(id: str) -> int:
    """End the wait of a run in another terminal: it makes its next request now.

    ID may be left out when one run is active; the beginning of an ID is enough.

    \b
    handrail skip
    handrail skip 1kq0z
    """
    from handrail_tui.sessions.remote import RemoteRun

    run = RemoteRun(id)
    run.send("skip")
    click.echo(f"{run.id} makes its next request now")
    return 0


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="[ID] WHEN")
def later(words: tuple[str, ...]) -> int:
    """Prolong the wait of a run in another terminal, by a time or until a time of day.

    \b
    handrail later +15m                  a quarter of an hour more
    handrail later 1kq0z 14:30           until half past two, this machine's time
    handrail later 1kq0z 2h              two hours from now
    """
    from handrail.errors import ConfigError
    from handrail_tui.controller.later import moment
    from handrail_tui.sessions.remote import RemoteRun
    from handrail_tui.view.text import local_time

    if len(words) > 2:
        raise click.UsageError("Give an id and a time, such as: handrail later 1kq0z +15m")
    id, when = words if len(words) == 2 else ("", words[0])
    run = RemoteRun(id)
    now = time.time()
    until = run.status()["until"]
    if until is None:
        raise ConfigError(_NOT_WAITING.format(id=run.id))
    try:
        found = moment(when, now=now, until=until)
    except ValueError as error:
        raise click.UsageError(f"{error}.") from None
    run.send("later", until=found)
    click.echo(f"{run.id} waits until {local_time(found, now)}")
    return 0
