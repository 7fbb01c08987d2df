"""`handrail approve`: allow or deny a call of a run that another terminal holds."""

from __future__ import annotations

import sys
from typing import Any

import click

from handrail_tui.view.text import one_line, reveal

_OTHERWISE = "Go on with it: handrail resume {id}"


@click.command()
@click.argument("id")
@click.option("--session", "always", is_flag=True, help="Allow this pattern for the whole session.")
@click.option(
    "--deny",
    is_flag=False,
    flag_value="",
    default=None,
    metavar="[WORD]",
    help="Deny; WORD goes to the model.",
)
@click.option("--which", metavar="A", help="The id of the approval that is meant.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print the call and what was said as JSON.")
def approve(id: str, always: bool, deny: str | None, which: str | None, yes: bool, as_json: bool) -> int:
    """Allow the call that a run of another terminal asks about. What it is, is shown first.

    \b
    handrail approve 1kq0z
    handrail approve 1kq0z --session
    handrail approve 1kq0z --deny "not on main"
    """
    from handrail_tui.lines.json_lines import safe_json
    from handrail_tui.sessions.remote import RemoteRun

    if always and deny is not None:
        raise click.UsageError("--session and --deny exclude each other. Choose one.")
    run = RemoteRun(id, _OTHERWISE)
    asked = run.open_one("approval", which)
    if not as_json:
        _show(asked, always)
    if (
        deny is None
        and not yes
        and sys.stdin.isatty()
        and not click.confirm("Allow it?", default=False, err=True)
    ):
        return 1
    how = "deny" if deny is not None else "session" if always else "once"
    run.send("approve", id=asked["id"], how=how, text=deny or "")
    click.echo(safe_json({**asked, "how": how}) if as_json else _SAID[how])
    return 0


_SAID = {"once": "allowed once", "session": "allowed for this session", "deny": "denied"}


def _show(asked: dict[str, Any], always: bool) -> None:
    """The call as a person must see it before it is allowed: nothing shortened, nothing hidden."""
    click.echo(f"{reveal(str(asked['tool']))} {reveal(str(asked['title']))}".strip())
    click.echo(f"why it asks: {one_line(str(asked['why']), 500)}")
    if asked["diff"]:
        click.echo(reveal(str(asked["diff"])).rstrip("\n"))
    if always and asked["pattern"]:
        click.echo(f"always in this session: {reveal(str(asked['pattern']))}")
