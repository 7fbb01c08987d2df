"""Hooks: a person's own commands beside a run."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import pytest
from runs import call, fails, make, says
from scripted_cli import ScriptedProgram

from handrail import events as ev
from handrail.settings import Hooks
from handrail_tui.sessions.hooks import HookRunner, run_hook

KEEP = 'cat >> "$HANDRAIL_FOLDER/$HANDRAIL_HOOK.json"'
LIMIT = fails("You have hit your usage limit. Try again in 42 min.", 429)


def wait_for_hooks() -> None:
    for thread in threading.enumerate():
        if thread.name.startswith("hook "):
            thread.join()


def test_hooks_hear_when_a_person_is_needed_a_wait_begins_and_a_run_ends(
    program: ScriptedProgram, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789")
    settings = home / ".config" / "handrail" / "config.toml"
    settings.parent.mkdir(parents=True)
    finish = 'env > env.txt; echo "$HANDRAIL_SESSION $HANDRAIL_EVENT $HANDRAIL_TEXT" > end.txt'
    settings.write_text(f"[hooks]\non_needs_you = '{KEEP}'\non_wait = '{KEEP}'\non_finish = '''{finish}'''\n")
    replies = [LIMIT, says("", call("ask_human", kind="login", needed="sk-planted-0123456789?"))]
    assert program.run("Go.", replies=replies).code == 4
    wait_for_hooks()
    (asked,) = [json.loads(line) for line in (home / "on_needs_you.json").read_text().splitlines()]
    assert (asked["type"], asked["needed"]) == ("human_requested", "[masked]?")
    (waited,) = [json.loads(line) for line in (home / "on_wait.json").read_text().splitlines()]
    assert (waited["type"], waited["reason"]) == ("wait_started", "usage-limit")
    assert (home / "end.txt").read_text() == f"{program.ids[0]} run_finished human-required\n"
    env = (home / "env.txt").read_text()
    assert "sk-planted" not in env and "HANDRAIL_HOOK=on_finish" in env


async def test_a_hook_that_fails_is_a_notice_and_nothing_else(tmp_path: Path) -> None:
    session, _, events = make(
        [says("", call("ask_human", kind="login", needed="x")), says("Done.")], attended=True
    )
    heard = threading.Event()

    def tell(words: str) -> None:
        session.notice(words, level="warning")
        session.answer("q1", "resolved")
        heard.set()

    hooks = Hooks(on_needs_you="echo 'no bell' >&2; exit 3")
    session.listen(HookRunner(hooks, session="s", cwd=tmp_path, report=tell))
    finished = await session.run("Go.")
    assert finished.type == "run_finished" and finished.outcome == "completed" and heard.is_set()
    (notice,) = [e for e in events if isinstance(e, ev.Notice)]
    assert notice.text == "the hook on_needs_you failed with code 3: no bell"


async def test_run_finished_has_the_last_word(tmp_path: Path) -> None:
    session, _, events = make([says("Done.")])
    runner = HookRunner(
        Hooks(on_finish="exit 1"), session="s", cwd=tmp_path, report=lambda words: session.notice(words)
    )
    session.listen(runner)
    await session.run("Go.")
    runner.join()
    assert events[-1].type == "run_finished"


def test_a_hook_that_hangs_is_ended_with_all_it_started(tmp_path: Path) -> None:
    began = time.monotonic()
    words = run_hook("sleep 600 & echo $! > pid; wait", "{}", dict(os.environ), tmp_path, 0.3)
    assert words == "took longer than 0.3 s and was killed"
    assert time.monotonic() - began < 60
    pid = int((tmp_path / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        for _ in range(1_000):  # a killed process is gone once its new parent has noticed
            os.kill(pid, 0)
            if (Path("/proc") / str(pid) / "stat").read_text().split(")")[1].split()[0] == "Z":
                raise ProcessLookupError


@pytest.mark.parametrize("command", ["true", "exec 0<&-; true", "head -c 1"])
def test_a_hook_need_not_listen(tmp_path: Path, command: str) -> None:
    assert run_hook(command, "x" * 1_000_000, dict(os.environ), tmp_path, 30.0) == ""


def test_a_hook_that_cannot_start_says_so(tmp_path: Path) -> None:
    words = run_hook("true", "{}", dict(os.environ), tmp_path / "gone", 30.0)
    assert words == "could not start: No such file or directory"
