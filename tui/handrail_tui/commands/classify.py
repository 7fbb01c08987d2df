"""`handrail classify`: how recovery classifies a failure, and why (rule K5)."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any, BinaryIO

import click

if TYPE_CHECKING:
    from handrail.messages import Failure
    from handrail.policy import RecoveryPolicy
    from handrail.recovery.classify import Classification
    from handrail.recovery.decide import Decision


class _HeaderParam(click.ParamType[tuple[str, str]]):
    """`Name: value`, as HTTP writes it."""

    name = "header"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        key, colon, content = str(value).partition(":")
        if not colon or not key.strip():
            self.fail(f"{value!r} is not a header; write NAME:VALUE.", param, ctx)
        return key.strip().lower(), content.strip()


class _ZoneParam(click.ParamType[tzinfo]):
    """The name of a time zone."""

    name = "zone"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tzinfo:
        from handrail.recovery.moments.zones import zone_named

        zone = value if isinstance(value, tzinfo) else zone_named(str(value))
        if zone is None:
            self.fail(f"unknown time zone {value!r}; use a name such as Europe/Berlin.", param, ctx)
        return zone


@click.command()
@click.argument("text", required=False)
@click.option("--provider", metavar="NAME", help="The provider's name; some messages differ in meaning.")
@click.option("--status", type=click.IntRange(100, 599), metavar="N", help="The HTTP status.")
@click.option(
    "--header",
    "headers",
    type=_HeaderParam(),
    multiple=True,
    metavar="K:V",
    help="A response header; repeatable.",
)
@click.option(
    "--phase",
    type=click.Choice(["connect", "response", "stream"]),
    default="response",
    show_default=True,
    help="How far the request had come.",
)
@click.option(
    "--now", type=click.DateTime(["%Y-%m-%dT%H:%M:%S%z"]), metavar="RFC3339", help="The time to use as now."
)
@click.option("--zone", type=_ZoneParam(), metavar="NAME", help="The zone of times that name none.")
@click.option("--json", "as_json", is_flag=True, help="Read JSON rows from stdin; one answer per line.")
@click.pass_context
def classify(
    ctx: click.Context,
    text: str | None,
    provider: str | None,
    status: int | None,
    headers: tuple[tuple[str, str], ...],
    phase: Any,
    now: datetime | None,
    zone: tzinfo | None,
    as_json: bool,
) -> None:
    """Classify a failure: its class, why, when to retry, and what recovery would do.

    Without TEXT the failure is read from stdin. With --json and without TEXT, stdin holds rows: text, and if known id,
    provider, phase, status, headers, now, local_zone. The answer to each is {"id", "class", "wait_s"}; wait_s has no
    margin added and is null when the provider gives no time. Invalid rows are reported on stderr, and the exit code
    is 2.

    \b
    handrail classify "You have hit your usage limit. Try again in ~42 min."
    handrail classify --status 429 --header retry-after:120 ""
    curl -s https://api.example.org/v1/models | handrail classify --provider openai
    handrail classify --json < failures.jsonl
    """
    from handrail.clock import RealClock
    from handrail.messages import Failure, clean
    from handrail.recovery.classify import classify as verdict_of

    moment = now.timestamp() if now is not None else RealClock().now()
    if as_json and text is None:
        ctx.exit(2 if _answer_rows(sys.stdin.buffer, moment, zone) else 0)
    if text is None:
        if sys.stdin.isatty():
            raise click.UsageError('Give the failure: handrail classify "TEXT", or pipe it in.')
        text = sys.stdin.buffer.read().decode(errors="replace").strip()
        if not text and status is None and not headers:
            raise click.UsageError(
                "Nothing came in. Pipe in the failure's text, or give --status or --header."
            )
    failure = Failure(clean(text), provider=provider, phase=phase, status=status, headers=dict(headers))
    verdict = verdict_of(failure, now=moment, local_zone=zone)
    if as_json:
        click.echo(_answer(None, verdict))
        return
    for label, words in _report(failure, verdict, moment, zone):
        click.echo(f"{label:<10} {words}")


# -- for people -------------------------------------------------------------------------------------------------------


def _report(
    failure: Failure, verdict: Classification, now: float, zone: tzinfo | None
) -> Iterator[tuple[str, str]]:
    from handrail.events import Ledger
    from handrail.policy import RecoveryPolicy
    from handrail.recovery.decide import Facts, decide
    from handrail_tui.view.text import about, full_time, one_line

    yield "class", verdict.class_
    yield "why", one_line(verdict.why, 400)
    guidance = verdict.guidance
    if guidance is not None:
        rounded = "about " if guidance.rounded else ""
        when = f"{rounded}{about(guidance.wait_s)} from now, {full_time(guidance.at, zone)}"
        yield "guidance", f"{when} ({one_line(guidance.source, 200)})"
    elif verdict.class_ in ("transient", "usage_limit"):
        yield "guidance", "none: the provider gives no time"
    policy = RecoveryPolicy()
    decision = decide(Facts("error", classification=verdict, failure=failure), Ledger(), policy, now)
    yield "recovery", _plan(decision, policy, zone)
    if verdict.advice:
        yield "advice", verdict.advice


def _plan(decision: Decision | None, policy: RecoveryPolicy, zone: tzinfo | None) -> str:
    """What recovery would do with its default settings, in words."""
    from handrail_tui.view import wording
    from handrail_tui.view.text import about, full_time

    if decision is None:
        return "nothing to recover"
    resumes = f"{policy.stream_retries} resumes after " + ", ".join(about(d) for d in policy.resume_delays_s)
    match decision.kind:
        case "continue":
            return f"asks for the rest at once, quoting the reply so far (at most {policy.max_resumes} times)"
        case "retry":
            first = about(decision.delay_s)
            return f"retries in {first}; at most {policy.retries} retries with growing delays, then {resumes}"
        case "resume":
            return f"retries in {about(decision.delay_s)}; at most {resumes}"
        case "compact":
            return "summarises older messages and retries, once for each of your messages"
        case "wait" if decision.poll is not None:
            window = about(policy.poll_window_s)
            return f"retries every {about(policy.poll_s)}, at most {policy.max_polls} times within {window}"
        case "wait" if decision.until is not None:
            return f"waits {about(decision.delay_s)}, until {full_time(decision.until, zone)}, then retries"
        case _ if decision.reason == "usage-limit":
            return f"ends the run: the wait is longer than {about(policy.max_wait_s)} (--max-wait); it can be resumed"
        case _:
            return f"ends the run: {wording.reason(decision.reason)}; the session can be resumed"


# -- for scripts ------------------------------------------------------------------------------------------------------


def _answer_rows(stream: BinaryIO, now: float, zone: tzinfo | None) -> int:
    """Answer each row of `stream`, and report invalid ones on stderr. Returns how many were invalid."""
    from handrail_tui.view.text import one_line

    bad = rows = 0
    for number, line in enumerate(stream, 1):
        if not line.strip():
            continue
        rows += 1
        try:
            answer = _answer_row(line.decode(errors="replace"), now, zone)
        except ValueError as wrong:
            bad += 1
            click.echo(f"handrail classify: line {number}: {one_line(str(wrong), 300)}", err=True)
        else:
            click.echo(answer)
    if not rows:
        raise click.UsageError("No rows came in. Each line of stdin is a JSON object with at least `text`.")
    return bad


def _answer_row(line: str, now: float, zone: tzinfo | None) -> str:
    """The answer to a row. Raises ValueError that says what is wrong with it."""
    from handrail.recovery.classify import classify as verdict_of
    from handrail_tui.commands._failure_row import read_row

    row = read_row(line)
    at = now if row.now is None else row.now
    return _answer(row.id, verdict_of(row.failure(), now=at, local_zone=row.zone or zone))


def _answer(id_: str | int | None, verdict: Classification) -> str:
    wait_s = round(verdict.guidance.wait_s, 3) if verdict.guidance is not None else None
    return json.dumps({"id": id_, "class": verdict.class_, "wait_s": wait_s})
