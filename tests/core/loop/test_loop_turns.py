"""The bounded loop: turns, bounds, refusals at the call (rules L1 to L3, L7, L12, L13)."""

from __future__ import annotations

import pytest
from runs import ANSWER, Spy, call, fails, make, play, says, submit

from handrail import events as ev
from handrail.clock import VirtualClock
from handrail.messages import AssistantMessage, Text, ToolCall, Usage
from handrail.policy import Bounds, RecoveryPolicy
from handrail.providers import scripted
from handrail.providers.base import ModelInfo, Price
from handrail.providers.function import FunctionProvider
from handrail.session import Session

FREE = RecoveryPolicy()


async def test_L1_max_turns_counts_requests_and_the_last_batch_still_runs():
    tool = Spy()
    played = await play(
        [says("", call("lookup", n=i)) for i in range(9)], tools=[tool], bounds={"max_turns": 3}
    )
    assert played.outcome == "turn-limit"
    assert len(played.requests) == 3
    assert len(tool.started) == 3


async def test_L1_the_bound_holds_after_a_value_is_stored():
    replies = [
        says("", call("lookup", n=0), submit(7)),
        *(says("", call("lookup", n=i)) for i in range(1, 9)),
    ]
    played = await play(replies, tools=[Spy()], schema=ANSWER, bounds={"max_turns": 4})
    assert (played.outcome, played.finished.value, len(played.requests)) == ("submitted", {"answer": 7}, 4)


async def test_L1_recovery_asks_under_the_same_bound_and_nobody_waits_for_a_forbidden_request():
    played = await play([fails("overloaded", 503)] * 9, recovery=FREE, bounds={"max_turns": 2})
    assert (played.outcome, len(played.requests), played.waits) == ("turn-limit", 2, [2.0])


async def test_L1_compaction_counts_as_a_turn():
    replies = [
        says("", call("lookup")),
        fails("prompt is too long: 9 tokens > 8 maximum", 400),
        says("sum"),
        says("done"),
    ]
    played = await play(replies, tools=[Spy()], recovery=FREE, bounds={"max_turns": 3})
    assert (played.outcome, len(played.requests)) == ("turn-limit", 3)


async def test_L1_a_person_and_the_queue_ask_under_the_same_bound():
    def on(session, event):
        if isinstance(event, ev.TurnStarted):
            session.follow_up("more")

    played = await play([says("one"), says("two"), says("three")], on=on, bounds={"max_turns": 2})
    assert (played.outcome, len(played.requests)) == ("turn-limit", 2)


