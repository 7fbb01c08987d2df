"""`handrail run`: one run, on the screen or in lines."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import click

from handrail_tui.commands._options import check_output, run_options
from handrail_tui.sessions.options import RunOptions


@click.command()
@click.argument("prompt", required=False)
@click.option(
    "-c",
    "--continue",
    "again",
    is_flag=True,
    help="Continue the last session of this folder, with PROMPT if given.",
)
@click.option("--agent", metavar="NAME|COMMAND", help="Let another agent do it: claude, codex, gemini, …")
@run_options
def run(prompt: str | None, again: bool, **given: Any) -> int:
    """Run a task: a model with tools works on it in a folder.

    On a terminal this opens the run screen; with --plain or --json, or without a terminal, it prints lines. Piped input
    is context for the prompt; with - the prompt itself is read from stdin.

    \b
    handrail run "fix the flaky checkout test"
    handrail run --approve edits --max-turns 12 "rename cart_total to total, everywhere"
    handrail run --base-url http://127.0.0.1:8080/v1 --model my/qwen "what is in this folder?"
    tail -n 200 app.log | handrail run --plain "why does it restart?"
    handrail run --agent claude "fix the flaky checkout test"
    handrail run --json --approve all "bump the version" | jq -r .type

    \b
    Exit codes: 0 done, 1 bug in Handrail, 2 usage, 3 no value, 4 needs a person,
    5 provider failed, 6 bound reached, 7 usage limit, 130 stopped, 129 and 143 interrupted.
    """
    from handrail_tui.commands._screen import show_session
    from handrail_tui.lines import exit_codes
    from handrail_tui.sessions import headless
    from handrail_tui.sessions.prepare import prepare
    from handrail_tui.sessions.project_trust import ask_for_trust
    from handrail_tui.sessions.task import read_task

    options = RunOptions(**given)
    check_output(options.plain, options.as_json)
    if again:
        return _again(prompt, options)
    task = read_task(prompt)
    on_screen = headless.OutputMode.on_screen() and not (options.plain or options.as_json)
    mode = headless.OutputMode.of(json=options.as_json, stream=sys.stdout)
    if on_screen or mode.asks:
        ask_for_trust(options.folder)
    with prepare(options, task, attended=on_screen or mode.asks or options.hold) as prepared:
        last = show_session(prepared) if on_screen else asyncio.run(headless.play(prepared, mode))
        return exit_codes.of_run(last)


def _again(prompt: str | None, options: RunOptions) -> int:
    """Resume the last session of the folder, with a new prompt if there is one."""
    from handrail_tui.commands.resume import resume_session
    from handrail_tui.sessions.resume import BoundChange, ResumeRequest
    from handrail_tui.sessions.task import read_task

    if options.schema is not None:
        raise click.UsageError("--schema cannot be changed in a session; it needs a new run.")
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
        None, request, folder=options.folder, plain=options.plain, as_json=options.as_json, hold=options.hold
    )
