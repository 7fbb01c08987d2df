"""Tool batches: one result a call, in call order, whatever happens (rules L4 to L6, L9, H5)."""

from __future__ import annotations

import asyncio

import pytest
from runs import ANSWER, Spy, call, play, says, submit

from handrail import events as ev
from handrail.providers.scripted import ScriptedCall
from handrail.tools.base import ToolError


@pytest.mark.parametrize("stop", ["length", "refusal", "aborted"])
async def test_L4_calls_of_a_reply_that_was_cut_are_not_run(stop):
    tool = Spy()
    played = await play([says("", call("lookup"), stop=stop), says("done")], tools=[tool])
    (result,) = played.of(ev.ToolFinished)
    assert tool.started == []
    assert (result.is_error, result.executed) == (True, False)
    assert "not executed" in result.text and "again, whole" in result.text


async def test_L4_calls_run_when_the_reply_says_stop():
    tool = Spy()
    played = await play([says("", call("lookup"), stop="stop"), says("done")], tools=[tool])
    assert (len(tool.started), played.finished.text) == (1, "done")


async def test_L4_without_recovery_a_cut_reply_with_calls_is_a_tool_turn():
    played = await play([says("", call("lookup"), stop="length"), says("done")], tools=[Spy()])
    assert played.outcome == "completed"
    assert "not executed" in played.results(1)[0]


async def test_L4_arguments_that_do_not_parse_are_answered_and_replayed_empty():
    tool = Spy()
    played = await play([says("", ScriptedCall("lookup", '{"q": "hal')), says("done")], tools=[tool])
    assert tool.started == []
    assert "not JSON" in played.results(1)[0]
    assert played.requests[1].messages[1].calls[0].arguments == {}


async def test_L5_results_stand_in_call_order_whatever_finished_first():
    async def wait(args, ctx):
        await ctx.clock.sleep(args["s"])
        return args["s"]

    calls = [call("lookup", s=s) for s in (3, 1, 2)]
    played = await play([says("", *calls), says("done")], tools=[Spy("lookup", wait)])
    assert [e.text for e in played.of(ev.ToolFinished)] == ["1", "2", "3"]
    assert played.results(1) == ["3", "1", "2"]


async def test_L5_duplicate_and_empty_ids_become_unique_and_always_the_same():
    def replies():
        return [
            says("", call("lookup", "a"), call("lookup", "a"), call("lookup", "")),
            says("", call("lookup", "a")),
            says("done"),
        ]

    one, two = await play(replies(), tools=[Spy()]), await play(replies(), tools=[Spy()])
    ids = [[c.id for e in p.of(ev.MessageFinished) for c in e.message.calls] for p in (one, two)]
    assert ids[0] == ids[1]
    assert len(set(ids[0])) == 4 and ids[0][0] == "a" and "" not in ids[0]


async def test_L5_every_call_has_a_result_after_a_stop():
    def on(session, event):
        if isinstance(event, ev.ToolStarted) and event.name == "slow":
            session.clock.call_later(1, session.stop)

    quick, slow = Spy("quick"), Spy("slow", takes_s=100)
    played = await play([says("", call("quick"), call("slow"), call("gone"))], tools=[quick, slow], on=on)
    assert played.outcome == "cancelled"
    texts = {e.name: e.text for e in played.of(ev.ToolFinished)}
    assert texts["quick"] == "42"
    assert texts["slow"].startswith("stopped before it finished")
    assert "no tool named 'gone'" in texts["gone"]


async def test_L6_a_batch_runs_concurrently():
    played = await play(
        [says("", *(call("lookup", n=n) for n in range(5))), says("done")], tools=[Spy(takes_s=10)]
    )
    assert played.of(ev.ToolBatchFinished)[0].seconds == pytest.approx(10)


async def test_L6_one_sequential_tool_makes_the_batch_run_in_call_order():
    order: list[str] = []

    async def note(args, ctx):
        order.append(f"+{args['n']}")
        await ctx.clock.sleep(5 - args["n"])
        order.append(f"-{args['n']}")

    tools = [Spy("free", note), Spy("alone", note, sequential=True)]
    calls = [call("free", n=1), call("alone", n=2), call("free", n=3)]
    await play([says("", *calls), says("done")], tools=tools)
    assert order == ["+1", "-1", "+2", "-2", "+3", "-3"]


