"""Cards: above the composer, never a modal over the transcript, one at a time, the most urgent first.

What a card can be about, and in what order, stands in `controller.cards`. `CardHost` shows them: give it the
triggers that are due now, and it keeps, swaps or removes the card.
"""

from __future__ import annotations

from handrail.clock import Clock
from handrail.events import ApprovalRequested, HumanRequested, WaitStarted
from handrail_tui.controller.cards import CardContext, CardTrigger, Stall, Urgency, urgency
from handrail_tui.widgets.cards._approval import ApprovalCard
from handrail_tui.widgets.cards._bound import BoundCard
from handrail_tui.widgets.cards._failed import FailedCard
from handrail_tui.widgets.cards._finished import FinishedCard
from handrail_tui.widgets.cards._form import FormCard
from handrail_tui.widgets.cards._human import HumanCard
from handrail_tui.widgets.cards._retrying import RetryCard
from handrail_tui.widgets.cards._stalled import StalledCard
from handrail_tui.widgets.cards._waiting import WaitCard
from handrail_tui.widgets.cards.base import Card
from handrail_tui.widgets.cards.guard import InputGuard


def card_for(
    trigger: CardTrigger, clock: Clock, guard: InputGuard | None = None, context: CardContext | None = None
) -> Card:
    """The card of `trigger`."""
    context = context or CardContext()
    match trigger:
        case HumanRequested():
            return (FormCard if trigger.fields else HumanCard)(trigger, clock, guard)
        case ApprovalRequested():
            return ApprovalCard(trigger, clock, guard)
        case WaitStarted(decision="wait"):
            return WaitCard(trigger, clock, guard)
        case WaitStarted():
            return RetryCard(trigger, clock, guard, kept=context.kept)
        case Stall():
            return StalledCard(trigger.since, clock, guard, idle_timeout_s=context.idle_timeout_s)
    match urgency(trigger):
        case Urgency.AT_A_BOUND:
            return BoundCard(trigger, clock, guard, limits=context.limits)
        case Urgency.FAILED:
            return FailedCard(trigger, clock, guard)
        case _:
            return FinishedCard(
                trigger,
                clock,
                guard,
                started_at=context.started_at,
                journal=context.journal,
                resume=context.resume,
            )
