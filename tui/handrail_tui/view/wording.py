"""What happened, in plain words: the one place for outcomes, failures, decisions and answers. All of it is cleaned."""

from __future__ import annotations

import json
from typing import Final, Literal, NamedTuple

from handrail.events import BudgetSpent, Decided, Outcome, RunFinished, ToolsChanged
from handrail.messages import FAILURE_WORDS
from handrail_tui.view.items import AttemptItem, Tone
from handrail_tui.view.text import about, count, join, one_line, plural


class _OutcomeWords(NamedTuple):
    """`sentence` says how a run ended, `short` says it in a list."""

    sentence: str
    short: str
    tone: Tone


_OUTCOMES: Final[dict[Outcome, _OutcomeWords]] = {
    "completed": _OutcomeWords("Done", "done", "accepted"),
    "submitted": _OutcomeWords("Value accepted", "done", "accepted"),
    "invalid-submissions": _OutcomeWords("No valid submission", "no valid value", "rejected"),
    "cancelled": _OutcomeWords("Stopped by you", "stopped", "waiting"),
    "human-required": _OutcomeWords("Ended: a person is needed", "needs you", "needs-you"),
    "budget": _OutcomeWords("Budget used up", "budget used up", "waiting"),
    "turn-limit": _OutcomeWords("Turn limit reached", "turn limit", "waiting"),
    "usage-limit": _OutcomeWords("Usage limit reached", "usage limit", "waiting"),
    "provider": _OutcomeWords("The provider failed", "provider failed", "rejected"),
    "no-submit": _OutcomeWords("Ended without a submission", "no value", "rejected"),
}

_REASONS: Final = {
    "refused-piece": "a picture was refused",
    "truncated": "cut at the output limit",
    "paused": "the provider paused",
    "empty": "empty reply",
    "usage-limit": "usage limit",
    "overflow": "context full",
}

_ALLOWANCES: Final = {"continues": "continuations", "guided_waits": "waits"}

_STOP_REASONS: Final = {
    "error": "the request failed",
    "refusal": "the model refused",
    "aborted": "stopped",
    "length": "cut at the output limit",
    "content_filter": FAILURE_WORDS["content_filter"],
}

_ANSWERS: Final = {
    "resolved": "done",
    "answered": "answered",
    "declined": "cannot",
    "cancelled": "put away without a decision",
    "stopped": "stopped the run",
    "nobody": "nobody was there to answer",
    "withdrawn": "the question was withdrawn",
}

_APPROVALS: Final = {
    "once": "allowed once",
    "session": "allowed for this session",
    "deny": "denied",
    "stopped": "not answered: the run was stopped",
    "nobody": "denied: nobody was there to ask",
}

_TONES: Final[dict[str, Tone]] = {"wait": "waiting", "ask": "needs-you", "finish": "rejected"}


def outcome(event: RunFinished) -> tuple[str, Tone]:
    """How the run ended, in plain words, and the colour for it."""
    words = _OUTCOMES.get(event.outcome)
    if words is None:
        return one_line(event.outcome, 60), "plain"
    sentence = words.sentence
    if event.outcome == "provider" and event.class_:
        sentence = f"Failed: {failure(event.class_)}"
    stopped = event.stopped and event.outcome != "cancelled"
    return f"{sentence}, stopped by you" if stopped else sentence, words.tone


def short_outcome(name: str | None) -> str:
    """How a run ended, for a list."""
    known = {str(outcome): words.short for outcome, words in _OUTCOMES.items()}
    return known.get(name or "") or one_line(name or "", 20)


def failure(class_: str) -> str:
    """A class of failure in plain words."""
    return FAILURE_WORDS.get(class_) or one_line(class_, 40).replace("_", " ")


def reply_end(stop_reason: str, detail: str | None = None) -> str:
    """Why a reply ended early; empty for a reply that ended as it should."""
    if stop_reason in ("stop", "tool_use"):
        return ""
    words = _STOP_REASONS.get(stop_reason) or one_line(stop_reason, 60).replace("_", " ")
    return f"{words} ({one_line(detail, 120)})" if detail else words


