"""The fold: events in, what the screen shows out."""

from __future__ import annotations

import pytest
from stories import LONG, Story, batch_done, broken_stream, flaky, second_attempt

from handrail import events as ev
from handrail.clock import EPOCH
from handrail.events import CallInfo, QueuedMessage
from handrail.messages import AssistantMessage, Failure, Text, Thinking, Usage
from handrail_tui.view import wording
from handrail_tui.view.items import (
    AttemptItem,
    CallItem,
    CompactionItem,
    DecisionItem,
    EndItem,
    NoteItem,
    PersonItem,
    TurnItem,
)
from handrail_tui.view.state import ViewState
from handrail_tui.widgets.decisions import decision_lines


def fold(story: Story, state: ViewState | None = None) -> ViewState:
    state = state or ViewState()
    for event in story.events:
        state.apply(event)
    story.events = []
    return state


def last_turn(state: ViewState) -> TurnItem:
    return next(item for item in reversed(state.items) if isinstance(item, TurnItem))


def calls(state: ViewState) -> list[CallItem]:
    batch = last_turn(state).current.batch
    assert batch is not None
    return batch.calls


def test_the_transcript_holds_what_was_said_and_done_in_order() -> None:
    state = fold(flaky())
    assert [type(item) for item in state.items] == [PersonItem, TurnItem, TurnItem, TurnItem]
    attempt = last_turn(state).current
    assert [(b.kind, b.lines) for b in attempt.blocks] == [("thinking", 34), ("text", 1)]
    assert [(c.name, c.state, c.lines) for c in calls(state)] == [
        ("read", "ok", 214),
        ("grep", "ok", 7),
        ("bash", "running", 0),
    ]
    assert calls(state)[2].tail.last(1) == ["...........F............"]
    assert state.phase == "tools"


def test_thinking_keeps_the_moments_in_which_it_streamed() -> None:
    block = last_turn(fold(flaky())).current.blocks[0]
    assert block.ended_at is not None
    assert block.ended_at - block.started_at == pytest.approx(2.1, abs=0.2)


def test_R7_a_broken_attempt_is_kept_superseded_and_the_next_one_says_why() -> None:
    state = fold(second_attempt(batch_done(flaky())))
    turn = last_turn(state)
    first, second = turn.attempts
    assert (first.superseded, first.kept, first.text) == (True, "1.2k characters", LONG)
    assert second.heading == "attempt 2 of 4, connection lost after 1.2k characters"
    assert (first.request, second.request) == (4, 5)
    assert [entry.word for entry in state.decisions] == ["rejected", "retry"]
    assert state.decisions[1].rest == "1 of 3, in 2 s"
    assert state.decisions[1].checkpoint.startswith("The previous reply broke.")


def test_steering_between_two_attempts_begins_a_new_turn_in_the_transcript() -> None:
    story = broken_stream(Story().start().request(1).says("half").reply(Text("half"), stop="error"))
    story.add(ev.WaitEnded, how="steered").add(ev.Steered, id="q1", text="other way").request(2, attempt=2)
    assert [type(item) for item in fold(story).items] == [PersonItem, TurnItem, PersonItem, TurnItem]


def test_a_message_supersedes_its_deltas() -> None:
    story = Story().start().request(1).says("on the way").reply(Text("what it said in the end"))
    assert last_turn(fold(story)).current.text == "what it said in the end"


def test_a_message_without_deltas_shows_too() -> None:
    story = Story().start().request(1).reply(Thinking("hm"), Text("done"), stop="stop")
    assert [block.text for block in last_turn(fold(story)).current.blocks] == ["hm", "done"]


def test_L11_text_is_cleaned_in_the_fold() -> None:
    story = Story().start("do \x1b[2Jit").request(1).says("a\x1b]0;x\x07b")
    story.batch(("bash", "echo \x1b[31m")).output(0, "\x1b[2Jout\n").result(
        0, "bash", text="r\x9b31m", summary="s\x07"
    )
    state = fold(story)
    said = state.items[0]
    assert isinstance(said, PersonItem)
    assert said.text == "do it"
    assert last_turn(state).current.text == "ab"
    call = calls(state)[0]
    assert (call.title, call.text, call.summary) == ("echo ␛[31m", "r", "s")
    assert call.tail.last(1) == ["out"]


