"""Sessions for a list, those that need a person first. Pure: summaries in, order and words out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from handrail.clock import to_rfc3339
from handrail.session.audit import AuditEntry
from handrail.session.summary import SessionSummary
from handrail.toml import short_path
from handrail_tui.view import wording
from handrail_tui.view.text import about, join, local_time, money, one_line, plural

_ORDER: Final = ("needs_you", "waiting", "running", "interrupted", "finished", "unreadable")
_DAY_S: Final = 86_400.0


def ordered(summaries: Iterable[SessionSummary]) -> list[SessionSummary]:
    """Sorted by state, those that need a person first; within a state the newest first."""
    return sorted(summaries, key=lambda s: (_ORDER.index(s.state), -s.last, s.id))


def state(summary: SessionSummary, now: float) -> str:
    """The state of a session in a few words: `needs you`, `waiting until 14:05`, `running elsewhere`, `done`."""
    held = "running" if summary.running else ""
    match summary.state:
        case "needs_you":
            return join(["needs you", held], ", ")
        case "waiting" if summary.until is not None:
            return join([f"waiting until {local_time(summary.until, now, seconds=False)}", held], ", ")
        case "running":
            return "running elsewhere"
        case "finished":
            end = wording.short_outcome(summary.outcome)
            until = summary.until
            return (
                f"{end} until {local_time(until, now, seconds=False)}"
                if until is not None and until > now
                else end
            )
        case other:
            return other


def age(summary: SessionSummary, now: float) -> str:
    """Time since the last event: `8 s`, `3 min`, `5 h`, `2 days`."""
    passed = max(0.0, now - summary.last)
    return about(round(passed)) if passed < 3570 else _long(passed)


def _long(passed: float) -> str:
    return f"{passed / 3600:.0f} h" if passed < _DAY_S else plural(round(passed / _DAY_S), "day")


def row(summary: SessionSummary, now: float) -> tuple[str, str, str, str, str, str]:
    """State, title, folder, age, turns, cost: the columns of a list."""
    return (
        state(summary, now),
        one_line(summary.title, 60) or "(no prompt)",
        one_line(short_path(Path(summary.cwd)), 40) if summary.cwd else "",
        age(summary, now),
        plural(summary.turns, "turn"),
        money(summary.cost) if summary.cost is not None else "",
    )


def next_step(summary: SessionSummary) -> str:
    """The command to use next."""
    if summary.running:
        return f'handrail answer {summary.id} "…"' if summary.needs else f"handrail stop {summary.id}"
    outcome = "human-required" if summary.needs else summary.outcome
    return resume_command(summary.id, outcome) or f'handrail resume {summary.id} --prompt "…"'


def resume_command(id: str, outcome: str | None) -> str:
    """The command to resume a run by its outcome (None: interrupted); empty for a run that is done."""
    match outcome:
        case "completed" | "submitted":
            return ""
        case "human-required":
            return f'handrail resume {id} --answer "…"'
        case "turn-limit":
            return f"handrail resume {id} --max-turns +10"
        case _:
            return f"handrail resume {id}"


def audit_line(entry: AuditEntry, now: float) -> str:
    """One line of the audit: when, what was said, for which call, by whom, by which pattern."""
    call = one_line(join([entry.tool, entry.title], " "), 200)
    match entry.what:
        case "approval":
            words = f"{wording.approval(entry.how)}: {call}"
        case "question":
            words = f"{wording.answer(entry.how)}: {call}"
        case "mode":
            words = f"approvals: {one_line(entry.how, 40)}"
        case _:
            words = f"ran: {call}, {one_line(entry.how, 200)}"
    pattern = f"pattern {one_line(entry.pattern, 200)}" if entry.pattern else ""
    said = one_line(entry.text, 200) if entry.what == "approval" else ""
    return join([local_time(entry.at, now), join([words, pattern, one_line(entry.by, 80), said], ", ")])


def audit_json(entry: AuditEntry) -> dict[str, Any]:
    """One line of the audit for scripts."""
    return {**asdict(entry), "at": to_rfc3339(entry.at)}


def to_json(summary: SessionSummary) -> dict[str, Any]:
    """A session for scripts. Moments are RFC 3339; null where a field does not apply."""
    return {
        "id": summary.id,
        "state": summary.state,
        "running": summary.running,
        "title": summary.title,
        "cwd": summary.cwd,
        "model": summary.model,
        "started": to_rfc3339(summary.started),
        "last": to_rfc3339(summary.last),
        "outcome": summary.outcome,
        "until": to_rfc3339(summary.until) if summary.until is not None else None,
        "needs": summary.needs,
        "turns": summary.turns,
        "cost": summary.cost,
        "parent": summary.parent,
        "journal": str(summary.path),
    }