async def test_L6_submissions_are_judged_first_then_approvals_then_tools_start():
    seen: list[str] = []

    def on(session, event):
        if isinstance(event, ev.ApprovalRequested):
            seen.append(f"ask {event.arguments['n']}")
            session.approve(event.id, "once")
        elif isinstance(event, ev.Submission):
            seen.append("judged")
        elif isinstance(event, ev.ToolStarted):
            seen.append(f"start {event.name}")

    calls = [call("write", n=1), call("look"), call("write", n=2), submit(1)]
    tools = [Spy("write", effect="edit"), Spy("look")]
    await play([says("", *calls), says("done")], tools=tools, schema=ANSWER, on=on, attended=True)
    assert seen == ["judged", "ask 1", "ask 2", "start write", "start look", "start write"]


async def test_L6_what_goes_wrong_in_a_tool_is_an_error_result_and_the_run_goes_on():
    async def crash(args, ctx):
        raise KeyError("row")

    async def refuse(args, ctx):
        raise ToolError("there is no such row; use `list` first")

    tools = [Spy("crash", crash), Spy("refuse", refuse), Spy("slow", takes_s=60, time_limit=5)]
    played = await play(
        [says("", call("crash"), call("refuse"), call("slow"), call("none")), says("done")], tools=tools
    )
    crashed, refused, slow, unknown = played.results(1)
    assert crashed == "crash failed: KeyError: 'row'"
    assert refused == "there is no such row; use `list` first"
    assert "time limit of 5 s" in slow
    assert "there is no tool named 'none'; the tools are: crash, refuse, slow" in unknown
    assert played.outcome == "completed"


async def test_L9_a_stopped_tool_says_what_may_still_be_running():
    async def escape(args, ctx):
        try:
            await ctx.clock.sleep(100)
        except asyncio.CancelledError:
            ctx.leave("may still be running: pid 4711")
            raise

    def on(session, event):
        if isinstance(event, ev.ToolStarted):
            session.clock.call_later(1, session.stop)

    played = await play([says("", call("lookup"))], tools=[Spy("lookup", escape)], on=on)
    assert "may still be running: pid 4711" in played.of(ev.ToolFinished)[0].text


async def test_L9_a_tool_that_will_not_stop_does_not_hold_the_run():
    async def stubborn(args, ctx):
        while True:
            try:
                await ctx.clock.sleep(1000)
                return "at last"
            except asyncio.CancelledError:
                continue

    def on(session, event):
        if isinstance(event, ev.ToolStarted):
            session.clock.call_later(1, session.stop)

    played = await play([says("", call("lookup"))], tools=[Spy("lookup", stubborn)], on=on)
    assert played.outcome == "cancelled"
    assert "may still be running: lookup" in played.of(ev.ToolFinished)[0].text


async def test_H5_nobody_there_and_no_mode_means_denied_and_the_run_goes_on():
    tool = Spy("write", effect="edit")
    played = await play([says("", call("write")), says("done")], tools=[tool])
    assert tool.started == []
    assert played.results(1) == ["denied: it changes files, and nobody is here to approve it"]
    assert played.outcome == "completed"


@pytest.mark.parametrize(
    ("mode", "ran"),
    [("ask", []), ("edits", ["write"]), ("all", ["write", "bash"]), ("unasked", ["write", "bash"])],
)
async def test_H5_modes(mode, ran):
    tools = [Spy("write", effect="edit"), Spy("bash", effect="run")]
    played = await play([says("", call("write"), call("bash")), says("done")], tools=tools, approve=mode)
    assert [e.name for e in played.of(ev.ToolStarted)] == ran


async def test_H5_deny_with_a_word_reaches_the_model():
    def on(session, event):
        if isinstance(event, ev.ApprovalRequested):
            session.approve(event.id, "deny", "Use the staging host.")

    played = await play(
        [says("", call("bash")), says("done")], tools=[Spy("bash", effect="run")], on=on, attended=True
    )
    assert played.results(1) == ["denied by the person. They say: Use the staging host."]


@pytest.mark.parametrize(("depth", "ran"), [(149, 1), (151, 0)])
async def test_L4_arguments_nested_absurdly_deep_are_answered_and_not_run(depth, ran):
    tool = Spy()
    raw = '{"a":' * (depth - 1) + "{}" + "}" * (depth - 1)
    played = await play([says("", ScriptedCall("lookup", raw)), says("done")], tools=[tool])
    assert len(tool.started) == ran
    assert played.outcome == "completed"


async def test_H5_a_call_whose_preview_fails_asks_first_whatever_the_mode():
    class Blind(Spy):
        def preview(self, args, ctx):
            raise OSError("stale file handle")

    tool = Blind("write", effect="edit")
    played = await play([says("", call("write")), says("done")], tools=[tool], approve="all")
    assert tool.started == []
    assert "an unknown place (OSError: stale file handle)" in played.results(1)[0]
