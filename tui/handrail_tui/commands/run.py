"""`handrail run`: one run, on the screen or in lines."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import click

from handrail_tui.options import RunOptions, run_options


@click.command()
@click.argument("prompt", required=False)
@run_options
def run(prompt: str | None, **said: Any) -> int:
    """One run: a task for a model with tools, in a folder.

    On a terminal this is the run screen; with --plain, --json, or no terminal, lines. Piped input beside a
    prompt is context; with - the prompt itself is read from stdin.

    \b
    handrail run "fix the flaky checkout test"
    handrail run --approve edits --max-turns 12 "rename cart_total to total, everywhere"
    handrail run --base-url http://127.0.0.1:8080/v1 --model local/qwen "what is in this folder?"
    tail -n 200 app.log | handrail run --plain "why does it restart?"
    handrail run --json --approve all "bump the version" | jq -r .type

    \b
    Exit codes: 0 done, 1 fault, 2 usage, 3 no value, 4 needs a person, 5 provider,
    6 a bound, 7 usage limit, 130 stopped, 129 and 143 interrupted.
    """
    from handrail_tui import exit_codes, headless, launch
    from handrail_tui.task import read_task

    options = RunOptions(**said)
    if options.json and options.plain:
        raise click.UsageError("--json and --plain exclude each other. Choose one.")
    task = read_task(prompt)
    on_screen = sys.stdin.isatty() and sys.stdout.isatty() and not (options.plain or options.json)
    manner = headless.Manner.of(json=options.json, stream=sys.stdout)
    if on_screen or manner.asks:
        launch.ask_for_trust(options.folder)
    with launch.prepare(options, attended=on_screen or manner.asks or options.hold) as ready:
        if on_screen:
            return exit_codes.of_run(ready.show(ready.asked(task)))
        return exit_codes.of_run(asyncio.run(headless.play(ready.session, ready.asked(task), manner)))
