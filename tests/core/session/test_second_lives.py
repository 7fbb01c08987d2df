"""What holds between the lives of a run, and when the disk is full (rules J6, L3, R10, U7)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from runs import Spy, call, fails, make, says

from handrail import events as ev
from handrail.clock import VirtualClock
from handrail.policy import Bounds, RecoveryPolicy
from handrail.session.journal import Journal, JournalBroken
from handrail.session.records import JournalRecord, read_journal
from handrail.session.writer import JournalWriter

pytestmark = pytest.mark.attack

LIMIT = fails("You have hit your usage limit. Try again in 42 min.", 429)


def until(events: list[ev.Event], last: Callable[[ev.Event], bool]) -> list[ev.Event]:
    """The record up to the first event that `last` picks: where a killed program left it."""
    return events[: next(i for i, e in enumerate(events) if last(e)) + 1]


async def test_L3_the_time_between_two_lives_is_no_time_of_the_run() -> None:
    session, _, events = make(
        [says("", call("lookup")), says("Done.")], tools=[Spy()], bounds={"deadline_s": 60}
    )
    await session.run("Go.")
    record = until(events, lambda e: isinstance(e, ev.ToolBatchFinished))
    later = VirtualClock(record[-1].at + 86_400)
    again, _, _ = make([says("Done.")], tools=[Spy()], clock=later)
    again.load(record)
    finished = await again.resume()
    assert isinstance(finished, ev.RunFinished) and (finished.outcome, finished.bound) == ("completed", None)


async def test_U7_a_wait_that_was_decided_but_not_begun_is_waited_for() -> None:
    session, _, events = make([LIMIT, says("Done.")], recovery=RecoveryPolicy())
    await session.run("Go.")
    record = until(events, lambda e: isinstance(e, ev.Decided))
    decided = record[-1]
    assert isinstance(decided, ev.Decided) and decided.decision == "wait"
    again, _, new = make([says("Done.")], recovery=RecoveryPolicy(), clock=VirtualClock(decided.at + 600))
    again.load(record)
    finished = await again.resume()
    (wait,) = [e for e in new if isinstance(e, ev.WaitStarted)]
    assert (wait.until, wait.reason) == (decided.until, "usage-limit")
    assert wait.seconds == pytest.approx(decided.delay_s - 600)  # type: ignore[operator]
    assert finished.at >= wait.until


async def test_a_pause_that_was_decided_is_over_once_its_request_is_made() -> None:
    session, _, events = make([fails("overloaded", 503), says("Done.")], recovery=RecoveryPolicy())
    await session.run("Go.")
    record = until(events, lambda e: isinstance(e, ev.TurnStarted) and e.turn == 2)
    again, _, new = make([says("Done.")], recovery=RecoveryPolicy())
    again.load(record)
    await again.resume()
    assert not [e for e in new if isinstance(e, ev.WaitStarted)]


async def test_R10_a_new_prompt_leaves_no_checkpoint_of_a_reply_in_flight() -> None:
    session, _, events = make([says("I begin with it.", takes_s=4)])
    pieces: list[ev.MessageDelta] = []
    session.listen(lambda e: pieces.append(e) if isinstance(e, ev.MessageDelta) else None)
    await session.run("Go.")
    record = until(events, lambda e: isinstance(e, ev.MessageStarted))
    again, provider, _ = make([says("Done.")])
    again.load(record, pieces)
    await again.run("Something else.")
    assert [m.text for m in provider.requests[0].messages] == ["Go.", "Something else."]


async def test_a_new_prompt_closes_the_question_of_the_old_one() -> None:
    session, _, events = make([says("", call("ask_human", kind="login", needed="Log in."))])
    await session.run("Go.")
    assert session.state.paused
    again, _, _ = make([says("Done.")], bounds={"deadline_s": 60})
    again.load(events)
    finished = await again.run("Something else.")
    assert isinstance(finished, ev.RunFinished) and finished.outcome == "completed"
    assert not again.state.paused, "the clock of the run does not hold for a question nobody asks any more"


def test_L3_a_stored_cost_bound_without_a_price_is_refused() -> None:
    started = ev.RunStarted(prompt="Go.", max_turns=5, max_attempts=3, max_cost=1.0)
    session, _, _ = make([])
    with pytest.raises(ValueError, match="price"):
        session.load([started])


async def test_bounds_are_set_before_a_run_goes_on() -> None:
    session, _, events = make([says("", call("lookup"))], tools=[Spy()], bounds={"max_turns": 1})
    await session.run("Go.")
    again, _, new = make([says("Done.")], tools=[Spy()])
    again.load(events)
    again.set_bounds(Bounds(max_turns=2, max_attempts=9, max_total_tokens=5_000_000))
    finished = await again.resume()
    assert isinstance(finished, ev.RunFinished) and (finished.outcome, finished.requests) == ("completed", 2)
    started = next(e for e in new if isinstance(e, ev.RunStarted))
    assert (started.max_turns, started.max_attempts, started.max_total_tokens) == (2, 9, 5_000_000)
    with pytest.raises(ValueError, match="price"):
        again.set_bounds(Bounds(max_cost=1.0))


class FullDisk:
    """A record that cannot be written between two moments."""

    def __init__(self, clock: VirtualClock, full: tuple[float, float]) -> None:
        self._clock, self._full = clock, full

    def append(self, event: ev.Event) -> None:
        """Kept in memory, as a backlog is."""

    async def commit(self) -> str | None:
        since, to = self._full
        passed = self._clock.now() - VirtualClock().now()
        return "the disk is full" if since <= passed < to else None


async def test_J6_while_the_disk_is_full_no_request_starts_and_the_run_says_so() -> None:
    clock = VirtualClock()
    session, provider, events = make([says("Done.")], clock=clock, record=FullDisk(clock, (0, 100)))
    finished = await session.run("Go.")
    assert isinstance(finished, ev.RunFinished) and finished.outcome == "completed"
    notices = [(e.level, e.text) for e in events if isinstance(e, ev.Notice)]
    assert notices == [
        ("error", "the disk is full"),
        ("info", "the journal can be written again; the run continues"),
    ]
    first = next(e for e in events if isinstance(e, ev.TurnStarted))
    assert first.at - VirtualClock().now() >= 100 and len(provider.requests) == 1


class FullFromTheStart(FullDisk):
    """A disk that is full from the first start of a tool on, for 90 s."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock, (1e9, 1e9))

    def append(self, event: ev.Event) -> None:
        if isinstance(event, ev.ToolStarted):
            since = self._clock.now() - VirtualClock().now()
            self._full = (since, since + 90)


