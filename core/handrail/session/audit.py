"""Who allowed what in a session, when, and by which pattern (rule H6): a fold over its events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from handrail import events as ev


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One line of the audit.

    `what` is an answered approval, an answered question, a change of the approval mode, or a call that ran without an
    approval of its own. `how` is the answer, the mode, or why the call was allowed; `by` a user and a terminal, empty
    for a call and where nobody was there.
    """

    at: float
    what: Literal["approval", "question", "mode", "ran"]
    how: str
    by: str = ""
    tool: str = ""
    title: str = ""
    pattern: str | None = None
    text: str = ""


def audit(events: Iterable[ev.Event]) -> Iterator[AuditEntry]:
    """The audit of a session, in order. Calls that only read inside the working folder are left out."""
    approvals: dict[str, ev.ApprovalRequested] = {}
    questions: dict[str, ev.HumanRequested] = {}
    for event in events:
        match event:
            case ev.RunStarted():
                yield AuditEntry(event.at, "mode", event.approve)
            case ev.SettingsChanged(approve=str(mode)):
                yield AuditEntry(event.at, "mode", mode, event.by)
            case ev.ApprovalRequested():
                approvals[event.id] = event
            case ev.ApprovalAnswered():
                asked = approvals.get(event.id)
                tool, title = (asked.tool, asked.title) if asked else ("", "")
                yield AuditEntry(
                    event.at, "approval", event.how, event.by, tool, title, event.pattern, event.text
                )
            case ev.HumanRequested():
                questions[event.id] = event
            case ev.HumanAnswered():
                question = questions.get(event.id)
                needed = question.needed if question else ""
                yield AuditEntry(event.at, "question", event.how, event.by, title=needed, text=event.text)
            case ev.ToolStarted() if event.allowed not in ("", "reads", "once"):
                yield AuditEntry(event.at, "ran", event.allowed, tool=event.name, title=event.title)
            case _:
                pass