@pytest.mark.parametrize(
    "bad", [{"max_turns": 0}, {"max_turns": -1}, {"max_attempts": 0}, {"deadline_s": 0}, {"max_cost": -1.0}]
)
def test_L2_a_bound_that_is_not_positive_is_refused(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        Bounds(**bad)


@pytest.mark.parametrize("name", ["submit", "ask_human"])
def test_L2_our_names_are_refused_for_a_callers_tool(name):
    with pytest.raises(ValueError, match=name):
        make([], tools=[Spy(name)])


def test_L2_two_tools_of_one_name_are_refused():
    with pytest.raises(ValueError, match="two tools are named 'lookup'"):
        make([], tools=[Spy(), Spy()])


async def test_L3_the_deadline_acts_like_a_stop_and_names_itself():
    tool = Spy(takes_s=60)
    played = await play([says("", call("lookup"))], tools=[tool], bounds={"deadline_s": 10})
    assert (played.outcome, played.finished.bound) == ("budget", "deadline_s")
    assert tool.ended == ["cancelled"]


async def test_L3_waits_for_limits_and_people_do_not_count_for_the_deadline():
    def on(session, event):
        if isinstance(event, ev.HumanRequested):
            session.clock.call_later(3600, lambda: session.answer(event.id, "resolved"))

    replies = [
        fails("You have hit your usage limit. Try again in 42 min.", 429),
        says("", call("ask_human", kind="login", needed="Log in.")),
        says("done"),
    ]
    played = await play(replies, on=on, attended=True, recovery=FREE, bounds={"deadline_s": 10})
    assert played.outcome == "completed"


async def test_L3_a_backoff_counts_and_one_that_outlasts_the_deadline_is_not_begun():
    played = await play([fails("overloaded", 503)] * 9, recovery=FREE, bounds={"deadline_s": 5})
    assert (played.outcome, played.finished.bound, played.waits) == ("budget", "deadline_s", [2.0])


async def test_L3_total_tokens_end_the_run_before_the_next_request():
    replies = [says("", call("lookup", n=i), usage=Usage(40, 10)) for i in range(9)]
    played = await play(replies, tools=[Spy()], bounds={"max_total_tokens": 100})
    assert (played.outcome, played.finished.bound, len(played.requests)) == ("budget", "max_total_tokens", 2)
    assert played.finished.usage == Usage(80, 20)


async def test_L3_total_cost_ends_the_run_and_is_told():
    replies = [says("", call("lookup", n=i), usage=Usage(1_000_000, 0)) for i in range(9)]
    played = await play(replies, tools=[Spy()], price=Price(1.0, 5.0), bounds={"max_cost": 2.5})
    assert (played.outcome, played.finished.bound, played.finished.cost) == ("budget", "max_cost", 3.0)


def test_L3_a_cost_bound_with_an_unknown_price_is_refused():
    with pytest.raises(ValueError, match="price of scripted/test is unknown"):
        make([], bounds={"max_cost": 1.0})


async def test_L7_the_loop_ends_early_only_when_every_result_says_so():
    stop, go = Spy("stop", terminate=True), Spy("go")
    played = await play([says("", call("stop"), call("go")), says("", call("stop"))], tools=[stop, go])
    assert (played.outcome, played.finished.text, len(played.requests)) == ("completed", "", 2)
    assert [(b.votes, b.of, b.ends) for b in played.of(ev.ToolBatchFinished)] == [(1, 2, False), (1, 1, True)]


async def test_L7_an_error_result_never_ends_the_loop():
    async def fail(args, ctx):
        raise RuntimeError("no")

    played = await play([says("", call("stop")), says("done")], tools=[Spy("stop", fail, terminate=True)])
    assert (played.finished.text, len(played.requests)) == ("done", 2)


async def test_L12_a_reply_without_calls_ends_the_run_and_nobody_nags():
    played = await play([says("prose"), says("never asked")], schema=ANSWER)
    assert (played.outcome, len(played.requests)) == ("no-submit", 1)


async def test_L13_three_times_in_a_row_is_named_and_five_times_ends_it_when_nobody_is_there():
    played = await play([says("", call("lookup"))] * 9, tools=[Spy()])
    assert (played.outcome, played.finished.bound, len(played.requests)) == ("budget", "no_progress", 5)
    assert [(n.times, n.name) for n in played.of(ev.NoProgress)] == [(3, "lookup"), (5, "lookup")]


async def test_L13_a_person_is_asked_and_may_let_it_go_on():
    def on(session, event):
        if isinstance(event, ev.HumanRequested):
            session.answer(event.id, "answered", "It is still starting, wait for it.")

    played = await play(
        [*([says("", call("lookup"))] * 5), says("done")], tools=[Spy()], on=on, attended=True
    )
    assert played.outcome == "completed"
    assert played.requests[-1].messages[-1].text == "It is still starting, wait for it."


async def test_L13_other_results_are_progress():
    async def count(args, ctx):
        return len(tool.started)

    tool = Spy("lookup", count)
    played = await play([*([says("", call("lookup"))] * 7), says("done")], tools=[tool])
    assert (played.outcome, played.of(ev.NoProgress)) == ("completed", [])


async def test_L13_off_by_setting():
    recovery = RecoveryPolicy(enabled=False, no_progress=False)
    played = await play([*([says("", call("lookup"))] * 7), says("done")], tools=[Spy()], recovery=recovery)
    assert played.outcome == "completed"


async def test_L3_a_provider_that_tells_no_usage_does_not_lift_a_bound():
    def answer(request):
        calls = (ToolCall(f"c{len(request.messages)}", "lookup", {}, f'{{"n": {len(request.messages)}}}'),)
        return AssistantMessage((Text("word " * 400), *calls), "tool_use")

    provider = FunctionProvider(answer, ModelInfo("function/model", price=Price(1000.0, 1000.0)))
    session = Session(provider, tools=[Spy()], bounds=Bounds(max_cost=2.0), clock=VirtualClock())
    finished = await session.run("Go.")
    assert (finished.outcome, finished.bound) == ("budget", "max_cost")
    assert finished.requests < 5


@pytest.mark.attack
async def test_a_long_run_looks_at_each_message_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the cost of a run grows with the square of its turns."""
    looked: list[int] = []
    plain = scripted.searchable
    monkeypatch.setattr(scripted, "searchable", lambda m: looked.append(1) or plain(m))
    replies = [says("", call("lookup", n=n)) for n in range(40)]
    await play([*replies, says("done")], tools=[Spy()], bounds={"max_turns": 50})
    assert len(looked) == 81
