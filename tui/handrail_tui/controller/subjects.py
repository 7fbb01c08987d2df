"""What a card may be about now, and what it tells beside it: plain functions of the view."""

from __future__ import annotations

from typing import Any, cast

from handrail.policy import Bounds
from handrail_tui.view.listing import resume_command
from handrail_tui.view.state import ViewState
from handrail_tui.widgets.cards import CardContext, CardTrigger, Stall


def needs(view: ViewState) -> dict[str, str]:
    """What needs a person now, in words, by its id."""
    asked = {id: f"needs you: {question.needed}" for id, question in view.questions.items()}
    return asked | {id: f"asks: {a.tool} {a.title}" for id, a in view.approvals.items()}


def subjects(view: ViewState, now: float, patient_since: float | None) -> list[CardTrigger]:
    """What is open. A stall that began at `patient_since` is one that the person chose to wait for."""
    found: list[CardTrigger] = [*view.questions.values(), *view.approvals.values()]
    if view.wait is not None:
        found.append(view.wait)
    if view.finished is not None:
        found.append(view.finished)
    since = view.last_data_at
    if since is not None and view.stalled(now) and since != patient_since:
        found.append(Stall(since))
    return found


def facts(view: ViewState, journal: str) -> CardContext:
    """What cards tell beside their subject. `journal` is where the session is kept, if it is."""
    m, attempt = view.meters, view.turns.attempt
    # Not validated: a view that saw no run yet has no bounds.
    limits = Bounds.model_construct(
        max_turns=m.max_turns,
        max_attempts=m.max_attempts,
        deadline_s=m.deadline_s,
        max_total_tokens=m.max_total_tokens,
        max_cost=m.max_cost,
    )
    return CardContext(
        advice=_advice(view),
        kept="its words are kept as context" if attempt is not None and attempt.kept else "",
        journal=journal,
        resume=resume_command(view.header.session, view.finished.outcome if view.finished else None)
        if journal
        else "",
        started_at=view.watch.started_at,
        limits=limits,
    )


def _advice(view: ViewState) -> str:
    """What can be done about a failure for good (rule R15)."""
    if view.finished is None or view.finished.class_ is None:
        return ""
    # Imported late: the vendors' wordings cost start-up time, and most runs need none.
    from handrail.recovery.patterns import advise

    return advise(cast("Any", view.finished.class_), (view.finished.error or "").lower())
