"""Cards as data: what one can be about, how urgent it is, what it shows beside that, what a person can choose on it.

A trigger is an event or a `Stall`. The order of urgency, and the widget of each:

    needs you        HumanRequested                       HumanCard, FormCard when it has fields
    approve          ApprovalRequested                    ApprovalCard
    waiting          WaitStarted, decision `wait`         WaitCard
    retrying         WaitStarted, any other decision      RetryCard
    stalled          Stall                                StalledCard
    at a bound       RunFinished by a bound               BoundCard
    failed           RunFinished by a failure             FailedCard
    finished         any other RunFinished                FinishedCard

Among equals the one that has been waiting longest comes first. A card posts a `Choice`; `apply` turns it into
commands to the session.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Literal, Protocol, TypeAlias, get_args

from handrail.events import ApprovalRequested, HumanRequested, RunEnded, RunFinished, WaitStarted
from handrail.policy import Bounds
from handrail.session.protocol import SessionProtocol
from handrail_tui.view.listing import resume_command
from handrail_tui.view.state import ViewState
from handrail_tui.view.text import one_line

BoundKind: TypeAlias = Literal["max_turns", "max_attempts", "deadline_s", "max_total_tokens", "max_cost"]


# Triggers ---------------------------------------------------------------------------------------------------


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
    """What cards show beside their trigger. Empty or None: it is not shown.

    `kept` says in words what of a broken reply stays in view, `journal` is the path of the session, `resume` the
    command that resumes it, times are moments.
    """

    kept: str = ""
    journal: str = ""
    resume: str = ""
    started_at: float | None = None
    limits: Bounds | None = None
    idle_timeout_s: float | None = None


def urgency(trigger: CardTrigger) -> Urgency:
    """How soon a person should see it."""
    match trigger:
        case HumanRequested():
            return Urgency.NEEDS_YOU
        case ApprovalRequested():
            return Urgency.APPROVE
        case WaitStarted():
            return Urgency.WAITING if trigger.decision == "wait" else Urgency.RETRYING
        case Stall():
            return Urgency.STALLED
        case RunFinished(outcome="completed" | "submitted" | "cancelled" | "human-required"):
            return Urgency.FINISHED
        case RunFinished(outcome="turn-limit" | "budget" | "invalid-submissions"):
            return Urgency.AT_A_BOUND if bound_of(trigger) else Urgency.FAILED
        case RunFinished():
            return Urgency.FAILED


def by_urgency(triggers: Iterable[CardTrigger]) -> list[CardTrigger]:
    """The most urgent first; among equals the oldest."""
    return sorted(triggers, key=lambda trigger: (urgency(trigger), _since(trigger)))


def _since(trigger: CardTrigger) -> float:
    return trigger.since if isinstance(trigger, Stall) else trigger.at


def bound_of(finished: RunFinished) -> BoundKind | None:
    """Which bound ended the run; None where it was none."""
    name = (finished.bound or "").replace("-", "_")
    kinds: tuple[BoundKind, ...] = get_args(BoundKind)
    for kind in kinds:
        if name and (name == kind or name in kind or kind in name):
            return kind
    if finished.outcome == "turn-limit":
        return "max_turns"
    return "max_attempts" if finished.outcome == "invalid-submissions" else None


def needs(view: ViewState) -> dict[str, str]:
    """What needs a person now, in words, by its id."""
    asked = {id: f"needs you: {question.needed}" for id, question in view.questions.items()}
    return asked | {id: f"asks: {a.tool} {a.title}" for id, a in view.approvals.items()}


def open_triggers(view: ViewState, now: float, patient_since: float | None) -> list[CardTrigger]:
    """What a card is due for. A stall that began at `patient_since` is one that the person chose to wait for."""
    found: list[CardTrigger] = [*view.questions.values(), *view.approvals.values()]
    if view.wait is not None:
        found.append(view.wait)
    if view.finished is not None:
        found.append(view.finished)
    since = view.last_data_at
    if since is not None and view.stalled(now) and since != patient_since:
        found.append(Stall(since))
    return found


def card_context(view: ViewState, journal: str) -> CardContext:
    """What cards show beside their trigger. `journal` is the path of the session; empty when it is not stored."""
    m, attempt = view.meters, view.turns.attempt
    # Not validated: a view that saw no run yet has no bounds.
    limits = Bounds.model_construct(
        max_turns=m.max_turns,
        max_attempts=m.max_attempts,
        deadline_s=m.deadline_s,
        max_total_tokens=m.max_total_tokens,
        max_cost=m.max_cost,
    )
    outcome = view.finished.outcome if view.finished else None
    return CardContext(
        kept="the words so far were kept" if attempt is not None and attempt.kept else "",
        journal=journal,
        resume=resume_command(view.header.session, outcome) if journal else "",
        started_at=view.watch.started_at,
        limits=limits,
    )


# Choices ----------------------------------------------------------------------------------------------------


@dataclass
class Approve:
    """An approval was answered (rule H5). `text` goes to the model, `pattern` is what was allowed."""

    id: str
    how: Literal["once", "session", "deny"]
    text: str = ""
    pattern: str | None = None


@dataclass
class Answer:
    """A question was answered (rule H3). A secret `text` stays out of logs and of `repr`."""

    id: str
    how: Literal["resolved", "answered", "declined", "cancelled", "stopped"]
    text: str = field(default="", repr=False)
    secret: bool = False


@dataclass
class SkipWait:
    """Ask the provider now instead of waiting for a limit to end (rule U8)."""


@dataclass
class Postpone:
    """Ask the provider at the moment `until` instead (rule U8)."""

    until: float


@dataclass
class RetryNow:
    """Ask again at once: a pause before a retry, a stalled stream, or a final failure."""


@dataclass
class KeepWaiting:
    """A stalled stream may take its time."""


@dataclass
class AnotherModel:
    """Choose another model, then continue."""


@dataclass
class EditKey:
    """Set another key for the provider."""


@dataclass
class RaiseBound:
    """Let the run continue with a bound that is `amount` higher, in the bound's own unit."""

    kind: BoundKind
    amount: float


