"""How fast stored sessions list and open: one of 50,000 events, and a list of 200.

    python tests/benchmarks/bench_sessions.py [--events 50000] [--repeat 5]

Figures are the best of the repeats. The aims: listing a session of 50,000 events under 100 ms, opening it (read,
checked, folded into the state and the model's view) under 1 s. `--check` ends with code 1 when they are missed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from handrail import events as ev
from handrail.clock import VirtualClock
from handrail.loop.context import RunContext
from handrail.messages import AssistantMessage, Text, ToolCall, Usage
from handrail.session.resume import LoadedRun, load_run
from handrail.session.store import Store

LIST_S, OPEN_S = 0.1, 1.0
PER_TURN = 11


def write(store: Store, events: int) -> str:
    """A session of tool turns with two calls each; returns its id."""
    clock = VirtualClock()
    with store.create(clock, meta={}) as journal:
        journal.append(ev.RunStarted(prompt="Work.", cwd="/tmp", max_turns=100_000, max_attempts=3))
        for turn in range(1, events // PER_TURN + 1):
            for event in turn_of(turn):
                journal.append(event)
    return journal.session


def turn_of(turn: int) -> list[ev.Event]:
    """What a turn leaves: a reply of some words, two calls, two results of some lines."""
    said: Any = {"at": 1_767_614_400.0 + turn, "turn": turn}
    calls = [ToolCall(f"c{turn}_{i}", "read", {"path": f"src/file_{i}.py"}, '{"path": "x"}') for i in (0, 1)]
    message = AssistantMessage(
        (Text("I look at both files. " * 5), *calls), "tool_use", Usage(900, 60), "a/b"
    )
    infos = tuple(ev.CallInfo(c.id, c.name, "src/file.py") for c in calls)
    return [
        ev.TurnStarted(**said),
        ev.MessageStarted(**said, model="a/b"),
        ev.MessageFinished(**said, message=message, cost=0.001),
        ev.ToolBatchStarted(**said, calls=infos),
        *(ev.ToolStarted(**said, call_id=c.id, name="read", title="src/file.py") for c in calls),
        *(ev.ToolFinished(**said, call_id=c.id, name="read", text="def f(): pass\n" * 20) for c in calls),
        ev.ToolBatchFinished(**said, of=2),
        ev.TurnFinished(**said, usage=Usage(900 * turn, 60 * turn), cost=0.001 * turn),
        ev.Notice(**said, text="and on"),
    ]


def opened(store: Store, id: str) -> LoadedRun:
    """As `resume` does: read, checked, folded."""
    stage = RunContext(VirtualClock())
    past = load_run(store.read(id))
    for event in past.events:
        stage.fold(event)
    stage.projection.request()
    return past


def best(call: Callable[[], object], repeat: int) -> float:
    """Seconds of the fastest of `repeat` calls."""
    took = []
    for _ in range(repeat):
        began = time.perf_counter()
        call()
        took.append(time.perf_counter() - began)
    return min(took)


def main() -> int:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--events", type=int, default=50_000)
    options.add_argument("--repeat", type=int, default=5)
    options.add_argument("--check", action="store_true")
    asked = options.parse_args()
    with TemporaryDirectory() as folder:
        large, many = Store(Path(folder) / "large"), Store(Path(folder) / "many")
        id = write(large, asked.events)
        for _ in range(200):
            write(many, 10 * PER_TURN)
        size = large.path_of(id).stat().st_size / 1e6
        listing = best(large.list, asked.repeat)
        opening = best(lambda: opened(large, id), asked.repeat)
        several = best(many.list, asked.repeat)
    lines = [
        f"list one session of {asked.events:,} events ({size:.0f} MB): {listing * 1000:.1f} ms",
        f"open it to its state: {opening:.2f} s",
        f"list 200 sessions: {several * 1000:.1f} ms",
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    return int(asked.check and (listing > LIST_S or opening > OPEN_S))


if __name__ == "__main__":
    sys.exit(main())
