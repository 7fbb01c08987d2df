"""Over random scripts: a value or StepFailed, the bounds, one result a call, one outcome (rules S, L)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import event, given
from hypothesis import strategies as st
from runs import ANSWER, Played, Spy, breaks, fails, hold_protocol, play, says, scripted
from wires import hold_wires

from handrail import StepFailed, step
from handrail import events as ev
from handrail.clock import VirtualClock
from handrail.policy import RecoveryPolicy
from handrail.providers.scripted import ScriptedCall, ScriptedReply

SCHEMA = {**ANSWER, "additionalProperties": False}
CALLS = {
    "valid": ("submit", '{"answer": %d}'),
    "string": ("submit", '{"answer": "%d"}'),
    "null": ("submit", '{"answer": null}'),
    "extra": ("submit", '{"answer": %d, "sure": true}'),
    "missing": ("submit", "{}"),
    "torn": ("submit", '{"answer": %d'),
    "quoted": ("submit", '"{\\"answer\\": %d}"'),
    "listed": ("submit", "[%d]"),
    "lookup": ("lookup", '{"q": %d}'),
    "torn lookup": ("lookup", '{"q": %d'),
    "raises": ("raises", "{}"),
    "leave": ("leave", "{}"),
    "unknown": ("final_answer", '{"answer": %d}'),
}
TRANSIENT, LIMIT = "overloaded", "You have hit your usage limit. Try again in ~42 min."
FAULTS = {
    "overloaded": lambda: fails(TRANSIENT, 503),
    "limit": lambda: fails(LIMIT, 429),
    "overflow": lambda: fails("prompt is too long: 205000 tokens > 200000 maximum", 400),
    "auth": lambda: fails("invalid api key", 401),
    "empty": lambda: says(" \n"),
    "thought": lambda: says("", thinking="It may be 5."),
}
STOPS = ["tool_use", "stop", "length", "refusal", "aborted", "broken"]


@dataclass(frozen=True)
class Turn:
    """One reply: a fault, or text and calls under a stop reason (`broken`: the stream breaks behind them)."""

    fault: str | None = None
    prose: bool = False
    calls: tuple[str, ...] = ()
    stop: str = "tool_use"
    one_id: bool = False

    def reply(self, n: int) -> ScriptedReply:
        if self.fault is not None:
            return FAULTS[self.fault]()
        calls = [self._call(kind, 10 * n + i) for i, kind in enumerate(self.calls)]
        text = f"I say {n}." if self.prose or not calls else ""
        if self.stop == "broken":
            return breaks(text, *calls)
        stop = "stop" if self.stop == "tool_use" and not calls else self.stop
        return says(text, *calls, stop=stop)

    def _call(self, kind: str, number: int) -> ScriptedCall:
        name, raw = CALLS[kind]
        return ScriptedCall(name, raw % number if "%d" in raw else raw, "x" if self.one_id else None)


# Mostly whole batches that hold something valid or look something up: a script that breaks at once says little.
KINDS = st.sampled_from([*CALLS, *["valid"] * 8, *["lookup"] * 4])
BATCHES = st.lists(KINDS, min_size=1, max_size=5).map(tuple)
WHOLE = st.builds(Turn, prose=st.booleans(), calls=BATCHES, one_id=st.booleans())
LOOKS = st.builds(Turn, prose=st.booleans(), calls=st.just(("lookup",)))
TURNS = st.one_of(
    WHOLE,
    LOOKS,
    WHOLE,
    LOOKS,
    st.builds(Turn, prose=st.booleans(), calls=BATCHES, stop=st.sampled_from(STOPS)),
    st.builds(Turn, prose=st.just(True), stop=st.sampled_from(STOPS)),
    st.builds(Turn, fault=st.sampled_from(sorted(FAULTS))),
)
SCRIPTS = st.lists(TURNS, min_size=1, max_size=12)
BOUNDS = st.fixed_dictionaries({"max_turns": st.integers(1, 8), "max_attempts": st.integers(1, 4)})
OFF, ON = RecoveryPolicy(enabled=False, no_progress=False), RecoveryPolicy(no_progress=False)
POLICIES = st.sampled_from([OFF, ON, RecoveryPolicy(), RecoveryPolicy(enabled=False)])
MOMENTS = st.one_of(st.none(), st.none(), st.integers(0, 120))


def tools(*, sequential: bool = False) -> list[Spy]:
    async def fail(args: object, ctx: object) -> str:
        raise RuntimeError("no luck")

    return [
        Spy("lookup", takes_s=3.0, sequential=sequential),
        Spy("leave", terminate=True, sequential=sequential),
        Spy("raises", fail, sequential=sequential),
    ]


def run(
    script: list[Turn],
    bounds: dict[str, int],
    policy: RecoveryPolicy,
    *,
    stop_at: int | None = None,
    steer_at: int | None = None,
    sequential: bool = False,
) -> Played:
    """Play a script; the person stops or steers at the event of that number. Holds what `hold_invariants` says."""
    heard = 0

    def on(session: object, event: object) -> None:
        nonlocal heard
        heard += 1
        if heard == stop_at:
            session.stop()
        if heard == steer_at:
            session.steer("Mind the shop.")

    return asyncio.run(
        play(
            [turn.reply(n) for n, turn in enumerate(script)],
            tools=tools(sequential=sequential),
            schema=SCHEMA,
            bounds=bounds,
            recovery=policy,
            on=on,
            id="one",
        )
    )


def judged(played: Played, max_attempts: int) -> tuple[dict[str, int] | None, int]:
    """The first valid submission in call order among the replies that were whole, and the invalid ones, counted anew:
    what follows the last attempt is not looked at (rules S3, S4, S5)."""
    value, invalid = None, 0
    for finished in played.of(ev.MessageFinished):
        if finished.purpose == "summary" or finished.message.stop_reason not in ("stop", "tool_use"):
            continue
        for one in finished.message.calls:
            if one.name == "submit" and invalid < max_attempts:
                answer = fitting(one.raw)
                invalid += answer is None
                value = value or answer
    return value, invalid


def fitting(raw: str) -> dict[str, int] | None:
    """The answer, where the text of a submission fits the schema."""
    try:
        found = json.loads(raw)
    except ValueError:
        return None
    fits = isinstance(found, dict) and set(found) == {"answer"} and type(found["answer"]) is int
    return found if fits else None


@given(SCRIPTS, BOUNDS, POLICIES, MOMENTS, MOMENTS)
def test_S_a_value_or_a_failure_inside_the_bounds_whatever_comes(script, bounds, policy, stop_at, steer_at):
    played = run(script, bounds, policy, stop_at=stop_at, steer_at=steer_at)
    finished = played.finished
    value, invalid = judged(played, bounds["max_attempts"])
    event(finished.outcome)
    assert len(played.requests) <= bounds["max_turns"]
    assert finished.attempts == invalid <= bounds["max_attempts"]
    assert (finished.value, played.session.value) == (value, value)
    assert (finished.outcome == "submitted") == (value is not None)
    assert finished.outcome != "completed"
    if value is None and invalid == bounds["max_attempts"]:
        assert finished.outcome == "invalid-submissions"
    for submission in played.of(ev.Submission):
        assert submission.accepted == (submission.value is not None)
    if invalid == bounds["max_attempts"]:  # then no tool of that batch runs, and no request follows (rule S5)
        tail = played.events[played.events.index(played.of(ev.Submission)[-1]) :]
        assert not [e for e in tail if isinstance(e, ev.ToolStarted | ev.TurnStarted)]
    for request in played.requests:
        hold_protocol(request)
        hold_wires(request)


@given(SCRIPTS, BOUNDS)
def test_S7_without_recovery_the_outcome_is_the_one_that_the_rules_name(script, bounds):
    played = run(script, bounds, OFF)
    finished = played.finished
    got = (finished.outcome, finished.value, finished.requests, finished.attempts)
    assert got == by_the_rules(script, **bounds)


def by_the_rules(
    script: list[Turn], max_turns: int, max_attempts: int
) -> tuple[str, dict[str, int] | None, int, int]:
    """Outcome, value, requests, attempts: rules L and S of a plain step, written down a second time."""
    value: dict[str, int] | None = None
    attempts = 0
    for n, turn in enumerate([*script, Turn(fault="auth")]):  # a script that runs out fails for good
        end, found, invalid = after(turn, turn.reply(n).calls, max_attempts - attempts)
        value, attempts = value or found, attempts + invalid
        if n + 1 == max_turns and end in (None, "no-submit", "usage-limit", "transient"):
            end = "turn-limit"
        if end is not None:
            kind = "provider" if end == "transient" else end
            return ("submitted" if value else kind, value, n + 1, attempts)
    raise AssertionError("the last reply of a script ends it")


def after(
    turn: Turn, calls: Sequence[ScriptedCall], left: int
) -> tuple[str | None, dict[str, int] | None, int]:
    """What one reply comes to: why it ends the step (None: it goes on), the first value in it, its invalid ones."""
    fault = turn.fault or turn.stop
    if fault in ("auth", "refusal"):
        return "provider", None, 0
    if fault in ("aborted", "limit"):
        return ("cancelled" if fault == "aborted" else "usage-limit"), None, 0
    if fault in ("overloaded", "overflow", "broken") or (fault == "length" and not calls):
        return "transient", None, 0
    if not calls:
        return "no-submit", None, 0
    if fault == "length":
        return None, None, 0
    answers = [fitting(one.raw) for one in calls if one.tool == "submit"]
    invalid = [i for i, answer in enumerate(answers) if answer is None]
    if len(invalid) >= left:
        return "invalid-submissions", next(filter(None, answers[: invalid[left - 1]]), None), left
    votes = len(answers) - len(invalid) + sum(one.tool == "leave" for one in calls)
    return ("no-submit" if votes == len(calls) else None), next(filter(None, answers), None), len(invalid)


@given(SCRIPTS, BOUNDS, st.sampled_from([False, True]))
def test_S_step_returns_that_value_or_raises_that_failure(script, bounds, recovery):
    policy = ON if recovery else OFF
    played = run(script, bounds, policy)
    clock = VirtualClock()
    provider = scripted([turn.reply(n) for n, turn in enumerate(script)], clock)

    async def go() -> tuple[str, object, int]:
        try:
            options = {"model": provider, "tools": tools(), "recovery": policy, "clock": clock}
            return "submitted", await step("Go.", SCHEMA, **options, **bounds), played.finished.attempts
        except StepFailed as failed:
            assert failed.turns == len(provider.requests)
            return failed.kind, None, failed.attempts

    finished = played.finished
    assert asyncio.run(go()) == (finished.outcome, finished.value, finished.attempts)
    assert len(provider.requests) == finished.requests


@given(SCRIPTS, BOUNDS, POLICIES, MOMENTS)
def test_S_one_script_has_one_outcome_down_to_every_event(script, bounds, policy, stop_at):
    one, two = (run(script, bounds, policy, stop_at=stop_at) for _ in range(2))
    assert one.events == two.events
    assert one.requests == two.requests


@given(SCRIPTS, BOUNDS, POLICIES)
def test_L6_parallel_and_sequential_tools_agree(script, bounds, policy):
    one, two = (run(script, bounds, policy, sequential=sequential) for sequential in (False, True))

    def shown(played: Played) -> list[object]:
        finished = played.finished
        return [finished.outcome, finished.value, finished.attempts, [r.messages for r in played.requests]]

    assert shown(one) == shown(two)
