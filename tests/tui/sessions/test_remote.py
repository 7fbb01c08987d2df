"""Two programs and one run: `run --hold` in one process, `answer`, `approve`, `stop` in another (rules H4, H5)."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mock_server import MockServer
from program import environment
from wire_chat import calls, says

LIMIT_S = 30.0


@pytest.fixture
async def server() -> AsyncIterator[MockServer]:
    mock = MockServer()
    await mock.start()
    yield mock
    await mock.stop()


class Held:
    """A run that waits for whoever answers it."""

    def __init__(self, server: MockServer, folder: Path) -> None:
        self._where = ("--base-url", f"{server.url}/v1", "--model", "my/model", "--no-recovery")
        self._folder = folder
        self.events: list[dict[str, Any]] = []

    async def _start(self, *args: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "handrail_tui", *args),
            cwd=self._folder,
            env=environment(self._folder),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def begin(self, *args: str) -> None:
        self.child = await self._start("run", "--json", "--hold", *self._where, *args, "Go.")

    async def until(self, kind: str) -> dict[str, Any]:
        """The next event of this type."""
        assert self.child.stdout is not None
        async with asyncio.timeout(LIMIT_S):
            while line := await self.child.stdout.readline():
                self.events.append(json.loads(line))
                if self.events[-1]["type"] == kind:
                    return self.events[-1]
        raise AssertionError(f"no {kind}: {[e['type'] for e in self.events]}")

    @property
    def id(self) -> str:
        return str(next(e["session"] for e in self.events if e["type"] == "run_started"))

    async def say(self, *args: str) -> tuple[int, str, str]:
        """Another program."""
        child = await self._start(*args)
        out, err = await asyncio.wait_for(child.communicate(), LIMIT_S)
        return child.returncode or 0, out.decode(), err.decode()

    async def ended(self) -> tuple[int | None, dict[str, Any]]:
        out, err = await asyncio.wait_for(self.child.communicate(), LIMIT_S)
        self.events += [json.loads(line) for line in out.splitlines()]
        assert err == b""
        return self.child.returncode, self.events[-1]

    async def close(self) -> None:
        if self.child.returncode is None:
            self.child.kill()
            await self.child.wait()


@pytest.fixture
async def held(server: MockServer, tmp_path: Path) -> AsyncIterator[Held]:
    folder = tmp_path / "work"
    folder.mkdir()
    made = Held(server, folder)
    yield made
    await made.close()


async def test_H4_hold_waits_and_answer_reaches_it(server: MockServer, held: Held) -> None:
    server.answer(calls(("ask_human", {"kind": "captcha", "needed": "Solve it."})))
    server.answer(says("Done."))
    await held.begin()
    await held.until("human_requested")
    assert json.loads((await held.say("sessions", "--json"))[1])["running"] is True
    code, _, err = await held.say("resume", held.id, "--answer", "x")
    assert code == 2 and "is being written by process" in err
    code, out, err = await held.say("answer", held.id[:7], "the red one")
    assert (code, out, err) == (0, "answered: Solve it.\n", "")
    code, end = await held.ended()
    assert (code, end["outcome"]) == (0, "completed")
    assert server.requests[-1].body["messages"][-1]["content"] == "the red one"
    code, _, err = await held.say("answer", held.id)
    assert code == 2 and "is not running" in err


async def test_H5_approve_shows_the_call_and_allows_it(
    server: MockServer, held: Held, tmp_path: Path
) -> None:
    server.answer(calls(("bash", {"command": "echo one >> side"})))
    server.answer(calls(("bash", {"command": "echo two >> side"})))
    server.answer(says("Done."))
    await held.begin()
    await held.until("approval_requested")
    code, out, _ = await held.say("approve", held.id)
    assert code == 0 and out.splitlines()[0] == "bash echo one >> side" and "allowed once" in out
    await held.until("approval_requested")
    code, out, _ = await held.say("approve", held.id, "--deny", "once is enough", "--json")
    assert code == 0 and json.loads(out)["how"] == "deny"
    code, end = await held.ended()
    assert (code, end["outcome"]) == (0, "completed")
    assert (tmp_path / "work" / "side").read_text() == "one\n"
    assert "once is enough" in server.requests[-1].body["messages"][-1]["content"]


async def test_L9_stop_reaches_it_and_it_can_be_gone_on_with(server: MockServer, held: Held) -> None:
    server.answer(calls(("ask_human", {"kind": "decision", "needed": "Red or blue?"})))
    await held.begin()
    await held.until("human_requested")
    code, out, _ = await held.say("stop", held.id)
    assert code == 0 and f"handrail resume {held.id}" in out
    code, end = await held.ended()
    assert (code, end["outcome"], end["stopped"]) == (130, "cancelled", True)


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129)])
async def test_J7_a_held_question_survives_the_end_of_the_program(
    server: MockServer, held: Held, name: str, code: int
) -> None:
    server.answer(calls(("ask_human", {"kind": "captcha", "needed": "Solve it."})))
    server.answer(says("Done."))
    await held.begin()
    await held.until("human_requested")
    held.child.send_signal(getattr(signal, name))
    ended, end = await held.ended()
    assert (ended, end["type"], end["signal"]) == (code, "run_interrupted", name)
    again, out, _ = await held.say("resume", held.id, "--json", "--answer", "Solved.")
    events = [json.loads(line) for line in out.splitlines()]
    assert (again, events[-1]["outcome"]) == (0, "completed")
    assert [e["id"] for e in events if e["type"] == "human_answered"] == ["q1"]


async def test_J3_the_real_program_killed_while_a_reply_streams(server: MockServer, held: Held) -> None:
    # Pieces are written once a second: when the second one is told, the first one is on record.
    streaming = [says("I begin with the first half")[0], says(" of it, and")[0]]
    server.answer(streaming, cut="hang", pause=1.5)
    server.answer(says("And this is the rest."))
    await held.begin()
    await held.until("message_delta")
    await held.until("message_delta")
    os.kill(held.child.pid, signal.SIGKILL)
    await held.child.wait()
    code, out, _ = await held.say("resume", held.id, "--json")
    assert (code, json.loads(out.splitlines()[-1])["outcome"]) == (0, "completed")
    assert "I begin with the first half" in json.dumps(server.requests[-1].body["messages"])
