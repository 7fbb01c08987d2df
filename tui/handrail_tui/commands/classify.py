"""`handrail classify`: what recovery makes of a failure, and why (rule K5)."""

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
    from handrail.recovery.classify import Verdict
    from handrail.recovery.decide import Decision


class Header(click.ParamType[tuple[str, str]]):
    """`Name: value`, as HTTP writes it."""

    name = "header"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        key, colon, content = str(value).partition(":")
        if not colon or not key.strip():
            self.fail(f"{value!r} is no header; write it as NAME:VALUE.", param, ctx)
        return key.strip().lower(), content.strip()


class Zone(click.ParamType[tzinfo]):
    """The name of a time zone."""

    name = "zone"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tzinfo:
        from handrail.recovery.wallclock import zone_named

        zone = value if isinstance(value, tzinfo) else zone_named(str(value))
        if zone is None:
            self.fail(f"there is no time zone {value!r}; Europe/Berlin is one.", param, ctx)
        return zone


@click.command()
@click.argument("text", required=False)
@click.option("--provider", metavar="NAME", help="The provider's name; some sentences mean two things.")
@click.option("--status", type=click.IntRange(100, 599), metavar="N", help="The HTTP status.")
@click.option(
    "--header", "headers", type=Header(), multiple=True, metavar="K:V", help="A header; repeatable."
)
@click.option(
    "--phase",
    type=click.Choice(["connect", "response", "stream"]),
    default="response",
    show_default=True,
    help="How far the call had come.",
)
@click.option(
    "--now", type=click.DateTime(["%Y-%m-%dT%H:%M:%S%z"]), metavar="RFC3339", help="Take this as now."
)
@click.option("--zone", type=Zone(), metavar="NAME", help="The zone of clock times without one.")
@click.option("--json", "as_json", is_flag=True, help="JSON rows from stdin, one answer a line.")
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
    """What recovery makes of a failure: its class, why, when to ask again, and what would be done.

    Without TEXT the failure is read from a pipe. With --json stdin holds rows: text, and where known id, provider,
    phase, status, headers, now, local_zone. Each is answered by {"id", "class", "wait_s"}; wait_s is without margins
    and null where no moment is named. A row that cannot be read is named on stderr, and the exit code is 2.

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
            raise click.UsageError('Say what failed: handrail classify "TEXT", or pipe it in.')
        text = sys.stdin.buffer.read().decode(errors="replace").strip()
    failure = Failure(clean(text), provider=provider, phase=phase, status=status, headers=dict(headers))
    verdict = verdict_of(failure, now=moment, local_zone=zone)
    if as_json:
        click.echo(_answer(None, verdict))
        return
    for label, words in _report(failure, verdict, moment, zone):
        click.echo(f"{label:<10} {words}")


# -- for people -------------------------------------------------------------------------------------------------------


def _report(failure: Failure, verdict: Verdict, now: float, zone: tzinfo | None) -> Iterator[tuple[str, str]]:
    from handrail.policy import RecoveryPolicy
    from handrail.recovery.decide import Facts, decide, fresh
    from handrail_tui.view.text import about, one_line

    yield "class", verdict.class_
    yield "why", one_line(verdict.why, 400)
    guidance = verdict.guidance
    if guidance is not None:
        rounded = "about " if guidance.rounded else ""
        when = f"{rounded}{about(guidance.wait_s)} from now, {_clock(guidance.at, zone)}"
        yield "guidance", f"{when} ({one_line(guidance.source, 200)})"
    elif verdict.class_ in ("transient", "usage_limit"):
        yield "guidance", "none: the provider names no moment"
    policy = RecoveryPolicy()
    decision = decide(Facts("error", verdict=verdict, failure=failure), fresh(), policy, now)
    yield "recovery", _plan(decision, policy, zone)
    if verdict.advice:
        yield "advice", verdict.advice


def _plan(decision: Decision | None, policy: RecoveryPolicy, zone: tzinfo | None) -> str:
    """What recovery would do with its defaults, in words."""
    from handrail_tui.view.text import about

    if decision is None:
        return "nothing to recover: the loop goes on"
    resumes = f"{policy.stream_retries} resumes after " + ", ".join(about(d) for d in policy.resume_delays_s)
    match decision.kind:
        case "continue":
            return (
                f"asks for the rest at once, with what was said so far (at most {policy.max_resumes} times)"
            )
        case "retry":
            first = about(decision.delay_s)
            return f"asks again in {first}; at most {policy.retries} retries, each later, then {resumes}"
        case "resume":
            return f"asks again in {about(decision.delay_s)}; at most {resumes}"
        case "compact":
            return "summarises the older turns and asks again, once for each message of yours"
        case "wait" if decision.poll is not None:
            window = about(policy.poll_window_s)
            return (
                f"asks again every {about(policy.poll_s)}, at most {policy.max_polls} times and {window} long"
            )
        case "wait" if decision.until is not None:
            return f"waits {about(decision.delay_s)}, till {_clock(decision.until, zone)}, then goes on"
        case _ if decision.reason == "usage-limit":
            return (
                f"does not wait longer than {about(policy.max_wait_s)} (--max-wait): ends, and can be resumed"
            )
        case _:
            return f"ends the run: {decision.reason.replace('_', ' ').replace('-', ' ')}; the session can be resumed"


def _clock(moment: float, zone: tzinfo | None) -> str:
    return datetime.fromtimestamp(moment).astimezone(zone).strftime("%a %d %b %Y %H:%M:%S %Z")


# -- for scripts ------------------------------------------------------------------------------------------------------


def _answer_rows(stream: BinaryIO, now: float, zone: tzinfo | None) -> int:
    """Answer each row of `stream` and say on stderr what is wrong with a bad one. Returns how many were bad."""
    from handrail_tui.view.text import one_line

    bad = 0
    for number, line in enumerate(stream, 1):
        if not line.strip():
            continue
        try:
            answer = _answer_row(line.decode(errors="replace"), now, zone)
        except ValueError as wrong:
            bad += 1
            click.echo(f"handrail classify: line {number}: {one_line(str(wrong), 300)}", err=True)
        else:
            click.echo(answer)
    return bad


def _answer_row(line: str, now: float, zone: tzinfo | None) -> str:
    """The answer to a row. Raises ValueError that says what is wrong with it."""
    from handrail.recovery.classify import classify as verdict_of
    from handrail_tui.commands.failure_row import read_row

    row = read_row(line)
    at = now if row.now is None else row.now
    return _answer(row.id, verdict_of(row.failure(), now=at, local_zone=row.zone or zone))


def _answer(id_: str | int | None, verdict: Verdict) -> str:
    wait_s = round(verdict.guidance.wait_s, 3) if verdict.guidance is not None else None
    return json.dumps({"id": id_, "class": verdict.class_, "wait_s": wait_s})
