"""`handrail approve`: allow or deny a tool call of a run in another terminal."""

from __future__ import annotations

import sys
from typing import Any

import click

from handrail_tui.view import wording
from handrail_tui.view.text import one_line, reveal

_IF_NOT_RUNNING = "Resume it: handrail resume {id}"


@click.command()
@click.argument("id", required=False, default="")
@click.option("--session", "always", is_flag=True, help="Allow this pattern for the whole session.")
@click.option(
    "--deny",
    is_flag=False,
    flag_value="",
    default=None,
    metavar="[WHY]",
    help="Deny; the model is told WHY.",
)
@click.option("--which", metavar="A", help="The id of the approval, when several are open.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print the call and the decision as JSON.")
def approve(id: str, always: bool, deny: str | None, which: str | None, yes: bool, as_json: bool) -> int:
    """Allow the tool call that a run in another terminal is waiting for. The call is shown first.

    ID may be left out when one run is active; the beginning of an ID is enough.

    \b
    handrail approve 1kq0z
    handrail approve 1kq0z --session
    handrail approve 1kq0z --deny "not on main"
    """
    from handrail_tui.lines.json_lines import safe_json
    from handrail_tui.sessions.remote import RemoteRun

    if always and deny is not None:
        raise click.UsageError("--session and --deny cannot be combined.")
    run = RemoteRun(id, _IF_NOT_RUNNING)
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
    click.echo(safe_json({**asked, "how": how}) if as_json else wording.approval(how))
    return 0


def _show(asked: dict[str, Any], always: bool) -> None:
    """Print the whole call, with hidden characters revealed."""
    click.echo(f"{reveal(str(asked['tool']))} {reveal(str(asked['title']))}".strip())
    click.echo(f"needs approval: {one_line(str(asked['why']), 500)}")
    if asked["diff"]:
        click.echo(reveal(str(asked["diff"])).rstrip("\n"))
    if always and asked["pattern"]:
        click.echo(f"always in this session: {reveal(str(asked['pattern']))}")
