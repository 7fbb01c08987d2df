"""`handrail check`: scenarios as tests."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from handrail.errors import ConfigError
from handrail_tui.lines.exit_codes import FAULT, OK, USAGE
from handrail_tui.lines.json_lines import safe_json
from handrail_tui.view.text import one_line, plural

if TYPE_CHECKING:
    from handrail.scenario import CheckReport


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per file.")
def check(files: tuple[str, ...], as_json: bool) -> int:
    """Play scenarios on a virtual clock, without a screen, and check what they expect. One line each.

    The commands of a file outside a trusted folder run in the system's sandbox, in a temporary folder, without a
    network; on a terminal you are asked first. Without a sandbox they are refused.

    Exits with 1 if any expectation fails, with 2 if a file is not a valid scenario.

    \b
    handrail check tests/scenarios/step/*.toml
    handrail check --json my-run.toml | jq .failures
    """
    from handrail import scenario
    from handrail_tui.sessions.scenario_trust import is_trusted

    code = OK
    for file in files:
        try:
            loaded = scenario.load(file)
            report = asyncio.run(scenario.check(loaded, trusted=is_trusted(loaded)))
        except ConfigError as error:
            code = USAGE
            click.echo(safe_json(_unreadable(file, error)) if as_json else f"ERROR {_plain(str(error))}")
            continue
        if not report.ok:
            code = code or FAULT
        click.echo(safe_json(report.to_json()) if as_json else _line(report))
    return code


def _line(report: CheckReport) -> str:
    name = one_line(report.file, 300)
    if report.ok:
        return f"ok    {name}: {report.outcome}, {plural(report.requests, 'request')}"
    return f"FAIL  {name}: {_plain('; '.join(report.failures))}"


def _plain(words: str) -> str:
    return one_line(words.replace("\n", "; "), 4_000)


def _unreadable(file: str, error: ConfigError) -> dict[str, Any]:
    """The object of a file that is not a valid scenario, with the reason."""
    nothing = dict.fromkeys(("outcome", "class", "value", "requests", "turns", "attempts"))
    empty: dict[str, Any] = {"decisions": [], "waits_s": [], "tool_runs": {}}
    return {"file": file, "ok": False, **nothing, **empty, "failures": str(error).splitlines()}
