"""A foreign agent in a session of ours: its updates as events, approvals, questions, stop, resume (L, H, J rules)."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest
from foreign import entry, foreign

from handrail import events as ev
from handrail.policy import Bounds

pytestmark = pytest.mark.skipif(os.name == "nt", reason="process groups")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    return place


async def test_words_and_thoughts_are_one_turn(folder: Path) -> None:
    at = foreign(folder)
    last = await at.session.run("hello")
    assert at.types == [
        "run_started",
        "notice",  # its requests are not seen
        "turn_started",
        "message_started",
        "message_delta",
        "message_finished",
        "turn_finished",
        "run_finished",
    ]
    (finished,) = at.of(ev.MessageFinished)
    assert (finished.message.thinking, finished.message.text) == ("Let me think.", "Hello, you.")
    assert last.outcome == "completed"
    assert last.text == "Hello, you."
    assert last.usage.total == 10


async def test_H5_a_permission_is_an_approval_with_its_diff_and_the_run_goes_on(folder: Path) -> None:
    at = foreign(folder, attended=True)
    at.when(ev.ApprovalRequested, lambda e: at.session.approve(e.id, "once"))
    last = await at.session.run("edit")
    (asked,) = at.of(ev.ApprovalRequested)
    assert (asked.title, asked.pattern) == ("Write a.txt", "Always allow writes")
    assert asked.diff == "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+one\n"
    (done,) = at.of(ev.ToolFinished)
    assert (done.call_id, done.is_error, done.diff) == (asked.call_id, False, asked.diff)
    assert [c.title for c in at.of(ev.ToolBatchStarted)[0].calls] == ["Write a.txt"]
    assert (folder / "a.txt").read_text() == "one\n"
    assert (last.outcome, last.text, last.turns) == ("completed", "It was allow_once.", 2)


@pytest.mark.parametrize(("how", "said"), [("session", "allow_always"), ("deny", "reject_once")])
async def test_H5_each_answer_is_the_option_that_means_it(folder: Path, how: str, said: str) -> None:
    at = foreign(folder, attended=True)
    at.when(ev.ApprovalRequested, lambda e: at.session.approve(e.id, how))  # type: ignore[arg-type]
    last = await at.session.run("edit")
    assert last.text == f"It was {said}."


async def test_H5_deny_with_a_word_is_the_word_as_the_next_prompt(folder: Path) -> None:
    at = foreign(folder, attended=True)
    at.when(ev.ApprovalRequested, lambda e: at.session.approve(e.id, "deny", "use b.txt instead"))
    last = await at.session.run("edit")
    assert last.text == "I heard: use b.txt instead"
    assert not (folder / "a.txt").exists()


async def test_H5_nobody_there_denies_and_the_run_goes_on(folder: Path) -> None:
    at = foreign(folder)
    last = await at.session.run("edit")
    assert [e.how for e in at.of(ev.ApprovalAnswered)] == ["nobody"]
    assert last.text == "It was reject_once."


async def test_H5_a_mode_allows_beforehand(folder: Path) -> None:
    at = foreign(folder, approve="edits")
    await at.session.run("edit")
    assert at.of(ev.ApprovalRequested) == []
    assert (folder / "a.txt").exists()


async def test_what_the_agent_allowed_by_itself_is_marked(folder: Path) -> None:
    at = foreign(folder)
    await at.session.run("edit boldly")
    (done,) = at.of(ev.ToolFinished)
    assert "nobody was asked" in done.summary


async def test_calls_side_by_side_are_one_batch_and_a_late_one_the_next(folder: Path) -> None:
    at = foreign(folder)
    last = await at.session.run("two")
    batches = [[c.id for c in e.calls] for e in at.of(ev.ToolBatchStarted)]
    assert batches == [["t1", "t2"], ["t3"]]
    assert [(e.call_id, e.text) for e in at.of(ev.ToolFinished)] == [
        ("t2", "output 2"),
        ("t1", "output 1"),
        ("t3", "output 3"),
    ]
    assert last.text == "All done."


async def test_H1_ask_human_reaches_the_person_and_the_answer_the_agent(folder: Path) -> None:
    at = foreign(folder, attended=True)
    at.when(ev.HumanRequested, lambda e: at.session.answer(e.id, "answered", "it says 4711"))
    last = await at.session.run("ask")
    (asked,) = at.of(ev.HumanRequested)
    assert (asked.kind, asked.needed, asked.where) == ("captcha", "Solve it.", "https://example.org")
    assert last.text == "The person said: it says 4711"


async def test_H1_the_marked_line_is_a_question_and_its_answer_the_next_prompt(folder: Path) -> None:
    at = foreign(folder, attended=True)
    at.when(ev.HumanRequested, lambda e: at.session.answer(e.id, "answered", "solved, it was 7"))
    last = await at.session.run("marked")
    assert last.text == "I heard: solved, it was 7"


async def test_H4_with_nobody_there_a_marked_line_ends_the_run(folder: Path) -> None:
    last = await foreign(folder).session.run("marked")
    assert last.outcome == "human-required"
    assert last.question.needed == "solve the puzzle"


async def test_L8_what_a_person_says_meanwhile_is_the_next_prompt(folder: Path) -> None:
    at = foreign(folder)
    at.when(ev.TurnStarted, lambda e: at.session.steer("and this") if e.turn == 1 else None)
    last = await at.session.run("hello")
    assert last.text == "I heard: and this"
    assert [e.text for e in at.of(ev.Steered)] == ["and this"]


@pytest.mark.parametrize("prompt", ["flood", "silent", "edit"])
async def test_L9_stop_ends_the_run_at_once_and_leaves_nothing(folder: Path, prompt: str) -> None:
    at = foreign(folder, attended=True)
    running = asyncio.create_task(at.session.run(prompt))
    kind = {"flood": ev.MessageDelta, "silent": ev.RunStarted, "edit": ev.ApprovalRequested}[prompt]
    await at.first(kind)
    if prompt == "silent":
        await asyncio.sleep(0.3)
    began = time.monotonic()
    at.session.stop()
    last = await running
    assert time.monotonic() - began < 2
    assert (last.outcome, last.stopped) == ("cancelled", True)
    assert not _alive(folder)
    if prompt == "edit":
        assert [e.how for e in at.of(ev.ApprovalAnswered)] == ["stopped"]
        asked = at.of(ev.ApprovalRequested)[0]
        assert at.session.approve(asked.id, "once") is False  # answered after the stop: nothing runs
        assert not (folder / "a.txt").exists()


async def test_L9_an_agent_that_ignores_everything_is_killed_with_its_children(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handrail.agents._connection.CANCEL_S", 0.2)
    monkeypatch.setattr("handrail.agents._process.GRACE_S", 0.3)
    at = foreign(folder, entry("stubborn"))
    running = asyncio.create_task(at.session.run("stubborn"))
    await at.first(ev.MessageDelta)
    at.session.stop()
    last = await running
    assert last.outcome == "cancelled"
    assert not _alive(folder)
    assert any("does not stop" in e.text for e in at.of(ev.Notice))


@pytest.mark.parametrize(
    ("prompt", "words"),
    [("garbage", "200 lines that are no messages"), ("dies", "code 3. Its last words:\nSegmentation fault")],
)
async def test_an_agent_that_breaks_is_a_clear_end(folder: Path, prompt: str, words: str) -> None:
    at = foreign(folder)
    last = await at.session.run(prompt)
    assert last.outcome == "provider"
    assert last.error.startswith("Fake: ")
    assert words in last.error
    assert not _alive(folder)


async def test_a_greeting_before_the_protocol_is_no_harm(folder: Path) -> None:
    last = await foreign(folder, entry("banner")).session.run("hello")
    assert last.outcome == "completed"


async def test_a_program_that_speaks_no_acp_is_a_clear_end(folder: Path) -> None:
    from handrail.agents.registry import AgentEntry

    last = await foreign(folder, AgentEntry("echo", ("echo", "hello"))).session.run("hello")
    assert last.outcome == "provider"
    assert "it ended with code 0" in last.error


async def test_a_login_by_key_needs_no_person(folder: Path) -> None:
    agent = entry("auth", variables=("FAKE_*",), authenticate={"agent-key": "FAKE_KEY"})
    last = await foreign(folder, agent, environ={**os.environ, "FAKE_KEY": "k"}).session.run("hello")
    assert last.outcome == "completed"


async def test_a_login_that_needs_a_person_is_said(folder: Path) -> None:
    last = await foreign(folder, entry("auth")).session.run("hello")
    assert (last.outcome, last.error) == ("provider", "Fake: Authentication required")


async def test_L1_without_the_gateway_a_bound_holds_after_the_fact_and_says_so(folder: Path) -> None:
    at = foreign(folder, bounds=Bounds(max_turns=1))
    last = await at.session.run("two")
    assert (last.outcome, last.bound) == ("turn-limit", "max_turns")
    assert any("after the fact" in e.text for e in at.of(ev.Notice))


def test_L3_a_bound_on_cost_needs_the_gateway(folder: Path) -> None:
    with pytest.raises(ValueError, match="cannot be enforced"):
        foreign(folder, bounds=Bounds(max_cost=1.0))


async def test_L3_the_deadline_acts_like_a_stop(folder: Path) -> None:
    last = await foreign(folder, bounds=Bounds(deadline_s=0.8)).session.run("silent")
    assert (last.outcome, last.bound) == ("budget", "deadline_s")
    assert not _alive(folder)


async def test_J_a_second_run_takes_the_agents_session_up_and_tells_nothing_twice(folder: Path) -> None:
    first = foreign(folder)
    await first.session.run("hello")
    second = foreign(folder)
    second.session.load(first.events)
    last = await second.session.resume()
    assert last.text == "I heard: Go on with the task from where you were interrupted."
    said = "".join(e.text for e in second.of(ev.MessageDelta))
    assert "what I said before" not in said


async def test_J_an_agent_that_cannot_load_is_asked_anew_and_told_so(folder: Path) -> None:
    first = foreign(folder)
    await first.session.run("please do it")
    second = foreign(folder, entry("no-load"))
    second.session.load(first.events)
    last = await second.session.resume()
    assert last.text.startswith("I heard: please do it")
    assert any("begins anew" in e.text for e in second.of(ev.Notice))


async def test_J7_a_suspended_run_can_be_resumed(folder: Path) -> None:
    at = foreign(folder)
    running = asyncio.create_task(at.session.run("silent"))
    await asyncio.sleep(0.5)
    at.session.suspend("SIGTERM")
    last = await running
    assert (last.type, last.signal) == ("run_interrupted", "SIGTERM")
    assert not _alive(folder)


def _alive(folder: Path) -> list[str]:
    """Processes that still work in the folder."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cwd"):
        try:
            state = place.with_name("stat").read_text().rpartition(")")[2].split()[0]
            if state not in "ZX" and place.resolve() == folder.resolve():
                found.append(place.with_name("cmdline").read_text())
        except OSError:
            continue
    return [line for line in found if "fake_agent" in line or "time.sleep(300)" in line]


async def test_one_open_permission_blocks_no_other_session(tmp_path: Path) -> None:
    (one_place := tmp_path / "one").mkdir()
    (other_place := tmp_path / "other").mkdir()
    one, other = foreign(one_place, attended=True), foreign(other_place)
    waiting = asyncio.create_task(one.session.run("edit"))
    await one.first(ev.ApprovalRequested)
    assert (await other.session.run("hello")).outcome == "completed"
    assert not waiting.done()
    one.session.stop()
    await waiting


async def test_L8_after_a_stop_the_queue_is_the_persons_and_the_next_run_works(folder: Path) -> None:
    at = foreign(folder)
    running = asyncio.create_task(at.session.run("silent"))
    await asyncio.sleep(0.3)
    at.session.follow_up("and then this")
    at.session.stop()
    assert (await running).outcome == "cancelled"
    assert [m.text for e in at.of(ev.QueueChanged) for m in e.returned] == ["and then this"]
    last = await at.session.run("hello")
    assert (last.outcome, last.text) == ("completed", "Hello, you.")