@dataclass
class Finish:
    """Leave the run as it ended."""


@dataclass
class Close:
    """The card has been read. Its host takes it away; nothing else happens."""


@dataclass
class Stop:
    """Stop the run."""


Choice: TypeAlias = (
    Approve
    | Answer
    | SkipWait
    | Postpone
    | RetryNow
    | KeepWaiting
    | AnotherModel
    | EditKey
    | RaiseBound
    | Finish
    | Close
    | Stop
)


class CardCommands(Protocol):
    """What a choice can ask of a run beside its session."""

    @property
    def session(self) -> SessionProtocol: ...

    @property
    def view(self) -> ViewState: ...

    def drive(self, run: Coroutine[Any, Any, RunEnded]) -> None: ...

    def perform(self, name: str, args: str = "") -> str: ...

    def wait_patiently(self) -> None: ...

    def close_card(self) -> None: ...

    def note(self, words: str) -> None: ...


def apply(choice: Choice, run: CardCommands) -> None:
    """Carry out `choice`."""
    session = run.session
    match choice:
        case Approve():
            session.approve(choice.id, choice.how, choice.text)
        case Answer():
            try:
                session.answer(choice.id, choice.how, choice.text, secret=choice.secret)
            except ValueError as error:  # an answer that does not fit the form
                run.note(one_line(str(error), 300))
        case SkipWait():
            session.skip_wait()
        case Postpone():
            session.postpone_wait(choice.until)
        case RetryNow():
            _retry(run)
        case KeepWaiting():
            run.wait_patiently()
        case AnotherModel():
            run.perform("another_model")
        case EditKey():
            run.note("Set the key (handrail config edit), then press r to try again.")
        case RaiseBound():
            session.raise_bounds(**_raised(choice))
            if not session.running:
                run.drive(session.resume())
        case Stop():
            run.perform("stop")
        case Finish() | Close():
            run.close_card()


def _retry(run: CardCommands) -> None:
    """Ask again: end a pause, give up a stalled stream, or resume a run that failed."""
    if run.view.wait is not None:
        run.session.skip_wait()
    elif run.session.running:
        run.session.retry_now()
    else:
        run.drive(run.session.resume())


def _raised(choice: RaiseBound) -> dict[str, Any]:
    whole = choice.kind in ("max_turns", "max_attempts", "max_total_tokens")
    return {choice.kind: int(choice.amount) if whole else choice.amount}
