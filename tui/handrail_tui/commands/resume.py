"""`handrail resume`: go on with a stored session."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import click

from handrail.policy import parse_duration
from handrail_tui.sessions.resume import BoundChange, ResumeRequest, last_here
from handrail_tui.sessions.resume import resume as open_stored


class Bound(click.ParamType[BoundChange]):
    """A bound: `20`, or `+10` for so much more than it was."""

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
            self.fail(f"'{value}' is no bound. It is, for instance, {example}.", param, ctx)
        return BoundChange(amount, relative=text.startswith("+"))


def _number(text: str) -> float:
    return int(text) if text.isdigit() else float(text)


@click.command()
@click.argument("id", required=False)
@click.option("--answer", metavar="TEXT", help="The answer to the question that is open.")
@click.option("--prompt", metavar="TEXT", help="Ask for something else in the same session.")
@click.option("-m", "--model", metavar="PROVIDER/NAME", help="Ask another model from now on.")
@click.option("--base-url", metavar="URL", help="Where the server is now.")
@click.option("--max-turns", type=Bound(), metavar="N|+N", help="Requests at most; +10 allows ten more.")
@click.option("--max-attempts", type=Bound(), metavar="N|+N", help="Rejected submissions at most.")
@click.option(
    "--deadline", "deadline_s", type=Bound(duration=True), metavar="30m|+30m", help="Wall clock at most."
)
@click.option("--max-total-tokens", type=Bound(), metavar="N|+N", help="Tokens of the whole run at most.")
@click.option("--max-cost", type=Bound(), metavar="USD|+USD", help="Dollars at most; needs a known price.")
@click.option("--approve", type=click.Choice(["ask", "edits", "all"]), help="What may be done unasked.")
@click.option("--no-recovery", is_flag=True, help="A failed or cut reply ends the run; no wait is taken up.")
@click.option("--hold", is_flag=True, help="With nobody here, wait for `handrail answer` instead of ending.")
@click.option("--plain", is_flag=True, help="Words line by line.")
@click.option("--json", "as_json", is_flag=True, help="Events as JSON, one a line; only what is new.")
def resume(
    id: str | None,
    answer: str | None,
    prompt: str | None,
    model: str | None,
    base_url: str | None,
    approve: str | None,
    no_recovery: bool,
    hold: bool,
    plain: bool,
    as_json: bool,
    **bounds: BoundChange | None,
) -> int:
    """Go on with a stored session where it stood: a question, a wait, a crash in the middle of a tool.

    Without ID it is the last session of this folder (with --answer: the last that asks something); the beginning of
    an ID is enough. Every counter is kept, a wait ends when it would have ended, and a tool that was running when
    the program was killed is not run again: the model is told to look first.

    \b
    handrail resume
    handrail resume 1kq0z --answer "the code is 4711"
    handrail resume 1kq0z --max-turns +10
    handrail resume 1kq0z --prompt "now the same for the API"
    """
    if answer is not None and prompt is not None:
        raise click.UsageError("--answer and --prompt exclude each other. Choose one.")
    if prompt is not None and not prompt.strip():
        raise click.UsageError("The prompt is empty. Say what to do.")
    recovery = {"recovery": {"enabled": False}} if no_recovery else {}
    said = {"model": model, "base_url": base_url, "approve": approve}
    request = ResumeRequest(
        answer=answer,
        prompt=prompt,
        flags={name: value for name, value in said.items() if value is not None} | recovery,
        bounds={name: change for name, change in bounds.items() if change is not None},
    )
    return resume_session(id, request, folder=Path.cwd(), plain=plain, as_json=as_json, hold=hold)


def resume_session(
    id: str | None, request: ResumeRequest, *, folder: Path, plain: bool, as_json: bool, hold: bool
) -> int:
    """Take a session up, on the screen or in lines, and return the exit code. None: the last one of `folder`."""
    from handrail.session.store import Store
    from handrail_tui.commands._screen import show_session
    from handrail_tui.lines import exit_codes
    from handrail_tui.sessions import headless

    if as_json and plain:
        raise click.UsageError("--json and --plain exclude each other. Choose one.")
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