def answer(how: str) -> str:
    """How a question was answered."""
    return _ANSWERS.get(how, one_line(how, 20))


def tools_changed(event: ToolsChanged) -> str:
    """What happened to a server's tools, in a line."""
    name, number = one_line(event.server, 40), len(event.added)
    why = f": {one_line(event.why, 300)}" if event.why else ""
    match event.state:
        case "starting":
            return f"{name} is still starting; its tools join later"
        case "failed":
            return f"{name} does not work{why}"
        case "off":
            return f"{name} is switched off"
    parts = [f"{number} {'tool' if number == 1 else 'tools'} joined"] if number else []
    if event.removed:
        parts.append(f"{len(event.removed)} left")
    return f"{name}: {', '.join(parts) or event.state} ({event.of} now)"


def approval(how: str) -> str:
    """How an approval was answered."""
    return _APPROVALS.get(how, one_line(how, 20))


def provider_message(error: str) -> str:
    """What a provider said: the message in a JSON body, else the text as it came."""
    try:
        body = json.loads(error)
    except (ValueError, RecursionError):
        return error
    while isinstance(body, dict):
        body = body.get("error") or body.get("message") or body.get("detail")
    return body if isinstance(body, str) and body.strip() else error


def decision_tone(event: Decided) -> Tone:
    """The colour of a decision: what it means for a person."""
    if event.decision == "finish" and event.reason in ("completed", "submitted"):
        return "accepted"
    return _TONES.get(event.decision, "decision")


def reason(name: str) -> str:
    """The reason of a decision or a wait in plain words."""
    return (
        _REASONS.get(name)
        or FAILURE_WORDS.get(name)
        or one_line(name, 40).replace("-", " ").replace("_", " ")
    )


def decision(event: Decided) -> str:
    """What follows the decision's name: `1 of 3, in 2 s`, `cut at the output limit`, `usage limit, 42 min`."""
    if event.decision == "finish":
        return short_outcome(event.reason) if event.reason in _OUTCOMES else failure(event.reason)
    words = reason(event.reason)
    counted = f"{event.number} of {event.limit}" if event.number is not None and event.limit else ""
    delay = about(event.delay_s) if event.delay_s else ""
    if event.decision in ("retry", "resume"):
        return join((counted or words, delay and f"in {delay}"), ", ")
    return join((words, delay), ", ")


def fault(event: Decided, attempt: AttemptItem) -> str:
    """What went wrong with a reply: `connection lost after 1.2k characters`."""
    after = f" after {plural(attempt.chars, 'character')}" if attempt.chars else ""
    match event.reason:
        case "truncated" | "paused":
            return f"{reason(event.reason)}{after}"
        case "empty":
            return "the reply was empty"
        case "usage-limit":
            return "usage limit reached"
        case "overflow":
            return "the context was full"
        case "transient":
            return f"connection lost{after}" if after else "the request failed"
        case other:
            return failure(other)


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
            return "retried with a summary"
        case "wait":
            return "asked again"
        case _:
            return "next attempt"


def totals(event: RunFinished) -> str:
    """The figures of a whole run on one line."""
    parts = [plural(event.requests, "request")]
    if event.attempts:
        parts.append(plural(event.attempts, "rejected submission"))
    if event.usage.total:
        parts.append(f"{count(event.usage.total)} tokens")
    return " · ".join(parts)


def allowance_used_up(event: BudgetSpent) -> str:
    """Which allowance of recovery is used up: `no resumes left (6 of 6)`."""
    name = _ALLOWANCES.get(event.which) or one_line(event.which, 60).replace("_", " ")
    return f"no {name} left ({event.spent} of {event.limit})"


def no_progress(what: Literal["call", "reply"], name: str, times: int) -> str:
    """Why a run counts as stuck."""
    same = f"the same result of {one_line(name, 60)}" if what == "call" else "the same reply"
    return f"no progress: {same} {times} times in a row"
