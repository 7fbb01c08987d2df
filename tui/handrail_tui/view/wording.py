"""Decisions, attempts and outcomes in plain words. Pure: events in, words out, all of it cleaned."""

from __future__ import annotations

import json

from handrail.events import Decided, Outcome, RunFinished
from handrail_tui.view.items import AttemptItem, Tone
from handrail_tui.view.text import about, count, one_line, plural

_OUTCOMES: dict[Outcome, tuple[str, Tone]] = {
    "completed": ("Done", "accepted"),
    "submitted": ("Value accepted", "accepted"),
    "invalid-submissions": ("No valid submission", "rejected"),
    "cancelled": ("Stopped by you", "waiting"),
    "human-required": ("Ended: only a person can go on", "needs-you"),
    "budget": ("A budget is spent", "waiting"),
    "turn-limit": ("The turn limit is reached", "waiting"),
    "usage-limit": ("A usage limit is reached", "waiting"),
    "provider": ("The provider failed for good", "rejected"),
    "no-submit": ("Ended without a submission", "rejected"),
}
_TONES: dict[str, Tone] = {"wait": "waiting", "ask": "needs-you", "finish": "rejected"}


def outcome(event: RunFinished) -> tuple[str, Tone]:
    """The outcome in plain words and its colour."""
    words, tone = _OUTCOMES.get(event.outcome, (event.outcome, "plain"))
    return (f"{words}, stopped by you" if event.stopped and event.outcome != "cancelled" else words), tone


def said(error: str) -> str:
    """What a provider said: the message in a JSON body, else the text as it came."""
    try:
        body = json.loads(error)
    except (ValueError, RecursionError):
        return error
    while isinstance(body, dict):
        body = body.get("error") or body.get("message") or body.get("detail")
    return body if isinstance(body, str) and body.strip() else error


def decision_tone(event: Decided) -> Tone:
    """The colour of a decision by what it means for a person."""
    if event.decision == "finish" and event.reason in ("completed", "submitted"):
        return "accepted"
    return _TONES.get(event.decision, "decision")


def decision(event: Decided) -> str:
    """What stands behind the decision's word: `1 of 3, in 2 s`, `truncated`, `usage limit, 42 min`."""
    reason = one_line(event.reason, 40).replace("-", " ")
    counted = f"{event.number} of {event.limit}" if event.number is not None and event.limit else ""
    delay = about(event.delay_s) if event.delay_s else ""
    if event.decision in ("retry", "resume"):
        return ", ".join(part for part in (counted or reason, delay and f"in {delay}") if part)
    return ", ".join(part for part in (reason, delay) if part)


def fault(event: Decided, attempt: AttemptItem) -> str:
    """What went wrong with a reply: `the stream broke after 1.2k characters`."""
    after = f" after {plural(attempt.chars, 'character')}" if attempt.chars else ""
    match event.reason:
        case "truncated":
            return f"cut at the output cap{after}"
        case "paused":
            return f"the provider paused{after}"
        case "empty":
            return "the reply was empty"
        case "usage-limit":
            return "the usage limit was reached"
        case "overflow":
            return "the context was full"
        case "transient":
            return f"the stream broke{after}" if after else "the request failed"
        case other:
            return one_line(other, 60).replace("-", " ")


def attempt_heading(event: Decided) -> str:
    """How the next attempt is announced: `attempt 2 of 4`, `resume 1 of 6`, `continued`."""
    match event.decision:
        case "retry" if event.number and event.limit:
            return f"attempt {event.number + 1} of {event.limit + 1}"
        case "resume" if event.number and event.limit:
            return f"resume {event.number} of {event.limit}"
        case "continue":
            return "continued"
        case "compact":
            return "asked again, shorter"
        case "wait":
            return "asked again"
        case _:
            return "next attempt"


def ended(event: RunFinished) -> str:
    """The figures of a whole run on one line."""
    parts = [plural(event.requests, "request")]
    if event.attempts:
        parts.append(plural(event.attempts, "rejected submission"))
    if event.usage.total:
        parts.append(f"{count(event.usage.total)} tokens")
    return " · ".join(parts)
