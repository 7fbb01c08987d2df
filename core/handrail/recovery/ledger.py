"""What recovery has spent in one user request, and what is left of it (rule R11). Pure functions over the ledger."""

from __future__ import annotations

from dataclasses import replace

from handrail.events import Ledger
from handrail.policy import RecoveryPolicy


def after_good_reply(ledger: Ledger) -> Ledger:
    """A good reply ends an unbroken failure: retries, polls and the hard cap begin anew (rule R4)."""
    return replace(
        ledger, retries=0, polls=0, unbroken=0, limited_since=None, waited_for=None, waits_for_it=0
    )


def after_user_message(ledger: Ledger) -> Ledger:
    """A message of the person allows one more compaction (rule R14)."""
    return replace(ledger, compactions=0)


def spend_continue(ledger: Ledger) -> Ledger:
    return replace(ledger, continues=ledger.continues + 1, unbroken=ledger.unbroken + 1)


def spend_retry(ledger: Ledger) -> Ledger:
    return replace(ledger, retries=ledger.retries + 1, unbroken=ledger.unbroken + 1)


def spend_resume(ledger: Ledger) -> Ledger:
    return replace(ledger, resumes=ledger.resumes + 1, unbroken=ledger.unbroken + 1)


def spend_guided_wait(ledger: Ledger, at: float, *, limit: bool, now: float) -> Ledger:
    """A wait for the moment `at` that the provider named. Several for one moment spend one of the allowance (rule U1);
    those for a usage limit are outside the hard cap (rule R11)."""
    again = waits_again(ledger, at)
    after = replace(
        ledger,
        guided_waits=ledger.guided_waits + (0 if again else 1),
        waited_for=ledger.waited_for if again else at,
        waits_for_it=ledger.waits_for_it + 1 if again else 1,
    )
    if limit:
        since = ledger.limited_since if ledger.limited_since is not None else now
        return replace(after, limited_since=since)
    return replace(after, unbroken=ledger.unbroken + 1)


def waits_again(ledger: Ledger, at: float) -> bool:
    """Whether the last guided wait was for the moment `at` already."""
    return ledger.waited_for is not None and abs(at - ledger.waited_for) < 1.0


def spend_poll(ledger: Ledger, *, now: float) -> Ledger:
    since = ledger.limited_since if ledger.limited_since is not None else now
    return replace(ledger, polls=ledger.polls + 1, limited_since=since)


def spend_compaction(ledger: Ledger) -> Ledger:
    return replace(ledger, compactions=ledger.compactions + 1, unbroken=ledger.unbroken + 1)


def may_continue(ledger: Ledger, policy: RecoveryPolicy) -> bool:
    """Whether the shared allowance of continues and resumes and the hard cap leave room."""
    spent = ledger.continues + ledger.resumes
    room = policy.max_resumes == "unlimited" or spent < policy.max_resumes
    return room and ledger.unbroken < policy.hard_cap


def may_resume(ledger: Ledger, policy: RecoveryPolicy) -> bool:
    return may_continue(ledger, policy) and ledger.resumes < policy.stream_retries


def may_retry(ledger: Ledger, policy: RecoveryPolicy) -> bool:
    return ledger.retries < policy.retries and ledger.unbroken < policy.hard_cap


def spend_tail(ledger: Ledger) -> Ledger:
    """The one question after a terminating batch: a continue, but no failure (rule R6)."""
    return replace(ledger, continues=ledger.continues + 1, tail=True)


def without_tail(ledger: Ledger) -> Ledger:
    """A reply without a terminating batch: the next tail may be asked about again (rule R6)."""
    return replace(ledger, tail=False) if ledger.tail else ledger
