"""`handrail run --agent` and `handrail agents` as a script sees them: a real process, an agent that is not ours."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import sys
from pathlib import Path

import pytest
from foreign import AGENT
from program import environment, handrail

pytestmark = pytest.mark.skipif(os.name == "nt", reason="process groups")

FAKE = shlex.join([sys.executable, str(AGENT)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    return place


async def test_its_words_and_files_are_lines_and_its_end_the_exit_code(folder: Path) -> None:
    ended = await handrail("run", "--agent", FAKE, "--approve", "edits", "edit", folder=folder)
    assert ended.code == 0
    lines = ended.out.splitlines()
    assert "  I write it." in lines
    assert "  +one" in lines
    assert (folder / "a.txt").read_text() == "one\n"


async def test_json_is_the_same_as_for_a_run_of_ours(folder: Path) -> None:
    ended = await handrail("run", "--agent", FAKE, "--json", "hello", folder=folder)
    assert [e["type"] for e in ended.events if e["type"] not in ("message_delta", "notice")] == [
        "run_started",
        "turn_started",
        "message_started",
        "message_finished",
        "turn_finished",
        "run_finished",
    ]


async def test_H4_a_question_with_nobody_there_is_exit_4_and_can_be_answered_later(folder: Path) -> None:
    ended = await handrail("run", "--agent", FAKE, "marked", folder=folder)
    assert ended.code == 4
    again = await handrail("resume", "--answer", "solved it", "--json", folder=folder)
    assert again.events[-1]["text"] == "I heard: solved it"


async def test_its_changes_are_listed_and_undone(folder: Path) -> None:
    await handrail("run", "--agent", FAKE, "--approve", "edits", "edit", folder=folder)
    shown = await handrail("changes", folder=folder)
    assert "a.txt (new)" in shown.out
    undone = await handrail("changes", "--undo", "1", "--yes", folder=folder)
    assert undone.code == 0, undone.err
    assert not (folder / "a.txt").exists()


async def test_J2_killed_it_goes_on_where_it_stood(folder: Path) -> None:
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "handrail_tui", "run", "--agent", FAKE, "--json", "flood"),
        cwd=folder,
        env=environment(folder),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        stdin=asyncio.subprocess.DEVNULL,
    )
    assert child.stdout is not None
    while json.loads(await child.stdout.readline())["type"] != "message_delta":
        pass
    child.send_signal(signal.SIGKILL)
    await child.wait()
    again = await handrail("resume", "--json", folder=folder)
    assert again.code == 0, again.err
    assert again.events[-1]["text"] == "I heard: Go on with the task from where you were interrupted."


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--agent", "no-such-agent", "hello"], "no agent and no program of that name"),
        (["--agent", FAKE, "--model", "x/y", "hello"], "--model does not apply to --agent"),
        (["--agent", FAKE, "--max-cost", "1", "hello"], "cannot be enforced"),
    ],
)
async def test_what_cannot_be_is_said_before_anything_is_started(
    folder: Path, args: list[str], words: str
) -> None:
    ended = await handrail("run", *args, folder=folder)
    assert ended.code == 2
    assert words in ended.err
    assert (await handrail("sessions", "--json", folder=folder)).out == ""


async def test_an_agent_that_dies_is_exit_5_with_its_last_words(folder: Path) -> None:
    ended = await handrail("run", "--agent", FAKE, "dies", folder=folder)
    assert ended.code == 5
    assert "Segmentation fault" in ended.out


async def test_a_session_of_a_program_cannot_be_resumed_and_says_how_to_run_it_again(folder: Path) -> None:
    await handrail("gateway", "--exec", "--", sys.executable, "-c", "raise SystemExit(3)", folder=folder)
    ended = await handrail("resume", folder=folder)
    assert ended.code == 2
    assert "handrail gateway --exec -- " in ended.err


async def test_agents_says_what_is_there_and_how_to_get_the_rest(folder: Path, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "claude-agent-acp").write_text("#!/bin/sh\n")
    (programs / "claude-agent-acp").chmod(0o755)
    ended = await handrail("agents", folder=folder, env={"PATH": str(programs)})
    assert ended.code == 0
    lines = {line.split()[1]: line for line in ended.out.splitlines()}
    assert lines["claude"].startswith("ok ")
    assert lines["codex"].startswith("missing ")
    assert "npm install -g @zed-industries/codex-acp" in lines["codex"]
