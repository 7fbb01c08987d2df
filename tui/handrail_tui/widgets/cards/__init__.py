"""Cards: above the composer, never a modal over the transcript, one at a time, the most urgent first.

What a card can be about is its subject: an event, or a `Stall`. The order of urgency, and the card of each:

    needs you        HumanRequested                       HumanCard
    approve          ApprovalRequested                    ApprovalCard
    waiting          WaitStarted, decision `wait`         WaitCard
    retrying         WaitStarted, any other decision      RetryCard
    stalled          Stall                                StalledCard
    at a bound       RunFinished by a bound               BoundCard
    failed           RunFinished by a failure             FailedCard
    finished         any other RunFinished                FinishedCard

Among equals the one that has been waiting longest comes first. `CardHost` does all this: give it the subjects
that are open now, and it keeps, swaps or takes away the card.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from handrail.clock import Clock
from handrail.events import ApprovalRequested, HumanRequested, RunFinished, WaitStarted
from handrail.policy import Bounds
from handrail_tui.widgets.cards.approval import ApprovalCard
from handrail_tui.widgets.cards.base import Card
from handrail_tui.widgets.cards.bound import BoundCard, bound_of
from handrail_tui.widgets.cards.failed import FailedCard
from handrail_tui.widgets.cards.finished import FinishedCard
from handrail_tui.widgets.cards.guard import InputGuard
from handrail_tui.widgets.cards.human import HumanCard
from handrail_tui.widgets.cards.retrying import RetryCard
from handrail_tui.widgets.cards.stalled import StalledCard
from handrail_tui.widgets.cards.waiting import WaitCard

__all__ = [
    "ApprovalCard",
    "BoundCard",
    "Card",
    "CardContext",
    "CardTrigger",
    "FailedCard",
    "FinishedCard",
    "HumanCard",
    "InputGuard",
    "RetryCard",
    "Stall",
    "StalledCard",
    "Urgency",
    "WaitCard",
    "by_urgency",
    "card_for",
    "urgency",
]


@dataclass(frozen=True, slots=True)
class Stall:
    """A stream without data since the moment `since`."""

    since: float


CardTrigger: TypeAlias = HumanRequested | ApprovalRequested | WaitStarted | Stall | RunFinished


class Urgency(IntEnum):
    """The order of cards; the lowest comes first."""

    NEEDS_YOU = 1
    APPROVE = 2
    WAITING = 3
    RETRYING = 4
    STALLED = 5
    AT_A_BOUND = 6
    FAILED = 7
    FINISHED = 8


@dataclass(frozen=True, slots=True)
class CardContext:
    """What cards show beside their subject. Empty or None: it is not shown.

    `kept` says in words what of a broken reply stays in view, `advice` what can be done about a failure,
    `journal` is the path of the session, `resume` the command that goes on with it, times are moments.
    """

    kept: str = ""
    advice: str = ""
    journal: str = ""
    resume: str = ""
    started_at: float | None = None
    limits: Bounds | None = None
    idle_timeout_s: float | None = None


def urgency(subject: CardTrigger) -> Urgency:
    """How soon a person should see it."""
    match subject:
        case HumanRequested():
            return Urgency.NEEDS_YOU
        case ApprovalRequested():
            return Urgency.APPROVE
        case WaitStarted():
            return Urgency.WAITING if subject.decision == "wait" else Urgency.RETRYING
        case Stall():
            return Urgency.STALLED
        case RunFinished(outcome="completed" | "submitted" | "cancelled" | "human-required"):
            return Urgency.FINISHED
        case RunFinished(outcome="turn-limit" | "budget" | "invalid-submissions"):
            return Urgency.AT_A_BOUND if bound_of(subject) else Urgency.FAILED
        case RunFinished():
            return Urgency.FAILED


def by_urgency(subjects: Iterable[CardTrigger]) -> list[CardTrigger]:
    """The most urgent first; among equals the oldest."""
    return sorted(subjects, key=lambda subject: (urgency(subject), _since(subject)))


def _since(subject: CardTrigger) -> float:
    return subject.since if isinstance(subject, Stall) else subject.at


def card_for(
    subject: CardTrigger, clock: Clock, guard: InputGuard | None = None, facts: CardContext | None = None
) -> Card:
    """The card of `subject`."""
    facts = facts or CardContext()
    match subject:
        case HumanRequested():
            return HumanCard(subject, clock, guard)
        case ApprovalRequested():
            return ApprovalCard(subject, clock, guard)
        case WaitStarted(decision="wait"):
            return WaitCard(subject, clock, guard)
        case WaitStarted():
            return RetryCard(subject, clock, guard, kept=facts.kept)
        case Stall():
            return StalledCard(subject.since, clock, guard, idle_timeout_s=facts.idle_timeout_s)
    match urgency(subject):
        case Urgency.AT_A_BOUND:
            return BoundCard(subject, clock, guard, limits=facts.limits)
        case Urgency.FAILED:
            return FailedCard(subject, clock, guard, advice=facts.advice)
        case _:
            return FinishedCard(
                subject,
                clock,
                guard,
                started_at=facts.started_at,
                journal=facts.journal,
                resume=facts.resume,
            )
