"""After a reply: what next? One pure function from plain data to a decision (house law 2, rules R1 to R6, U1 to U6).

The order of `decide` is the order of rule R1. Each branch is one function below it, in that order. None means that
there is nothing to recover: the loop's own rules go on.
"""

from __future__ import annotations

from dataclasses import dataclass

from handrail import events
from handrail.events import Ledger
from handrail.messages import Failure, FailureClass, StopReason
from handrail.policy import RecoveryPolicy
from handrail.recovery import ledger as ledgers
from handrail.recovery._advice import advise
from handrail.recovery.classify import Classification
from handrail.recovery.moments.guidance import MARGINS_S, Guidance

PERMANENT: frozenset[str] = frozenset({"auth", "billing", "content_filter", "invalid_request", "unknown"})
AGAIN_S = 30.0  # the first further wait for a moment that was waited for (rule U1)
FULL = 0.9  # a window filled this far is full (rule R3)


@dataclass(frozen=True, slots=True)
class Facts:
    """What `decide` needs of a finished reply. Token counts are None where unknown; `cap` is the asked-for output cap.

    `tail`: a terminating batch would end a free run with a call as its last word. `paused`: the provider paused a long
    reply and asks to be asked again. `refused` names the call whose picture the provider refuses (rule W6).
    """

    stop_reason: StopReason
    blank: bool = False
    calls: int = 0
    classification: Classification | None = None
    failure: Failure | None = None
    tail: bool = False
    paused: bool = False
    context: int | None = None
    output: int | None = None
    cap: int | None = None
    window: int | None = None
    chars: int = 0
    refused: str | None = None

    @property
    def good(self) -> bool:
        """A good reply: stop or tool_use, and not empty."""
        return self.stop_reason in ("stop", "tool_use") and not self.empty

    @property
    def empty(self) -> bool:
        """A stop whose text is blank and that holds no call (rule R5; a tool_use without a call is no better), or an
        error that says so."""
        ended = self.stop_reason in ("stop", "tool_use")
        return (ended and self.blank and not self.calls) or self.class_ == "empty"

    @property
    def class_(self) -> FailureClass | None:
        return self.classification.class_ if self.classification else None

    @property
    def guidance(self) -> Guidance | None:
        return self.classification.guidance if self.classification else None


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do, why, and what it costs. `after` is the ledger once the request is made (rule R11), `advice` what a
    person can do about a permanent failure (rule R15), `piece` the call whose pictures leave the view (rule W6)."""

    kind: events.DecisionKind
    reason: events.Reason
    why: str
    after: Ledger
    class_: str | None = None
    delay_s: float = 0.0
    until: float | None = None
    number: int | None = None
    limit: int | None = None
    omits: bool = True
    spent: str | None = None
    guidance: Guidance | None = None
    poll: int | None = None
    advice: str = ""
    piece: str | None = None


@dataclass(frozen=True, slots=True)
class _Case:
    facts: Facts
    ledger: Ledger
    policy: RecoveryPolicy
    now: float
    steering: bool

    @property
    def on(self) -> bool:
        return self.policy.enabled


def decide(
    facts: Facts, ledger: Ledger, policy: RecoveryPolicy, now: float, *, steering: bool = False
) -> Decision | None:
    """What to do after a reply (rule R1). `now` is in seconds since the epoch; `steering` says that a message of the
    person waits to go with the next request."""
    case = _Case(facts, ledger, policy, now, steering)
    if facts.stop_reason == "aborted" or facts.class_ == "cancelled":
        return _finish(case, "cancelled", "the reply was stopped")
    if facts.stop_reason == "refusal":
        return _finish(case, "content_filter", "the model refused")
    if facts.refused is not None and case.on and ledgers.may_continue(ledger, policy):
        return _without_piece(case, facts.refused)
    if facts.class_ in PERMANENT:
        return _finish(case, facts.class_, facts.classification.why if facts.classification else "")
    if facts.class_ == "context_overflow" or _cut_by_window(facts, policy):
        return _overflow(case)
    if facts.stop_reason == "length" or facts.class_ == "output_truncated":
        return _truncated(case)
    if facts.class_ == "usage_limit":
        return _limited(case)
    if facts.class_ == "transient":
        return _transient(case)
    if facts.paused and facts.stop_reason == "stop" and not facts.calls:
        return _paused(case)
    if facts.empty:
        return _empty(case)
    if facts.tail:
        return _tail(case)
    return None


def _finish(
    case: _Case, class_: str, why: str, *, reason: str | None = None, spent: str | None = None
) -> Decision:
    found = case.facts.classification
    advice = found.advice if found is not None and found.class_ == class_ else advise(class_, "")
    return Decision(
        "finish",
        reason or class_,
        why,
        case.ledger,
        class_,
        spent=spent,
        guidance=case.facts.guidance,
        advice=advice,
    )


def _cut_by_window(facts: Facts, policy: RecoveryPolicy) -> bool:
    """A cut that more output allowance would not mend: the window itself is full (rule R3)."""
    if facts.stop_reason != "length" or not (policy.enabled and policy.compaction):
        return False
    known = facts.cap is not None and facts.window is not None
    if not known or facts.context is None or facts.output is None:
        return False
    assert facts.cap is not None and facts.window is not None
    return facts.output < facts.cap and facts.context + facts.output >= FULL * facts.window


def _overflow(case: _Case) -> Decision:
    why = case.facts.classification.why if case.facts.classification else "the window is full"
    if not case.on or not case.policy.compaction:
        return _finish(case, "context_overflow", why)
    if case.ledger.compactions >= 1 or case.ledger.unbroken >= case.policy.hard_cap:
        return _finish(case, "context_overflow", f"{why}; a compaction did not help", spent="compactions")
    after = ledgers.spend_compaction(case.ledger)
    return Decision("compact", "overflow", why, after, "context_overflow", number=1, limit=1)


def _truncated(case: _Case) -> Decision | None:
    facts = case.facts
    why = (
        f"the output cap cut the reply after {facts.output} tokens"
        if facts.output
        else "the output cap cut the reply"
    )
    if not case.on:
        # An ordinary tool turn (rule L4): the calls were not executed, and their results say so.
        return (
            None if facts.calls and facts.stop_reason == "length" else _finish(case, "output_truncated", why)
        )
    if not ledgers.may_continue(case.ledger, case.policy):
        return _finish(case, "output_truncated", f"{why}; the allowance is spent", spent="continues")
    after = ledgers.spend_continue(case.ledger)
    return Decision(
        "continue", "truncated", why, after, "output_truncated", number=_used(after), limit=_limit(case)
    )


def _limited(case: _Case) -> Decision:
    failure, policy, ledger, now = case.facts.classification, case.policy, case.ledger, case.now
    why = failure.why if failure else ""
    guidance = case.facts.guidance
    if not case.on:
        return _finish(case, "usage_limit", why, reason="usage-limit")
    if guidance is not None:
        if not _waits(policy, max(guidance.wait_s, _again_s(case, guidance))):
            longest = f"{policy.max_wait_s / 3600:g} h"
            return _finish(case, "usage_limit", f"{why}; further away than {longest}", reason="usage-limit")
        after = ledgers.spend_guided_wait(ledger, guidance.at, limit=True, now=now)
        if after.guided_waits > policy.max_guided_waits:
            return _finish(case, "usage_limit", why, reason="usage-limit", spent="guided_waits")
        return _guided_wait(case, "usage-limit", guidance, after, why)
    since = ledger.limited_since if ledger.limited_since is not None else now
    due = now + policy.poll_s
    if not _waits(policy, policy.poll_s):
        return _finish(case, "usage_limit", why, reason="usage-limit")
    if ledger.polls >= policy.max_polls or due > since + policy.poll_window_s:
        return _finish(case, "usage_limit", f"{why}; polled long enough", reason="usage-limit", spent="polls")
    after = ledgers.spend_poll(ledger, now=now)
    return _wait(case, "usage-limit", due, after, why, after.polls, policy.max_polls, poll=after.polls)


def _again_s(case: _Case, guidance: Guidance) -> float:
    """The pause before the moment is asked about once more: 30 s, then 60, 120 … (rule U1). 0 the first time."""
    again = ledgers.waits_again(case.ledger, guidance.at) and guidance.at <= case.now
    return AGAIN_S * 2.0 ** min(case.ledger.waits_for_it - 1, 20) if again else 0.0


def _guided_wait(case: _Case, reason: str, guidance: Guidance, after: Ledger, why: str) -> Decision:
    again = _again_s(case, guidance)
    until = case.now + again if again else max(guidance.due(), case.now + MARGINS_S["second"])
    return _wait(case, reason, until, after, why, after.guided_waits, case.policy.max_guided_waits)


def _waits(policy: RecoveryPolicy, seconds: float) -> bool:
    """Whether a wait of this length is allowed (rule U5; 0 = never wait)."""
    return policy.max_wait_s > 0 and seconds <= policy.max_wait_s


def _wait(
    case: _Case,
    reason: str,
    until: float,
    after: Ledger,
    why: str,
    number: int,
    limit: int,
    poll: int | None = None,
) -> Decision:
    return Decision(
        "wait",
        reason,
        why,
        after,
        case.facts.class_,
        delay_s=max(0.0, until - case.now),
        until=until,
        number=number,
        limit=limit,
        guidance=case.facts.guidance,
        poll=poll,
    )


def _transient(case: _Case) -> Decision:
    policy, ledger, guidance = case.policy, case.ledger, case.facts.guidance
    why = case.facts.classification.why if case.facts.classification else ""
    if not case.on:
        return _finish(case, "transient", why)
    hint = guidance.wait_s if guidance else 0.0
    if guidance and hint > policy.long_hint_s:
        if not _waits(policy, hint):
            return _finish(case, "transient", f"{why}; the server asks for a longer wait than allowed")
        after = ledgers.spend_guided_wait(ledger, guidance.at, limit=False, now=case.now)
        if after.guided_waits > policy.max_guided_waits or ledger.unbroken >= policy.hard_cap:
            return _finish(case, "transient", why, spent="guided_waits")
        return _guided_wait(case, "transient", guidance, after, why)
    if ledgers.may_retry(ledger, policy):
        after = ledgers.spend_retry(ledger)
        delay = max(policy.retry_base_s * 2**ledger.retries, hint)
        return _pause(case, "retry", "transient", why, after, delay, after.retries, policy.retries)
    return _resume(case, "transient", why, hint)


def _empty(case: _Case) -> Decision:
    why = case.facts.classification.why if case.facts.classification else "the reply is empty"
    if not case.on:
        return _finish(case, "empty", why)
    return _resume(case, "empty", why, 0.0)


def _resume(case: _Case, reason: str, why: str, hint: float) -> Decision:
    policy, ledger = case.policy, case.ledger
    if not ledgers.may_resume(ledger, policy):
        return _finish(case, reason, f"{why}; the allowance is spent", spent="resumes")
    after = ledgers.spend_resume(ledger)
    delays = policy.resume_delays_s
    delay = max(delays[min(ledger.resumes, len(delays) - 1)], hint)
    return _pause(case, "resume", reason, why, after, delay, after.resumes, policy.stream_retries)


def _pause(
    case: _Case,
    kind: events.DecisionKind,
    reason: str,
    why: str,
    after: Ledger,
    delay: float,
    number: int,
    limit: int,
) -> Decision:
    """A retry or a resume. Steering that waits replaces the delay (rule R1)."""
    if case.steering:
        delay, why = 0.0, f"{why}; your message goes now"
    class_ = case.facts.class_ or ("empty" if reason == "empty" else None)
    until = case.now + delay if delay else None
    return Decision(kind, reason, why, after, class_, delay, until, number, limit)


def _without_piece(case: _Case, piece: str) -> Decision:
    """The same request once more, without the picture that the provider refuses (rule W6)."""
    after = ledgers.spend_continue(case.ledger)
    why = "the provider refuses a picture; a note takes its place"
    return Decision(
        "continue",
        "refused-piece",
        why,
        after,
        case.facts.class_,
        number=_used(after),
        limit=_limit(case),
        piece=piece,
    )


def _paused(case: _Case) -> Decision:
    if not case.on:
        return _finish(case, "output_truncated", "the provider paused the reply")
    if not ledgers.may_continue(case.ledger, case.policy):
        return _finish(
            case,
            "output_truncated",
            "the provider paused the reply; the allowance is spent",
            spent="continues",
        )
    after = ledgers.spend_continue(case.ledger)
    why = "the provider paused a long reply"
    return Decision("continue", "paused", why, after, number=_used(after), limit=_limit(case), omits=False)


def _tail(case: _Case) -> Decision | None:
    """A free run whose last word would be a call is asked once more, so that it can speak (rule R6)."""
    if not (case.on and case.policy.tool_tail) or case.ledger.tail:
        return None
    if not ledgers.may_continue(case.ledger, case.policy):
        return None
    after = ledgers.spend_tail(case.ledger)
    why = "the tools ended the loop before the model could speak"
    return Decision("continue", "tool-tail", why, after, number=_used(after), limit=_limit(case), omits=False)


def _used(ledger: Ledger) -> int:
    return ledger.continues + ledger.resumes


def _limit(case: _Case) -> int | None:
    return None if case.policy.max_resumes == "unlimited" else case.policy.max_resumes
