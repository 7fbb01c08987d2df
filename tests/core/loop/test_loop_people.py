"""Steering, follow-ups, stop, silence, untrusted text (rules L8 to L11)."""

from __future__ import annotations

import asyncio

import pytest
from runs import ANSWER, Spy, call, fails, make, play, says, submit

from handrail import events as ev
from handrail.clock import VirtualClock
from handrail.messages import AssistantMessage, Text
from handrail.policy import NO_RECOVERY, RecoveryPolicy
from handrail.providers.base import Finished, TextDelta
from handrail.providers.function import FunctionProvider
from handrail.session import Session


def at_turn(number, act):
    """Act once when request `number` has started."""

    def on(session, event):
        if isinstance(event, ev.MessageStarted) and event.turn == number:
            act(session)

    return on


async def test_L8_steering_enters_before_the_next_request_behind_the_results():
    played = await play(
        [says("", call("lookup")), says("done")],
        tools=[Spy()],
        on=at_turn(1, lambda s: s.steer("leave the API")),
    )
    assert [m.role for m in played.requests[1].messages] == ["user", "assistant", "tool", "user"]
    assert played.requests[1].messages[-1].text == "leave the API"
    assert [s.kind for s in played.of(ev.Steered)] == ["steer"]


async def test_L8_one_at_a_time_and_each_exactly_once():
    def both(session):
        session.steer("one")
        session.steer("two")

    played = await play(
        [says("", call("lookup", n=1)), says("", call("lookup", n=2)), says("done")],
        tools=[Spy()],
        on=at_turn(1, both),
    )
    assert [s.text for s in played.of(ev.Steered)] == ["one", "two"]
    texts = [m.text for m in played.requests[-1].messages if m.role == "user"]
    assert texts == ["Go.", "one", "two"]
    assert [m.text for m in played.requests[1].messages if m.role == "user"] == ["Go.", "one"]


async def test_L8_a_follow_up_begins_when_the_run_would_end():
    played = await play([says("one"), says("two")], on=at_turn(1, lambda s: s.follow_up("and then?")))
    assert (played.outcome, played.finished.text, len(played.requests)) == ("completed", "two", 2)
    assert [s.kind for s in played.of(ev.Steered)] == ["follow_up"]


async def test_L8_a_withdrawn_message_is_never_delivered():
    def act(session):
        session.withdraw(session.steer("never mind"))

    played = await play([says("", call("lookup")), says("done")], tools=[Spy()], on=at_turn(1, act))
    assert played.of(ev.Steered) == []


async def test_L8_after_a_stop_what_was_not_delivered_goes_back():
    def act(session):
        session.follow_up("later")
        session.stop()

    played = await play([says("one", takes_s=5)], on=at_turn(1, act))
    assert [m.text for m in played.of(ev.QueueChanged)[-1].returned] == ["later"]
    assert played.of(ev.QueueChanged)[-1].follow_ups == ()


async def test_L8_a_value_leaves_the_queue_untouched():
    played = await play([says("", submit(1))], schema=ANSWER, on=at_turn(1, lambda s: s.follow_up("later")))
    assert played.outcome == "submitted"
    assert [m.text for m in played.session.state.queue.follow_ups] == ["later"]


async def test_L9_stop_ends_the_stream_at_once_and_keeps_readable_text():
    def on(session, event):
        if isinstance(event, ev.MessageDelta) and event.text.startswith("and more"):
            session.clock.call_later(0, session.stop)

    long = "I begin here" + "and more of " * 50
    played = await play([says(long, call("lookup"), takes_s=500)], tools=[Spy()], on=on)
    (reply,) = [e.message for e in played.of(ev.MessageFinished)]
    assert (played.outcome, reply.stop_reason) == ("cancelled", "aborted")
    assert reply.text.startswith("I begin here") and len(reply.text) < len(long)
    (kept,) = [m for m in played.session.projection.request() if m.role == "assistant"]
    assert kept.text.startswith("I begin here") and "stopped" in kept.text and not kept.calls


