"""`handrail run`: one run, on the screen or in lines."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import click

from handrail_tui.sessions.options import RunOptions, run_options


@click.command()
@click.argument("prompt", required=False)
@click.option(
    "-c",
    "--continue",
    "again",
    is_flag=True,
    help="In the last session of this folder; without PROMPT as it stood.",
)
@run_options
def run(prompt: str | None, again: bool, **said: Any) -> int:
    """One run: a task for a model with tools, in a folder.

    On a terminal this is the run screen; with --plain, --json, or no terminal, lines. Piped input beside a
    prompt is context; with - the prompt itself is read from stdin.

    \b
    handrail run "fix the flaky checkout test"
    handrail run --approve edits --max-turns 12 "rename cart_total to total, everywhere"
    handrail run --base-url http://127.0.0.1:8080/v1 --model my/qwen "what is in this folder?"
    tail -n 200 app.log | handrail run --plain "why does it restart?"
    handrail run --json --approve all "bump the version" | jq -r .type

    \b
    Exit codes: 0 done, 1 fault, 2 usage, 3 no value, 4 needs a person, 5 provider,
    6 a bound, 7 usage limit, 130 stopped, 129 and 143 interrupted.
    """
    from handrail_tui.commands._screen import show_session
    from handrail_tui.lines import exit_codes
    from handrail_tui.sessions import headless
    from handrail_tui.sessions.prepare import prepare
    from handrail_tui.sessions.project_trust import ask_for_trust
    from handrail_tui.sessions.task import read_task

    options = RunOptions(**said)
    if options.json and options.plain:
        raise click.UsageError("--json and --plain exclude each other. Choose one.")
    if again:
        return _again(prompt, options)
    task = read_task(prompt)
    on_screen = headless.OutputMode.on_screen() and not (options.plain or options.json)
    mode = headless.OutputMode.of(json=options.json, stream=sys.stdout)
    if on_screen or mode.asks:
        ask_for_trust(options.folder)
    with prepare(options, task, attended=on_screen or mode.asks or options.hold) as prepared:
        last = show_session(prepared) if on_screen else asyncio.run(headless.play(prepared, mode))
        return exit_codes.of_run(last)


def _again(prompt: str | None, options: RunOptions) -> int:
    """Go on with the last session of the folder, with a new prompt where there is one."""
    from handrail_tui.commands.resume import resume_session
    from handrail_tui.sessions.resume import BoundChange, ResumeRequest
    from handrail_tui.sessions.task import read_task

    if options.schema is not None:
        raise click.UsageError("A session keeps the shape of its value: --schema goes with a new one.")
    task = read_task(prompt) if prompt is not None else None
    flags = options.flags()
    bounds = {name: BoundChange(value) for name, value in flags.pop("bounds", {}).items()}
    request = ResumeRequest(
        prompt=task.prompt if task else None,
        context=task.context if task else None,
        flags=flags,
        bounds=bounds,
    )
    return resume_session(
        None, request, folder=options.folder, plain=options.plain, as_json=options.json, hold=options.hold
    )
