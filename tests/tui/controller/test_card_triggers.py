"""Cards as data: which comes first, and what each choice does to the session."""

from __future__ import annotations

import pytest

from handrail.clock import EPOCH
from handrail.events import ApprovalRequested, HumanRequested, RunFinished, WaitStarted
from handrail_tui.controller.cards import CardTrigger, Stall, Urgency, bound_of, by_urgency, urgency

HUMAN = HumanRequested(
    id="h1",
    kind="captcha",
    needed="Solve it.",
    where="https://shop.example/login",
    tried="the token",
    at=EPOCH,
)
BASH = ApprovalRequested(
    id="a1",
    call_id="c1",
    tool="bash",
    title="pytest -q",
    why="it runs something",
    pattern="pytest …",
    at=EPOCH,
)
LIMIT = WaitStarted(seconds=2550, until=EPOCH + 2550, reason="usage-limit", words="try later", at=EPOCH)
RETRY = WaitStarted(
    seconds=4,
    until=EPOCH + 4,
    decision="retry",
    reason="transient",
    words="it broke",
    number=2,
    limit=3,
    at=EPOCH,
)
BOUND = RunFinished(outcome="turn-limit", bound="max_turns", at=EPOCH)
AUTH = RunFinished(outcome="provider", class_="auth", error="401 bad key", at=EPOCH)
VALUE = RunFinished(outcome="submitted", value={"answer": 42}, requests=3, at=EPOCH)


def test_the_most_urgent_comes_first_and_among_equals_the_oldest() -> None:
    older = HumanRequested(id="h0", kind="login", needed="x", at=EPOCH - 10)
    everything: list[CardTrigger] = [VALUE, AUTH, BOUND, Stall(EPOCH), RETRY, LIMIT, BASH, HUMAN, older]
    ordered = by_urgency(everything)
    assert ordered[:2] == [older, HUMAN]
    assert [urgency(trigger) for trigger in ordered[1:]] == list(Urgency)


@pytest.mark.parametrize(
    ("finished", "expected"),
    [
        (RunFinished(outcome="completed"), Urgency.FINISHED),
        (RunFinished(outcome="cancelled"), Urgency.FINISHED),
        (RunFinished(outcome="human-required"), Urgency.FINISHED),
        (RunFinished(outcome="budget", bound="max_cost"), Urgency.AT_A_BOUND),
        (RunFinished(outcome="budget"), Urgency.FAILED),
        (RunFinished(outcome="invalid-submissions"), Urgency.AT_A_BOUND),
        (RunFinished(outcome="usage-limit"), Urgency.FAILED),
        (RunFinished(outcome="no-submit"), Urgency.FAILED),
    ],
)
def test_each_outcome_has_its_card(finished: RunFinished, expected: Urgency) -> None:
    assert urgency(finished) is expected


@pytest.mark.parametrize(
    ("bound", "kind"),
    [
        ("max_turns", "max_turns"),
        ("max-turns", "max_turns"),
        ("deadline", "deadline_s"),
        ("deadline_s", "deadline_s"),
        ("max_total_tokens", "max_total_tokens"),
        ("cost", "max_cost"),
        ("no_progress", None),
        (None, None),
    ],
)
def test_L3_the_bound_that_ended_a_run_is_found_by_its_name(bound: str | None, kind: str | None) -> None:
    assert bound_of(RunFinished(outcome="budget", bound=bound)) == kind
