"""Events for the screen: the same facts, with all foreign text cleaned (rule L11)."""

from __future__ import annotations

from dataclasses import replace

from handrail import events as ev
from handrail.events import QueuedMessage
from handrail_tui.view import wording
from handrail_tui.view.items import DecisionItem
from handrail_tui.view.text import clean_for_terminal, clean_long, clean_value, cut_lines, one_line, reveal


def clean_result(event: ev.RunFinished) -> ev.RunFinished:
    """How a run ended."""
    return replace(
        event,
        error=clean_for_terminal(wording.provider_message(event.error)) if event.error else None,
        bound=one_line(event.bound, 60) if event.bound else None,
        value=clean_value(event.value),
        text=clean_for_terminal(event.text) if event.text else event.text,
        session=one_line(event.session, 80) if event.session else None,
        question=clean_question(event.question) if event.question else None,
    )


def clean_question(event: ev.HumanRequested) -> ev.HumanRequested:
    """A question. Its address is revealed: a link must not look shorter than it is."""
    return replace(
        event,
        needed=clean_for_terminal(event.needed),
        where=one_line(reveal(event.where), 2_000),
        tried=clean_for_terminal(event.tried),
        tool=one_line(event.tool, 60) if event.tool else None,
        fields=tuple(
            replace(field, label=one_line(field.label, 100), help=clean_for_terminal(field.help))
            for field in event.fields
        ),
    )


def clean_approval(event: ev.ApprovalRequested) -> ev.ApprovalRequested:
    """A call that needs approval. What the person decides on is revealed, not shortened."""
    return replace(
        event,
        tool=one_line(event.tool, 60),
        title=one_line(reveal(event.title), 400),
        detail=reveal(event.detail),
        arguments=clean_value(event.arguments, reveal),
        diff=reveal(event.diff) if event.diff else None,
        why=one_line(event.why, 400),
        pattern=one_line(reveal(event.pattern), 400) if event.pattern else None,
        covers=one_line(reveal(event.covers), 400),
        asks_again=one_line(reveal(event.asks_again), 400),
    )


def clean_queue(messages: tuple[QueuedMessage, ...]) -> tuple[QueuedMessage, ...]:
    """The messages of a queue."""
    return tuple(QueuedMessage(m.id, clean_for_terminal(m.text)) for m in messages)


def decision_item(event: ev.Decided) -> DecisionItem:
    """A decision as a line of the decisions column, and its details for the inspector."""
    return DecisionItem(
        event.at,
        event.decision,
        wording.decision_tone(event),
        wording.decision(event),
        one_line(event.why, 400),
        event.turn,
        failure=cut_lines(clean_long(event.failure.text)) if event.failure else "",
        evidence=tuple((one_line(str(k), 40), one_line(str(v), 400)) for k, v in event.evidence.items()),
        before=event.before,
        after=event.after,
    )
