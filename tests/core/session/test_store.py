"""Where sessions live: found by a prefix, listed from their ends, forked, deleted (rules J1, J5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import platformdirs
import pytest

from handrail.clock import EPOCH, ManualClock
from handrail.events import (
    ApprovalAnswered,
    ApprovalRequested,
    Decided,
    Event,
    HumanAnswered,
    HumanRequested,
    MessageDelta,
    MessageFinished,
    MessageStarted,
    Notice,
    RunFinished,
    RunInterrupted,
    RunStarted,
    ToolProgress,
    TurnFinished,
    TurnStarted,
    WaitEnded,
    WaitStarted,
)
from handrail.messages import AssistantMessage, Text
from handrail.session.journal import JournalLocked
from handrail.session.store import SessionNotFound, Store, new_id
from handrail.session.summary import SessionSummary


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "sessions")


STARTED = RunStarted(at=EPOCH + 1, prompt="Fix the\n flaky  test.", cwd="/shop", model="a/b")
TURN = [
    TurnStarted(at=EPOCH + 2, turn=1),
    MessageStarted(at=EPOCH + 2, turn=1, model="a/c"),
    MessageFinished(at=EPOCH + 3, turn=1, message=AssistantMessage((Text("hello"),))),
    TurnFinished(at=EPOCH + 3, turn=1, cost=0.25),
]
ASK = HumanRequested(at=EPOCH + 4, turn=1, id="q1", kind="captcha", needed="Solve it")
APPROVAL = ApprovalRequested(at=EPOCH + 4, turn=1, id="a1", call_id="1", tool="bash", title="rm x")
WAIT = WaitStarted(at=EPOCH + 4, turn=1, seconds=60, until=EPOCH + 64)


def made(store: Store, *events: Event, clock: ManualClock | None = None) -> str:
    with store.create(clock or ManualClock(), meta={"cwd": "/x", "title": "later"}) as journal:
        for event in events:
            journal.append(event)
    return journal.session


def only(store: Store) -> SessionSummary:
    (summary,) = store.list()
    return summary


def test_ids_sort_by_time_and_are_short() -> None:
    ids = [new_id(EPOCH + n / 1000) for n in range(1000)]
    assert ids == sorted(ids)
    assert {len(i) for i in ids} == {11}
    assert new_id(4e9) > ids[-1]


def test_many_sessions_of_one_moment_get_their_own_ids(store: Store) -> None:
    assert len({made(store) for _ in range(60)}) == 60


def test_a_session_is_found_by_the_beginning_of_its_id(store: Store) -> None:
    clock = ManualClock()
    first = made(store, clock=clock)
    clock.advance(3600 * 24 * 400)
    second = made(store, clock=clock)
    assert store.path_of(first).parent.name == first
    assert store.path_of(f" {second[:4].upper()} ").parent.name == second
    with pytest.raises(SessionNotFound, match=rf"2 sessions start with '{first[0]}': {first}, {second}"):
        store.path_of(first[0])
    for nothing in ("zzz", "", "..", "../sessions"):
        with pytest.raises(SessionNotFound, match="handrail sessions"):
            store.path_of(nothing)


def test_an_id_that_begins_another_one_is_meant_itself(store: Store) -> None:
    made(store)
    id = made(store)
    folder = store.path_of(id).parent
    (folder.rename(folder.with_name(id[:6])), store.path_of(id[:6]))
    assert store.path_of(id[:6]).parent.name == id[:6]


def test_the_default_place_is_the_platforms_state_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platformdirs, "user_state_dir", lambda *a, **k: "/state/handrail")
    assert Store().root == Path("/state/handrail/sessions")


def test_an_empty_or_absent_folder_has_no_sessions(store: Store) -> None:
    assert store.list() == []
    with pytest.raises(SessionNotFound):
        store.read("a")


def test_a_session_in_a_list(store: Store) -> None:
    id = made(store, STARTED, *TURN, RunFinished(at=EPOCH + 9, outcome="completed", turns=1, cost=0.5))
    assert only(store) == SessionSummary(
        id=id,
        path=store.path_of(id),
        title="Fix the flaky test.",
        cwd="/shop",
        model="a/c",
        started=EPOCH,
        last=EPOCH + 9,
        state="finished",
        running=False,
        outcome="completed",
        turns=1,
        cost=0.5,
    )


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([], {"state": "interrupted", "title": "later", "cwd": "/x"}),
        ([STARTED], {"state": "interrupted", "turns": 0}),
        ([STARTED, *TURN], {"state": "interrupted", "turns": 1, "cost": 0.25}),
        ([STARTED, *TURN, RunInterrupted(at=EPOCH + 5)], {"state": "interrupted", "last": EPOCH + 5}),
        ([STARTED, *TURN, ASK], {"state": "needs_you", "needs": "Solve it"}),
        ([STARTED, *TURN, ASK, RunInterrupted()], {"state": "needs_you"}),
        (
            [STARTED, *TURN, ASK, HumanAnswered(id="q1", how="resolved")],
            {"state": "interrupted", "needs": None},
        ),
        ([STARTED, *TURN, ASK, HumanAnswered(id="q1", how="nobody")], {"state": "needs_you"}),
        ([STARTED, *TURN, APPROVAL], {"state": "needs_you", "needs": "bash rm x"}),
        ([STARTED, *TURN, APPROVAL, ApprovalAnswered(id="a1", how="once")], {"state": "interrupted"}),
        ([STARTED, *TURN, WAIT], {"state": "waiting", "until": EPOCH + 64}),
        ([STARTED, *TURN, WAIT, RunInterrupted()], {"state": "waiting", "until": EPOCH + 64}),
        ([STARTED, *TURN, WAIT, WaitEnded()], {"state": "interrupted", "until": None}),
        ([STARTED, *TURN, WAIT, TurnStarted(turn=2)], {"state": "interrupted", "until": None, "turns": 2}),
        (
            [STARTED, *TURN, WaitStarted(seconds=2, until=EPOCH + 6, decision="retry")],
            {"state": "interrupted", "until": None},
        ),
        (
            [STARTED, *TURN, ASK, RunFinished(outcome="human-required", question=ASK)],
            {"state": "needs_you", "outcome": "human-required"},
        ),
        (
            [STARTED, *TURN, ASK, RunFinished(outcome="cancelled")],
            {"state": "finished", "outcome": "cancelled", "needs": None},
        ),
        (
            [STARTED, *TURN, RunFinished(outcome="usage-limit", until=EPOCH + 99)],
            {"state": "finished", "until": EPOCH + 99},
        ),
        (
            [STARTED, *TURN, RunFinished(outcome="turn-limit", turns=1), RunStarted(resumed=True)],
            {"state": "interrupted", "outcome": None, "turns": 1},
        ),
        (
            [STARTED, *TURN, RunFinished(outcome="completed", turns=1), RunStarted(prompt="And now?")],
            {"state": "interrupted", "turns": 0, "cost": None, "title": "Fix the flaky test."},
        ),
        ([STARTED, MessageDelta(at=EPOCH + 50, text="hel")], {"last": EPOCH + 50}),
    ],
)
def test_the_state_comes_from_the_last_events(
    store: Store, events: list[Event], expected: dict[str, Any]
) -> None:
    made(store, *events)
    summary = only(store)
    assert {name: getattr(summary, name) for name in expected} == expected


def test_a_session_that_another_program_holds_is_running(store: Store) -> None:
    with store.create(ManualClock()) as journal:
        journal.append(STARTED)
        assert (only(store).state, only(store).running) == ("running", True)
        journal.append(WAIT)
        assert (only(store).state, only(store).running) == ("waiting", True)
    assert only(store).running is False


def test_a_state_far_from_the_end_is_found(store: Store) -> None:
    progress = [ToolProgress(at=EPOCH + 5, turn=2, call_id="2", text="y" * 200) for _ in range(2000)]
    made(store, STARTED, *TURN, TurnStarted(turn=2), APPROVAL, *progress)
    summary = only(store)
    assert (summary.state, summary.turns, summary.cost, summary.last) == ("needs_you", 2, 0.25, EPOCH + 5)


def test_a_long_prompt_is_cut_to_its_first_words(store: Store) -> None:
    made(store, RunStarted(prompt="é " * 100_000))
    assert len(only(store).title) <= 80
    assert only(store).title.endswith("…")


def test_what_cannot_be_read_is_listed_as_such(store: Store) -> None:
    id = made(store, STARTED)
    path = store.path_of(id)
    path.write_bytes(b"\xff\n{}" * 1000)
    assert (only(store).id, only(store).state) == (id, "unreadable")
    (store.root / "stray").mkdir()
    (store.root / "stray file").write_text("")
    assert len(store.list()) == 1


def test_the_newest_event_comes_first(store: Store) -> None:
    old = made(store, STARTED, Notice(at=EPOCH + 1000, text="x"))
    new = made(store, STARTED)
    assert [s.id for s in store.list()] == [old, new]


def test_going_on_with_a_session(store: Store) -> None:
    id = made(store, STARTED)
    with store.open(id[:10], ManualClock()) as journal:
        assert journal.session == id
        journal.append(TURN[0])
    assert list(store.read(id).events()) == [STARTED, TURN[0]]


def test_deleting_takes_the_whole_folder_but_none_that_is_in_use(store: Store) -> None:
    id = made(store, STARTED)
    (store.path_of(id).parent / "undo").mkdir()
    with store.open(id, ManualClock()), pytest.raises(JournalLocked):
        store.delete(id)
    store.delete(id)
    assert list(store.root.iterdir()) == []


BROKEN = Decided(at=EPOCH + 4, turn=2, decision="continue", reason="truncated", omits=True)
TWO_TURNS = [
    STARTED,
    *TURN,
    TurnStarted(turn=2),
    TurnFinished(turn=2),
    BROKEN,
    TurnStarted(turn=3),
    TurnFinished(turn=3),
    RunFinished(outcome="completed"),
]


@pytest.mark.parametrize(("at_turn", "kept"), [(1, 5), (2, 8), (3, 10), (None, 11)])
def test_a_fork_holds_the_records_to_the_end_of_a_turn(store: Store, at_turn: int | None, kept: int) -> None:
    id = made(store, *TWO_TURNS)
    before = store.path_of(id).read_bytes()
    forked = store.fork(id, ManualClock(EPOCH + 500), at_turn=at_turn)
    assert store.path_of(id).read_bytes() == before
    contents = store.read(forked)
    assert list(contents.events()) == TWO_TURNS[:kept]
    assert not contents.damage
    assert contents.header is not None
    assert (contents.header.session, contents.header.meta["parent"]) == (forked, id)
    assert contents.header.meta["at_turn"] == at_turn
    assert next(s for s in store.list() if s.id == forked).parent == id
    with store.open(forked, ManualClock()) as journal:
        journal.append(Notice(text="on"))


def test_a_fork_at_a_turn_that_never_ended_is_refused(store: Store) -> None:
    id = made(store, *TWO_TURNS)
    with pytest.raises(SessionNotFound, match="no finished turn 9; finished are 1 to 3"):
        store.fork(id, ManualClock(), at_turn=9)
    with pytest.raises(SessionNotFound, match="no finished turn 1"):
        store.fork(made(store, STARTED), ManualClock(), at_turn=1)
    assert len(store.list()) == 2


def test_a_fork_leaves_repairs_behind(store: Store) -> None:
    id = made(store, STARTED, *TURN)
    path = store.path_of(id)
    path.write_bytes(path.read_bytes()[:-10])
    store.open(id, ManualClock()).close()
    kinds = [r.kind for r in store.read(store.fork(id, ManualClock())).records]
    assert kinds == ["header", "run_started", "turn_started", "message_started", "message_finished"]
