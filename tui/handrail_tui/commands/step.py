"""`handrail step`: text in, a value out, for scripts."""

from __future__ import annotations

import asyncio
import sys
from typing import Any, Final

import click

from handrail_tui.commands._options import check_output, run_options
from handrail_tui.sessions.options import RunOptions

TURNS: Final = 8
"""Limit of requests where nobody set one: a step is small."""


@click.command()
@click.argument("prompt", required=False)
@run_options
def step(prompt: str | None, **given: Any) -> int:
    """Text in, one schema-valid JSON value out: on stdout, and nothing else there.

    Everything else goes to stderr. The schema is checked, not the truth of the value. Exit codes: see `handrail run`.

    \b
    handrail step --schema verdict.json "Is tests/checkout flaky? Look."
    handrail step --schema mytypes:Verdict --tools read,grep "Is tests/checkout flaky?"
    git diff | handrail step --schema review.json "review this" | jq .findings
    """
    from handrail_tui.lines import exit_codes
    from handrail_tui.lines.json_lines import Out, safe_json
    from handrail_tui.sessions import headless
    from handrail_tui.sessions.prepare import prepare
    from handrail_tui.sessions.project_trust import ask_for_trust
    from handrail_tui.sessions.task import read_task

    options = RunOptions(**given)
    check_output(options.plain, options.as_json)
    if options.schema is None:
        raise click.UsageError("A step needs a schema for its value: --schema FILE.json or module:Type.")
    task = read_task(prompt)
    mode = headless.OutputMode.of(json=options.as_json, stream=sys.stderr)
    if mode.asks:
        ask_for_trust(options.folder)
    with prepare(options, task, attended=mode.asks or options.hold, default_turns=TURNS) as prepared:
        last = asyncio.run(headless.play(prepared, mode))
    if last.type == "run_finished" and last.outcome == "submitted":
        out = Out(sys.stdout)
        out.line(safe_json(last.value, indent=2 if out.terminal else None))
        if out.closed:
            from handrail_tui.lines import faults

            return faults.reader_went_away()
    return exit_codes.of_run(last)