@pytest.mark.parametrize("then", ["stop", "deadline"])
async def test_L9_a_stop_ends_a_wait_without_a_request_after_it(then):
    def on(session, event):
        if isinstance(event, ev.WaitStarted) and then == "stop":
            session.clock.call_later(1, session.stop)

    bounds = {"deadline_s": 4} if then == "deadline" else {}
    played = await play([fails("overloaded", 503)] * 3, recovery=RecoveryPolicy(), on=on, bounds=bounds)
    assert played.outcome == ("cancelled" if then == "stop" else "budget")
    assert len(played.requests) == (1 if then == "stop" else 2)


async def silent(request):
    yield TextDelta("one word")
    await asyncio.Event().wait()
    yield Finished(AssistantMessage())


async def test_L10_a_silent_stream_is_a_transient_error_after_the_idle_timeout():
    clock = VirtualClock()
    session = Session(FunctionProvider(silent), recovery=RecoveryPolicy(enabled=False), clock=clock)
    began = clock.now()
    finished = await session.run("Go.")
    assert (finished.outcome, finished.class_) == ("provider", "transient")
    assert clock.now() - began == pytest.approx(180)


async def test_L10_long_thinking_is_healthy_as_long_as_something_comes():
    async def slow(request):
        for _ in range(20):
            await clock.sleep(170)
            yield TextDelta("x")
        yield Finished(AssistantMessage((Text("x" * 20),)))

    clock = VirtualClock()
    finished = await Session(FunctionProvider(slow), clock=clock).run("Go.")
    assert finished.outcome == "completed"


async def test_L11_broken_unicode_and_nul_are_replaced_where_they_enter():
    async def dirty(args, ctx):
        return "a\ud800b\0c"

    played = await play(
        [says("x\ud83dy\0z", call("lookup")), says("done")], tools=[Spy("lookup", dirty)], prompt="p\udfffq"
    )
    texts = [m.text for m in played.requests[1].messages]
    assert texts == ["p\ufffdq", "x\ufffdy\ufffdz", "a\ufffdb\ufffdc"]


async def test_L11_control_characters_are_kept_for_the_model():
    async def escape(args, ctx):
        return "red \x1b[31m"

    played = await play([says("", call("lookup")), says("done")], tools=[Spy("lookup", escape)])
    assert played.results(1) == ["red \x1b[31m"]


async def test_H3_a_tool_may_ask_the_same_twice_and_a_secret_answer_reaches_only_the_tool():
    heard: list[str] = []

    async def login(args, ctx):
        heard.append(await ctx.ask("The password, please.", kind="login", secret=True))
        heard.append(await ctx.ask("The password, please.", kind="login", secret=True))
        return "logged in"

    def on(session, event):
        if isinstance(event, ev.HumanRequested):
            session.answer(event.id, "answered", f"hunter{event.id}", secret=True)

    played = await play(
        [says("", call("lookup")), says("done")], tools=[Spy("lookup", login)], on=on, attended=True
    )
    assert heard == ["hunterq1", "hunterq2"]
    assert "hunter" not in repr(played.events) and "hunter" not in repr(played.requests)


async def test_every_listener_hears_events_in_order_also_when_one_acts_at_once():
    heard: list[str] = []

    def on(session, event):
        if isinstance(event, ev.HumanRequested):
            session.answer(event.id, "resolved")

    replies = [says("", call("ask_human", kind="login", needed="Log in.")), says("done", takes_s=4)]
    session, _, _ = make(replies, recovery=NO_RECOVERY, attended=True)
    session.listen(lambda event: on(session, event))
    session.listen(lambda event: heard.append(event.type))
    await session.run("Go.")
    assert heard.index("human_requested") < heard.index("human_answered")


async def test_a_turn_tells_how_long_it_took():
    played = await play([says("done", takes_s=4)])
    assert played.of(ev.TurnFinished)[0].seconds == pytest.approx(4)


async def test_a_listener_that_fails_is_a_fault_and_not_a_hang():
    def fail(session, event):
        if isinstance(event, ev.MessageStarted):
            raise RuntimeError("a bug of the listener")

    with pytest.raises(RuntimeError, match="a bug of the listener"):
        await play([says("done")], on=fail)
