"""`handrail resume`: resume a stored session."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import click

from handrail.policy import parse_duration
from handrail_tui.commands._options import APPROVE_MODES, Duration, check_output, output_options
from handrail_tui.sessions.resume import BoundChange, ResumeRequest, last_here
from handrail_tui.sessions.resume import resume as open_stored


class Bound(click.ParamType[BoundChange]):
    """A bound: `20`, or `+10` to raise it by 10."""

    name = "bound"

    def __init__(self, duration: bool = False) -> None:
        self._duration = duration

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> BoundChange:
        if isinstance(value, BoundChange):
            return value
        text = str(value).strip()
        number = text.removeprefix("+")
        try:
            amount = parse_duration(number) if self._duration else _number(number)
        except ValueError:
            example = "30m or +30m" if self._duration else "20 or +10"
            self.fail(f"'{value}' is not a limit. Use a value such as {example}.", param, ctx)
        return BoundChange(amount, relative=text.startswith("+"))


def _number(text: str) -> float:
    return int(text) if text.isdigit() else float(text)


_FOLDER = click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path)


@click.command()
@click.argument("id", required=False)
@click.option("--answer", metavar="TEXT", help="Answer the open question.")
@click.option("--prompt", metavar="TEXT", help="Continue with a new prompt.")
@click.option("--cwd", type=_FOLDER, metavar="DIR", help="Where its folder is now, if it was moved.")
@click.option("-m", "--model", metavar="PROVIDER/NAME", help="Use another model from now on.")
@click.option("--base-url", metavar="URL", help="The server's address, if it moved.")
@click.option("--max-turns", type=Bound(), metavar="N|+N", help="Limit of requests; +10 allows ten more.")
@click.option("--max-attempts", type=Bound(), metavar="N|+N", help="Limit of rejected submissions.")
@click.option("--deadline", "deadline_s", type=Bound(duration=True), metavar="30m|+30m", help="Time limit.")
@click.option("--max-total-tokens", type=Bound(), metavar="N|+N", help="Token limit for the whole run.")
@click.option(
    "--max-cost", type=Bound(), metavar="USD|+USD", help="Cost limit in dollars; needs a known price."
)
@click.option("--approve", type=APPROVE_MODES, help="What runs without asking.")
@click.option(
    "--no-recovery",
    is_flag=True,
    help="End the run at the first failed or cut reply; no waits.",
)
@click.option(
    "--max-wait", type=Duration(), metavar="12h", help="Longest wait for a usage limit; 0: never wait."
)
@click.option(
    "--hold", is_flag=True, help="Without a terminal, wait for `handrail answer` instead of ending."
)
@output_options
def resume(
    id: str | None,
    answer: str | None,
    prompt: str | None,
    cwd: Path | None,
    model: str | None,
    base_url: str | None,
    approve: str | None,
    no_recovery: bool,
    max_wait: float | None,
    hold: bool,
    plain: bool,
    as_json: bool,
    **bounds: BoundChange | None,
) -> int:
    """Resume a stored session where it stopped: at a question, in a wait, after a crash.

    Without ID: the last session of this folder (with --answer: the last one with an open question). The beginning of
    an ID is enough. All counters continue, and a wait ends when it would have ended. A tool that was running when the
    program was killed is not run again: the model is told to check its effect first. --json prints new events only.

    \b
    handrail resume
    handrail resume 1kq0z --answer "the code is 4711"
    handrail resume 1kq0z --max-turns +10
    handrail resume 1kq0z --prompt "now the same for the API"
    """
    if answer is not None and prompt is not None:
        raise click.UsageError("--answer and --prompt cannot be combined.")
    if prompt is not None and not prompt.strip():
        raise click.UsageError("The prompt is empty.")
    changes = {"enabled": False if no_recovery else None, "max_wait_s": max_wait}
    given = {name: value for name, value in changes.items() if value is not None}
    recovery = {"recovery": given} if given else {}
    said = {"model": model, "base_url": base_url, "approve": approve}
    request = ResumeRequest(
        answer=answer,
        prompt=prompt,
        cwd=cwd,
        flags={name: value for name, value in said.items() if value is not None} | recovery,
        bounds={name: change for name, change in bounds.items() if change is not None},
    )
    return resume_session(id, request, folder=Path.cwd(), plain=plain, as_json=as_json, hold=hold)


def resume_session(
    id: str | None, request: ResumeRequest, *, folder: Path, plain: bool, as_json: bool, hold: bool
) -> int:
    """Resume a session, on the screen or in lines; returns the exit code. `id` None: the last one of `folder`."""
    from handrail.session.store import Store
    from handrail_tui.commands._screen import show_session
    from handrail_tui.lines import exit_codes
    from handrail_tui.sessions import headless

    check_output(plain, as_json)
    on_screen = headless.OutputMode.on_screen() and not (plain or as_json)
    mode = headless.OutputMode.of(json=as_json, stream=sys.stdout)
    prepared = open_stored(
        id if id is not None else last_here(Store(), folder, asking=request.answer is not None),
        request,
        attended=on_screen or mode.asks or hold,
    )
    with prepared:
        last = show_session(prepared) if on_screen else asyncio.run(headless.play(prepared, mode))
        return exit_codes.of_run(last)
