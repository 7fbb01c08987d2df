"""A run that a bound ended goes on when the bound is raised; every counter is kept (rule L1, «Resuming a run»)."""

from __future__ import annotations

from runs import ANSWER, Spy, call, make, says, submit


async def test_L1_a_bound_is_raised_in_place_and_the_counters_are_kept():
    replies = [*(says("", call("lookup", n=n)) for n in range(3)), says("done")]
    session, provider, _ = make(replies, tools=[Spy()], bounds={"max_turns": 2})
    assert (await session.run("Go.")).outcome == "turn-limit"
    session.raise_bounds(max_turns=10)
    finished = await session.resume()
    assert (finished.outcome, finished.text, finished.requests) == ("completed", "done", 4)
    assert len(provider.requests) == 4


async def test_L1_raising_the_bound_in_mid_run_is_enough():
    def on(event):
        if event.type == "message_started" and event.turn == 2:
            session.raise_bounds(max_turns=5)

    replies = [*(says("", call("lookup", n=n)) for n in range(4)), says("done")]
    session, _, _ = make(replies, tools=[Spy()], bounds={"max_turns": 2})
    session.listen(on)
    assert (await session.run("Go.")).outcome == "completed"


async def test_S5_more_attempts_let_a_step_go_on():
    session, _, _ = make(
        [says("", submit("x")), says("", submit(4))], schema=ANSWER, bounds={"max_attempts": 1}
    )
    assert (await session.run("Go.")).outcome == "invalid-submissions"
    session.raise_bounds(max_attempts=1)
    finished = await session.resume()
    assert (finished.outcome, finished.value, finished.attempts) == ("submitted", {"answer": 4}, 1)
    assert session.value == {"answer": 4}
