"""The real program killed with SIGKILL anywhere, and resumed to the same end (rules J1 to J4, H4, H6, U7)."""

from __future__ import annotations

import itertools
import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail import events as ev
from handrail.session.records import JournalContents, read_journal

SEED = 20260105
SUPPORT = Path(__file__).parents[2] / "support"
SCHEMA = '{"type":"object","required":["answer"],"properties":{"answer":{"type":"integer"}}}'
MODEL = ("--model", "my/model", "--base-url", "http://127.0.0.1:9/v1")
RUN = ("run", "--json", *MODEL, "--approve", "all", "--schema", "s.json", "Go.")
ROUNDS = 8
KINDS = ("piece", "tool_started", "tool_finished", "wait_started", "decided", "human_requested")
"""Moments to die in: a reply in flight, a batch, waits, a question."""

pytestmark = [
    pytest.mark.attack,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork"),
]


class Server:
    """The program, imported once, forked for each life."""

    def __init__(self) -> None:
        kept = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG", "HOME")}
        path = os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")])
        self._child = subprocess.Popen(
            [sys.executable, str(SUPPORT / "kill_server.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**kept, "PYTHONPATH": path, "HANDRAIL_DEBUG": "1"},
        )

    def tell(self, **job: Any) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps(job) + "\n")
        self._child.stdin.flush()

    def ask(self, **job: Any) -> dict[str, Any]:
        assert self._child.stdout is not None
        self.tell(**job)
        answer: dict[str, Any] = json.loads(self._child.stdout.readline())
        return answer

    def close(self) -> None:
        assert self._child.stdin is not None and self._child.stdout is not None
        self._child.stdin.close()
        self._child.wait()
        self._child.stdout.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server()
    warm = Story(made, tmp_path_factory.mktemp("warm"))
    made.tell(args=RUN, home=str(warm.home), folder=str(warm.folder), kill_at=None)
    yield made
    made.close()


class Story:
    """One session in a home of its own, lived in as many lives as it takes."""

    def __init__(self, server: Server, place: Path) -> None:
        self._server, self.place = server, place
        self.folder, self.home = place / "work", place / "home"
        self.folder.mkdir(parents=True)
        self.home.mkdir()
        (self.folder / "notes.txt").write_text("nothing\n")
        (self.folder / "s.json").write_text(SCHEMA)
        self.codes: list[int | None] = []

    @property
    def journal(self) -> Path | None:
        found = sorted(self.home.glob("handrail/sessions/*/journal.jsonl"))
        assert len(found) <= 1
        return found[0] if found else None

    @property
    def events(self) -> list[ev.Event]:
        return list(read_journal(self.journal).events()) if self.journal else []

    def live(self, kill_at: int | None) -> None:
        """One life of the program: a run, or what a person does next with the session."""
        past = self.events
        ids = [e.session for e in past if isinstance(e, ev.RunStarted)]
        if not ids:  # killed before it had begun anything
            for gone in self.home.glob("handrail/sessions/*/*"):
                gone.unlink()
            for gone in self.home.glob("handrail/sessions/*"):
                gone.rmdir()
        args = ("resume", ids[0], "--json", *self._answer(past)) if ids else RUN
        told = self._server.ask(args=args, home=str(self.home), folder=str(self.folder), kill_at=kill_at)
        assert told["signal"] in (None, 9), self.said()
        self.codes.append(told["code"])

    def _answer(self, past: list[ev.Event]) -> tuple[str, ...]:
        """A person reads the question and answers it, where one is open."""
        asked = {e.id for e in past if isinstance(e, ev.HumanRequested)}
        answered = {e.id for e in past if isinstance(e, ev.HumanAnswered)}
        return ("--answer", "Solved.") if asked - answered else ()

    def to_its_end(self, kills: list[int]) -> None:
        """Live until the run has come to its outcome, dying at each of these bytes of the journal."""
        left = [*kills, *[None] * ROUNDS]
        for kill_at in left:
            self.live(kill_at)
            if self.codes[-1] == 0:
                return
            assert self.codes[-1] in (None, 4), self.said()
        raise AssertionError(f"no end after {self.codes}: {self.said()}")

    def said(self) -> str:
        return (self.home / "out.txt").read_text()[-2_000:]


def hold(story: Story, at: str) -> None:
    """What must hold of all lives together."""
    events = story.events
    end = events[-1]
    assert isinstance(end, ev.RunFinished), at
    assert (end.outcome, end.value, end.attempts) == ("submitted", {"answer": 5}, 1), at
    results = Counter(e.call_id for e in events if isinstance(e, ev.ToolFinished))
    asked = [c.id for e in events if isinstance(e, ev.MessageFinished) for c in e.message.calls]
    assert results == Counter(asked), f"{at}: one result for each call"
    unknown = {
        e.call_id for e in events if isinstance(e, ev.ToolFinished) and e.text.startswith("outcome unknown")
    }
    started = Counter(e.call_id for e in events if isinstance(e, ev.ToolStarted) and e.effect == "run")
    assert all(times == 1 for times in started.values()), f"{at}: a tool that changes things began twice"
    side = story.folder / "side.txt"
    lines = Counter(side.read_text().split() if side.exists() else [])
    assert all(times == 1 for times in lines.values()), f"{at}: it ran twice: {lines}"
    assert len(lines) + len(unknown) >= 2, f"{at}: a tool was neither run nor reported as unknown"
    waits = {e.until for e in events if isinstance(e, ev.WaitStarted) and e.reason == "usage-limit"}
    assert len(waits) == 1, f"{at}: a wait was not taken up till the same moment: {waits}"
    assert sum(isinstance(e, ev.HumanAnswered) and e.how == "answered" for e in events) == 1, at
    assert {e.id for e in events if isinstance(e, ev.HumanRequested)} == {"q1"}, at


@pytest.mark.parametrize("kills", [20, pytest.param(100, marks=pytest.mark.slow)])
def test_J2_killed_anywhere_the_session_comes_to_the_same_end(
    server: Server, tmp_path: Path, kills: int
) -> None:
    whole = Story(server, tmp_path / "whole")
    whole.to_its_end([])
    assert whole.codes == [4, 0], whole.said()
    hold(whole, "not killed")
    assert whole.journal is not None
    contents = read_journal(whole.journal)
    places = _places(contents, kills)
    assert len(places) == kills
    assert set(KINDS) <= {_record_at(contents.records, place) for place in places}
    for number, place in enumerate(places):
        story = Story(server, tmp_path / str(number))
        story.to_its_end([place, place])  # whichever life gets there
        at = f"killed at byte {place}, in {_record_at(contents.records, place)}"
        assert None in story.codes, f"{at}: nothing was killed"
        hold(story, at)


def test_J2_killed_several_times_over(server: Server, tmp_path: Path) -> None:
    chance = random.Random(SEED + 1)
    for number in range(8):
        steps = [chance.randrange(300, 6_000) for _ in range(4)]
        story = Story(server, tmp_path / str(number))
        story.to_its_end(list(itertools.accumulate(steps)))
        hold(story, f"killed at {steps}")


def _places(contents: JournalContents, count: int) -> list[int]:
    """Bytes of the journal to die at: in a record of each kind, at the borders of records, and anywhere."""
    chance = random.Random(SEED)
    records = contents.records[1:-1]
    inside = [chance.choice([r for r in records if r.kind == kind]) for kind in KINDS]
    places = {r.offset + r.length // 2 for r in inside}
    places |= set(chance.sample([r.offset + r.length + 1 for r in records], count * 2 // 5))
    anywhere = range(records[0].offset, contents.size - 200)
    while len(places) < count:
        places.add(chance.choice(anywhere))
    return sorted(places)


def _record_at(records: list[Any], place: int) -> str:
    return str(next((r.kind for r in reversed(records) if r.offset <= place), ""))
