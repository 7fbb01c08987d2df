"""A run that ends anywhere goes on from there: every prefix leads to the same end (rules J3, J4, H6, U7)."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from runs import ANSWER, Spy, call, fails, hold_protocol, make, says, submit

from handrail import events as ev
from handrail.clock import VirtualClock
from handrail.policy import RecoveryPolicy

LIMIT = fails("You have hit your usage limit. Try again in 42 min.", 429)
CUT = says("I begin with the first half of it.", stop="length", takes_s=4)

STORY = [
    says("I look.", call("lookup", n=1), call("write", n=1)),
    CUT,
    says("", call("ask_human", kind="captcha", needed="Solve it."), call("lookup", n=2)),
    fails("overloaded", 503),
    LIMIT,
    says("", submit("five"), call("write", n=2)),
    says("", submit(5)),
]


class Life:
    """One life of the program: from a record so far to its end or to a cut."""

    def __init__(self, record, *, schema=ANSWER, replies=STORY):
        done = sum(isinstance(e, ev.MessageFinished) for e in record)
        self.write = Spy("write", effect="edit", takes_s=1)
        tools = [Spy("lookup", takes_s=2), self.write]
        recovery = RecoveryPolicy()
        start = record[-1].at if record else None
        clock = VirtualClock(start) if start else VirtualClock()
        self.session, self.provider, self.events = make(
            replies[done:],
            tools=tools,
            schema=schema,
            recovery=recovery,
            clock=clock,
            attended=True,
            approve="all",
        )
        self.session.listen(self._person)
        if record:
            self.session.load(*parted(record))
        self.record = record

    def _person(self, event):
        if isinstance(event, ev.HumanRequested):
            self.session.clock.call_later(30, lambda: self.session.answer(event.id, "resolved", "Solved."))

    async def live(self):
        going = self.session.resume() if self.record else self.session.run("Go.")
        return await going


def parted(record):
    """Events, and the pieces of a reply in flight, as a journal gives them back."""
    events, pieces = [], []
    for event in record:
        if isinstance(event, ev.MessageDelta):
            pieces.append(event)
        else:
            if isinstance(event, ev.TurnStarted | ev.MessageFinished):
                pieces.clear()
            events.append(event)
    return events, pieces


def kept(events):
    return [e for e in events if not isinstance(e, ev.ToolProgress)]


async def test_J4_every_prefix_of_the_record_leads_to_the_same_end():
    whole = Life([])
    end = await whole.live()
    assert (end.outcome, end.value, end.attempts) == ("submitted", {"answer": 5}, 1)
    record = kept(whole.events)
    for cut in range(1, len(record)):
        life = Life(record[:cut])
        again = await life.live()
        at = f"cut behind {cut}: {record[cut - 1].type}"
        assert (again.outcome, again.value) == (end.outcome, end.value), at
        assert life.session.value == {"answer": 5}, at
        assert again.attempts == 1, at
        both = record[:cut] + kept(life.events)
        hold_story(both, at)
        for request in life.provider.requests:
            hold_protocol(request)


def hold_story(events, at):
    """What must hold of both lives together."""
    started = Counter(
        (e.call_id, e.name) for e in events if isinstance(e, ev.ToolStarted) and e.effect == "edit"
    )
    assert all(n == 1 for n in started.values()), f"{at}: a tool that changes things ran twice: {started}"
    results = Counter(e.call_id for e in events if isinstance(e, ev.ToolFinished))
    assert all(n == 1 for n in results.values()), f"{at}: two results for one call: {results}"
    answered = [e.id for e in events if isinstance(e, ev.HumanAnswered)]
    assert answered == ["q1"], f"{at}: {answered}"
    rejected = [e.attempt for e in events if isinstance(e, ev.Submission) and not e.accepted]
    assert rejected == [1], f"{at}: {rejected}"


async def test_J3_a_reply_that_was_streaming_becomes_the_checkpoint():
    whole = Life([])
    await whole.live()
    record = kept(whole.events)
    turn = next(
        i
        for i, e in enumerate(record)
        if isinstance(e, ev.MessageFinished) and e.message.stop_reason == "length"
    )
    life = Life(record[: turn - 2])
    await life.live()
    first = life.provider.requests[0]
    assert "I begin with" in first.messages[-1].text
    assert first.messages[-1].origin == "checkpoint"


async def test_J3_a_tool_whose_start_is_on_record_is_reported_as_unknown_and_not_run_again():
    whole = Life([])
    await whole.live()
    record = kept(whole.events)
    start = next(i for i, e in enumerate(record) if isinstance(e, ev.ToolStarted) and e.name == "write")
    life = Life(record[: start + 1])
    await life.live()
    result = next(e for e in life.events if isinstance(e, ev.ToolFinished) and e.name == "write")
    assert result.text == "outcome unknown: the program ended while this ran; look before doing it again"


async def test_U7_a_wait_is_taken_up_till_the_same_moment():
    whole = Life([])
    await whole.live()
    record = kept(whole.events)
    index = next(
        i for i, e in enumerate(record) if isinstance(e, ev.WaitStarted) and e.reason == "usage-limit"
    )
    life = Life(record[: index + 1])
    life.session.clock.advance(600)
    await life.live()
    (wait,) = [e for e in life.events if isinstance(e, ev.WaitStarted)]
    assert wait.until == record[index].until
    assert wait.seconds == pytest.approx(record[index].seconds - 600)


async def test_H4_nobody_there_then_an_answer_from_the_command_line():
    replies = [says("", call("ask_human", kind="login", needed="Log in."), call("lookup")), says("done")]
    session, _, events = make(replies, tools=[Spy()], recovery=RecoveryPolicy())
    finished = await session.run("Go.")
    assert (finished.outcome, finished.question.needed) == ("human-required", "Log in.")
    later, provider, _ = make(replies[1:], tools=[Spy()], recovery=RecoveryPolicy())
    later.load(kept(events))
    finished = await later.resume(answer="I am in.")
    assert (finished.outcome, finished.text) == ("completed", "done")
    assert [m.text for m in provider.requests[0].messages if m.role == "tool"] == ["I am in.", "42"]


async def test_H6_a_question_nobody_answered_is_asked_again_once_under_its_id():
    replies = [says("", call("ask_human", kind="login", needed="Log in.")), says("done")]
    session, _, events = make(replies, recovery=RecoveryPolicy())
    await session.run("Go.")
    later, _, new = make(replies[1:], recovery=RecoveryPolicy(), attended=True)
    later.load(kept(events))
    later.listen(lambda e: later.answer(e.id, "resolved") if isinstance(e, ev.HumanRequested) else None)
    await later.resume()
    assert [e.id for e in new if isinstance(e, ev.HumanRequested)] == ["q1"]


async def test_J7_a_suspended_run_is_interrupted_and_goes_on():
    life = Life([])
    life.session.listen(
        lambda e: (
            life.session.suspend("SIGTERM")
            if isinstance(e, ev.WaitStarted) and e.reason == "usage-limit"
            else None
        )
    )
    ended = await life.live()
    assert (ended.type, ended.signal) == ("run_interrupted", "SIGTERM")
    later = Life(kept(life.events))
    finished = await later.live()
    assert finished.outcome == "submitted"
    assert finished.requests == 7


async def test_L8_queued_messages_are_still_queued_once():
    def on(event):
        if isinstance(event, ev.MessageStarted):
            life.session.follow_up("then the docs")
            life.session.suspend("SIGHUP")

    life = Life([], schema=None, replies=[says("one", takes_s=3), says("two"), says("three")])
    life.session.listen(on)
    await life.live()
    later = Life(kept(life.events), schema=None, replies=[says("one"), says("two"), says("three")])
    finished = await later.live()
    assert finished.text == "two"
    assert [e.text for e in later.events if isinstance(e, ev.Steered)] == ["then the docs"]


async def test_S7_only_the_callers_own_cancellation_passes_through_and_the_run_can_go_on():
    life = Life([])
    task = asyncio.ensure_future(life.live())
    life.session.listen(lambda e: task.cancel() if isinstance(e, ev.WaitStarted) else None)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert isinstance(life.events[-1], ev.RunInterrupted)
    assert (await Life(kept(life.events)).live()).outcome == "submitted"


def test_sessions_are_imported_without_the_loop():
    import subprocess
    import sys

    code = "import handrail.session.store, sys; sys.exit('handrail.loop.run' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