@pytest.mark.parametrize("effect", ["edit", "run"])
async def test_J6_while_the_disk_is_full_no_tool_that_changes_things_starts(effect: str) -> None:
    clock = VirtualClock()
    began: list[float] = []

    async def act(args: Any, ctx: Any) -> str:
        began.append(ctx.clock.now())
        return "ok"

    session, _, events = make(
        [says("", call("change"), takes_s=10), says("Done.")],
        tools=[Spy("change", act, effect=effect)],
        clock=clock,
        record=FullFromTheStart(clock),
        approve="all",
    )
    await session.run("Go.")
    (started,) = [e for e in events if isinstance(e, ev.ToolStarted)]
    assert began == [pytest.approx(started.at + 90, abs=6)], (
        "its start is on the disk before it starts (rule J1)"
    )


async def test_J6_a_run_that_holds_for_the_disk_can_be_stopped() -> None:
    clock = VirtualClock()
    session, provider, events = make([says("no")], clock=clock, record=FullDisk(clock, (0, 1e9)))
    session.listen(lambda e: clock.call_later(60, session.stop) if isinstance(e, ev.Notice) else None)
    finished = await session.run("Go.")
    assert isinstance(finished, ev.RunFinished) and finished.outcome == "cancelled"
    assert provider.requests == [] and events[-1] == finished


async def test_J6_a_real_journal_on_a_full_disk_loses_nothing(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = VirtualClock()
    journal = Journal.create(tmp_path / "s" / "journal.jsonl", session="s", meta={}, clock=clock)
    keeper = JournalWriter(journal, clock)
    plain, full = journal.append_record, [True]

    def append(record: JournalRecord) -> None:
        if full[0]:
            raise JournalBroken("no space left on device")
        plain(record)

    monkeypatch.setattr(journal, "append_record", append)
    clock_started = clock.now()
    session, _, events = make([says("Done.", takes_s=3)], clock=clock, record=keeper)
    session.listen(
        lambda e: (
            clock.call_later(30, lambda: full.__setitem__(0, False)) if isinstance(e, ev.Notice) else None
        )
    )
    await session.run("Go.")
    keeper.close()
    kept = list(read_journal(journal.path).events())
    assert kept == [e for e in events if not isinstance(e, ev.MessageDelta)], "all of it, in its order"
    assert clock.now() - clock_started >= 30


def test_said_is_the_last_word_on_a_setting() -> None:
    from handrail.session.resume import LoadedRun

    started = ev.RunStarted(model="a/one", approve="ask")
    changed = ev.SettingsChanged(model="b/two")
    assert LoadedRun((started, changed)).latest("model") == "b/two"
    assert LoadedRun((started, changed)).latest("approve") == "ask"
    assert LoadedRun((started, changed, replace(started, resumed=True))).latest("model") == "a/one"
    assert LoadedRun(()).latest("model") is None