def test_H5_what_is_asked_to_be_allowed_shows_its_control_characters() -> None:
    story = Story().start().request(1).batch(("bash", "x"))
    story.add(
        ev.ApprovalRequested,
        id="a1",
        call_id="c1.0",
        tool="bash",
        title="echo \x1b]0;rm -rf ~\x07",
        arguments={"command": "echo \x1b]0;rm -rf ~\x07"},
    )
    state = fold(story)
    assert state.approvals["a1"].title == "echo ␛]0;rm -rf ~␇"
    assert state.approvals["a1"].arguments == {"command": "echo ␛]0;rm -rf ~␇"}
    assert (state.phase, calls(state)[0].state) == ("approval", "asking")


@pytest.mark.parametrize(("how", "then"), [("once", "queued"), ("session", "queued"), ("deny", "denied")])
def test_H5_an_answered_approval_is_off_the_screen(how: str, then: str) -> None:
    story = Story().start().request(1).batch(("bash", "x"))
    story.add(ev.ApprovalRequested, id="a1", call_id="c1.0", tool="bash").add(
        ev.ApprovalAnswered, id="a1", how=how
    )
    state = fold(story)
    assert (state.approvals, calls(state)[0].state) == ({}, then)


def test_H2_time_with_a_person_does_not_count_as_work() -> None:
    story = Story().start().request(1).pause(10)
    story.add(ev.HumanRequested, id="h1", kind="captcha", needed="Solve it").pause(100)
    state = fold(story)
    assert state.phase == "needs-you"
    assert state.watch.read(story.at) == pytest.approx(10.4)
    state = fold(story.add(ev.HumanAnswered, id="h1", how="resolved").pause(5), state)
    assert state.watch.read(story.at) == pytest.approx(15.4)
    assert not state.questions


def test_U4_a_wait_for_a_limit_does_not_count_as_work() -> None:
    story = Story().start().pause(1)
    story.add(ev.WaitStarted, seconds=60, until=story.at + 60, decision="wait", reason="usage-limit").pause(
        60
    )
    state = fold(story)
    assert state.phase == "waiting"
    assert state.watch.read(story.at) == pytest.approx(1)


def test_a_backoff_counts_as_work() -> None:
    story = Story().start().add(ev.WaitStarted, seconds=2, until=EPOCH + 2, decision="retry").pause(2)
    state = fold(story)
    assert state.phase == "retrying"
    assert state.watch.read(story.at) == pytest.approx(2)


def test_a_stream_without_data_for_45_seconds_is_stalled() -> None:
    story = Story().start().request(1).says("half a")
    state = fold(story)
    assert state.stalled(story.at + 44) is None
    assert state.stalled(story.at + 46) == pytest.approx(46)
    fold(story.reply(Text("half a")).batch(("bash", "sleep")), state)
    assert state.stalled(story.at + 100) is None


def test_S4_a_rejected_submission_names_its_fields() -> None:
    entry = fold(flaky()).decisions[0]
    assert (entry.word, entry.rest, entry.why) == ("rejected", "submission 1", "cause: Field required")


def test_L8_the_queue_is_what_the_last_event_says() -> None:
    story = Story().start().add(ev.QueueChanged, steering=(QueuedMessage("1", "a\x1b[1m"),))
    state = fold(story)
    assert [m.text for m in state.steering] == ["a"]
    fold(story.add(ev.Steered, id="1", text="a"), state)
    assert state.steering == (), "the record that delivers a message takes it off the queue"
    assert isinstance(state.items[-1], PersonItem)


def test_L7_the_votes_of_a_batch_are_kept() -> None:
    story = Story().start().request(1).batch(("a", ""), ("b", ""), ("c", ""))
    story.add(ev.ToolBatchFinished, votes=1, of=3, ends=False, seconds=1.0)
    batch = last_turn(fold(story)).current.batch
    assert batch is not None
    assert (batch.votes, batch.of, batch.ends, batch.seconds) == (1, 3, False, 1.0)


def test_R14_a_summary_is_no_turn_of_the_transcript() -> None:
    story = Story().start().add(ev.CompactionStarted, why="context full", messages=12, before=190_000)
    story.request(1, purpose="summary").says("summary").reply(Text("summary"), stop="stop", purpose="summary")
    state = fold(story)
    assert state.phase == "compacting"
    fold(story.add(ev.CompactionFinished, ok=True, summary="what was", before=190_000, after=9_000), state)
    assert [type(item) for item in state.items] == [PersonItem, CompactionItem]
    assert state.meters.turn == 1


def test_J7_an_interrupted_run_goes_on_with_its_clock() -> None:
    story = Story().start().request(1).pause(10).add(ev.RunInterrupted, signal="SIGTERM").pause(1000)
    state = fold(story)
    assert state.phase == "interrupted"
    assert state.watch.read(story.at) == pytest.approx(10.4)
    fold(story.start(resumed=True).pause(5), state)
    assert state.watch.read(story.at) == pytest.approx(15.4)
    assert isinstance(state.items[-1], NoteItem)


