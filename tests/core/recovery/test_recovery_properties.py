"""Over random sequences of faults: caps hold, waits hold, a stop ends a wait at once, the view is whole (R, U)."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st
from runs import Spy, breaks, call, fails, hold_protocol, play, says

from handrail import events as ev
from handrail.messages import Usage
from handrail.policy import RecoveryPolicy

FAULTS = {
    "overloaded": lambda n: fails("overloaded", 503),
    "hinted": lambda n: fails("Rate limit reached. Please try again in 20s.", 429),
    "long hint": lambda n: fails("Server busy, retry in 5 minutes", 503),
    "broken": lambda n: breaks(f"partial words {n}"),
    "broken call": lambda n: breaks("", call("lookup", n=n)),
    "cut": lambda n: says(f"the beginning {n}", stop="length"),
    "cut call": lambda n: says("", call("lookup", n=n), stop="length"),
    "empty": lambda n: says("  "),
    "thought": lambda n: says("", thinking="only a thought"),
    "limit": lambda n: fails("You have hit your usage limit. Try again in ~42 min.", 429),
    "blind limit": lambda n: fails("You have hit your usage limit.", 429),
    "far limit": lambda n: fails("You have hit your usage limit. Try again in 3 days.", 429),
    "overflow": lambda n: fails("prompt is too long: 205000 tokens > 200000 maximum", 400),
    "auth": lambda n: fails("invalid api key", 401),
    "tool": lambda n: says(f"turn {n}", call("lookup", n=n), usage=Usage(10, 5)),
    "end tool": lambda n: says("", call("end", n=n)),
    "prose": lambda n: says(f"prose {n}"),
}
POLICIES = st.builds(
    RecoveryPolicy,
    max_resumes=st.sampled_from([0, 1, 8, "unlimited"]),
    retries=st.integers(0, 4),
    stream_retries=st.integers(0, 7),
    hard_cap=st.sampled_from([0, 3, 24]),
    checkpoint_max_chars=st.sampled_from([0, 20, 12_000]),
    max_wait_s=st.sampled_from([0.0, 600.0, 21_600.0]),
    max_polls=st.integers(0, 4),
    max_guided_waits=st.integers(0, 3),
    tool_tail=st.booleans(),
    compaction=st.booleans(),
)
SCRIPTS = st.lists(st.sampled_from(sorted(FAULTS)), min_size=1, max_size=40)


def run(script, policy, *, stop_at=None):
    """Play a script of faults; `stop_at` stops the run in that planned pause (counted from 0)."""
    pauses = 0
    stopped: list[float] = []

    def on(session, event):
        nonlocal pauses
        if isinstance(event, ev.WaitStarted):
            if pauses == stop_at:
                stopped.append(session.clock.now())
                session.stop()
            pauses += 1

    replies = [FAULTS[name](n) for n, name in enumerate(script)]
    tools = [Spy(), Spy("end", terminate=True)]
    played = asyncio.run(
        play([*replies, says("the end")], tools=tools, recovery=policy, on=on, bounds={"max_turns": 200})
    )
    return played, stopped


@given(SCRIPTS, POLICIES)
def test_R11_requests_and_waits_never_pass_their_caps(script, policy):
    played, _ = run(script, policy)
    decided = [d for d in played.of(ev.Decided) if d.decision != "finish"]
    kinds = [d.decision for d in decided]
    if policy.max_resumes != "unlimited":
        assert kinds.count("continue") + kinds.count("resume") <= policy.max_resumes
    assert kinds.count("resume") <= policy.stream_retries
    assert kinds.count("compact") <= 1
    assert (
        sum(d.decision == "wait" and d.after.guided_waits > d.before.guided_waits for d in decided)
        <= policy.max_guided_waits
    )
    assert sum(
        d.decision == "wait" and d.reason == "usage-limit" and d.after.polls > 0 for d in decided
    ) <= policy.max_polls * len(script)
    assert all(d.after.unbroken <= policy.hard_cap for d in decided)
    for wait in played.of(ev.WaitStarted):
        if wait.decision == "wait":
            assert wait.seconds <= policy.max_wait_s + 30
        else:
            assert wait.seconds <= 60
    for request in played.requests:
        hold_protocol(request)


@given(SCRIPTS, st.integers(0, 4))
def test_R12_a_stop_in_any_wait_ends_the_run_at_once_and_nothing_is_asked_after_it(script, pause):
    played, stopped = run(script, RecoveryPolicy(), stop_at=pause)
    if not stopped:
        return
    assert played.outcome == "cancelled"
    assert played.clock.now() == stopped[0]
    last_wait = max(i for i, e in enumerate(played.events) if isinstance(e, ev.WaitStarted))
    assert not [e for e in played.events[last_wait:] if isinstance(e, ev.TurnStarted)]


@given(SCRIPTS, POLICIES)
def test_R7_nothing_broken_is_replayed_and_one_script_has_one_outcome(script, policy):
    played, again = run(script, policy)[0], run(script, policy)[0]
    assert (played.outcome, played.decisions, played.waits) == (again.outcome, again.decisions, again.waits)
    for request in played.requests:
        for message in request.messages:
            if message.role == "assistant":
                assert message.stop_reason in ("stop", "tool_use")
                assert message.failure is None
        assert sum(m.role == "user" and m.origin == "checkpoint" for m in request.messages) <= 1