def test_the_end_closes_what_was_open() -> None:
    story = Story().start().request(1).says("half").batch(("bash", "x")).tool(0, "bash")
    story.add(ev.ApprovalRequested, id="a", call_id="c1.0", tool="bash")
    story.add(ev.RunFinished, outcome="cancelled", requests=1, turns=1, usage=Usage(10, 5))
    state = fold(story)
    assert (state.phase, state.approvals) == ("finished", {})
    end = state.items[-1]
    assert isinstance(end, EndItem)
    assert (end.words, end.detail) == ("Stopped by you", "1 request · 15 tokens")


def test_a_huge_result_is_counted_whole_and_kept_in_part() -> None:
    story = Story().start().request(1).batch(("bash", "x")).result(0, "bash", text="row\n" * 5_000_000)
    call = calls(fold(story))[0]
    assert call.lines == 5_000_000
    assert len(call.text) < 200_000
    assert "left out" in call.text


def test_the_same_events_give_the_same_state() -> None:
    events = second_attempt(batch_done(flaky())).events
    one, two = ViewState(), ViewState()
    for event in events:
        one.apply(event)
        two.apply(event)
    assert describe(one) == describe(two)


def describe(state: ViewState) -> list[object]:
    found: list[object] = [state.phase, state.meters, [(e.word, e.rest, e.why) for e in state.decisions]]
    for item in state.items:
        attempts: list[AttemptItem] = item.attempts if isinstance(item, TurnItem) else []
        found += [(a.heading, a.text, [c.state for c in a.batch.calls] if a.batch else []) for a in attempts]
    return found


def test_events_that_fit_nothing_change_nothing_and_break_nothing() -> None:
    state = ViewState()
    strays: list[ev.Event] = [
        ev.MessageDelta(text="x"),
        ev.MessageFinished(message=AssistantMessage(failure=Failure("x"))),
        ev.ToolBatchStarted(calls=(CallInfo("1", "a", "b"),)),
        ev.ToolProgress(call_id="no", text="x"),
        ev.ToolFinished(call_id="no", name="x"),
        ev.ToolBatchFinished(),
        ev.TurnFinished(),
        ev.WaitEnded(),
        ev.HumanAnswered(id="no", how="resolved"),
        ev.ApprovalAnswered(id="no", how="once"),
        ev.CompactionFinished(ok=True),
        ev.CheckpointMade(text="x"),
        ev.Decided(decision="retry", reason="transient", omits=True),
        ev.Submission(accepted=True, call_id="no"),
    ]
    for event in strays:
        state.apply(event)
    assert not any(isinstance(item, TurnItem) for item in state.items)


def test_twenty_thousand_deltas_fold_into_one_block() -> None:
    state = fold(Story(EPOCH).start().request(1))
    for _ in range(20_000):
        state.apply(ev.MessageDelta(text="word ", turn=1))
    block = last_turn(state).current.blocks[0]
    assert (block.chars, len(block.pieces)) == (100_000, 20_000)
    assert len(block.text) == 100_000


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ('{"error": {"message": "No such key.", "code": 401}}', "No such key."),
        ('{"error": "overloaded"}', "overloaded"),
        ('{"detail": "not found"}', "not found"),
        ('{"error": {"code": 401}}', '{"error": {"code": 401}}'),
        ("[1, 2]", "[1, 2]"),
        ('{"cut', '{"cut'),
        ("plain words", "plain words"),
    ],
)
def test_a_provider_is_quoted_without_the_envelope_of_its_words(error: str, words: str) -> None:
    assert wording.provider_message(error) == words


def test_a_person_who_stopped_a_run_is_not_told_who_stopped_it() -> None:
    ended = {"requests": 1, "turns": 1, "usage": Usage(1, 1)}
    stopped = Story().start().add(ev.RunFinished, outcome="cancelled", error="stopped by the person", **ended)
    assert [i.error for i in fold(stopped).items if isinstance(i, EndItem)] == [""]


def test_a_reason_that_is_too_long_says_so() -> None:
    entry = DecisionItem(
        EPOCH, "retry", "decision", "1 of 3", "one two three four five six seven eight nine ten", 1
    )
    lines = [line.plain for line in decision_lines([entry], 25, 9)]
    assert len(lines) == 3 and lines[-1].endswith("…") and all(len(line) <= 25 for line in lines)
