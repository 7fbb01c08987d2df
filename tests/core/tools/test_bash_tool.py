from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from toolbench import Bench, words

from handrail.clock import ManualClock, VirtualClock
from handrail.providers.catalog import built_in
from handrail.tools import processes
from handrail.tools.base import ToolContext, ToolError
from handrail.tools.bash import BashTool
from handrail.tools.environ import scrubbed_environment
from handrail.tools.kept import memory_with
from handrail.tools.read import ReadTool

T = TypeVar("T")
pytestmark = pytest.mark.skipif(os.name != "posix", reason="the tool needs a POSIX shell")


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def the_file(folder: Path) -> Path:
    (file,) = folder.glob("*/*")
    return file


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


async def until(condition: Callable[[], object]) -> None:
    """Wait for something that a real process does."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - nobody tells us
            await asyncio.sleep(0.005)


@pytest.fixture(autouse=True)
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "GRACE_S", 0.1)


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where long output is kept."""
    folder = tmp_path / "kept"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


async def test_output_of_both_streams_in_the_working_folder(bench: Bench) -> None:
    result = await bench.run(BashTool(), command="pwd; echo oops >&2; printf '[/] last'")
    assert words(result) == f"{bench.cwd}\noops\n[/] last"
    assert (result.is_error, result.summary) == (False, "3 lines")
    assert "".join(bench.live) == f"{bench.cwd}\noops\n[/] last"


async def test_an_exit_code_is_an_error_and_said(bench: Bench) -> None:
    result = await bench.run(BashTool(), command="echo no; exit 3")
    assert (words(result), result.is_error, result.summary) == ("no\n[exit 3]", True, "exit 3 · 1 line")
    result = await bench.run(BashTool(), command="kill -9 $$")
    assert (words(result), result.summary) == ("[ended by SIGKILL]", "ended by SIGKILL · no output")
    assert words(await bench.run(BashTool(), command="true")) == "[no output]"


async def test_there_is_no_input_and_no_terminal(bench: Bench) -> None:
    ours, (reading, writing) = os.dup(0), os.pipe()
    os.write(writing, b"typed by somebody\n")
    os.dup2(reading, 0)
    try:
        result = await bench.run(
            BashTool(), command="cat; test -t 0 || test -t 1 || echo none; echo $TERM $PAGER"
        )
    finally:
        os.dup2(ours, 0)
        for descriptor in (ours, reading, writing):
            os.close(descriptor)
    assert words(result) == "none\ndumb cat"


async def test_L9_every_command_has_a_session_and_a_group_of_its_own(bench: Bench) -> None:
    pid, group, session = words(
        await bench.run(BashTool(), command="echo $$; cut -d' ' -f5,6 /proc/$$/stat")
    ).split()
    assert pid == group == session != str(os.getpid())


async def test_keys_of_providers_are_not_in_the_environment(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HANDRAIL_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_AUTH_TOKEN", "MY_OWN_TOKEN"):
        monkeypatch.setenv(name, "sk-secret")
    assert words(await bench.run(BashTool(), command="env | grep sk-secret")) == "MY_OWN_TOKEN=sk-secret"
    bench.ctx.env = {"PATH": os.environ["PATH"], "GROQ_API_KEY": "sk-secret", "ONLY": "this"}
    assert words(await bench.run(BashTool(), command="echo $ONLY$GROQ_API_KEY$MY_OWN_TOKEN")) == "this"
    assert scrubbed_environment({"openai_api_key": "x", "HOME": "/"}) == {"HOME": "/"}


async def test_20_mb_of_output_cost_little_and_are_kept_whole(bench: Bench, kept: Path) -> None:
    line = "x" * 99
    program = f"yes {line} | head -n 200000; echo the end"
    result = await bench.run(BashTool(), command=program)
    text = words(result)
    assert len(text.encode()) < 31_000
    assert text.startswith(line + "\n") and text.endswith(line + "\nthe end")
    assert result.summary == "200,001 lines"
    file = the_file(kept)
    assert file.stat().st_size == 200_000 * 100 + 8
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sum(map(len, bench.live)) < 2_000_000
    assert max(map(len, bench.live)) < 8_300
    assert any(re.match(r"\[… [\d,]+ characters\]\n", piece) for piece in bench.live)
    assert bench.live[-1].endswith("the end\n")

    found = re.search(r"\[… 199,\d+ lines, 20 MB left out; the whole output is in \S+: read (\{.*\})\]", text)
    assert found, text[9_000:12_000]
    arguments = json.loads(found[1])
    assert bench.preview(ReadTool(), **arguments).outside == ()  # our own file asks nobody
    shown = text[: found.start()].count("\n")
    assert arguments["offset"] == shown + 1


async def test_many_short_lines_are_cut_by_number(bench: Bench, kept: Path) -> None:
    text = words(await bench.run(BashTool(), command="seq 1 5000"))
    before, note, after = re.split(r"(\[….*\])\n", text)
    lines = before.splitlines() + after.splitlines()
    assert len(lines) == 2_000
    assert (lines[0], lines[665], lines[666], lines[-1]) == ("1", "666", "3667", "5000")
    assert note.startswith("[… 3,000 lines, ")
    file = the_file(kept)
    assert file.read_text() == "".join(f"{n}\n" for n in range(1, 5_001))
    assert f'read {{"path": "{file}", "offset": 667}}' in note


async def test_L11_one_endless_line_is_cut_between_characters(bench: Bench, kept: Path) -> None:
    text = words(await bench.run(BashTool(), command="printf 'ab'; yes '€' | head -n 40000 | tr -d '\\n'"))
    assert "�" not in text
    assert text.startswith("ab€€") and text.endswith("€€")


async def test_L11_a_character_that_comes_in_two_pieces_stays_whole(bench: Bench) -> None:
    command = r"printf 'caf\xc3'; sleep 0.1; printf '\xa9 \xff\x00'"
    assert words(await bench.run(BashTool(), command=command)) == "café ��"
    assert "".join(bench.live) == "café ��"


async def test_output_is_live(bench: Bench) -> None:
    task = asyncio.ensure_future(bench.run(BashTool(), command="echo early; read -r line < go; echo $line"))
    os.mkfifo(bench.cwd / "go")
    await until(lambda: bench.live)
    assert bench.live == ["early\n"]
    await asyncio.to_thread((bench.cwd / "go").write_text, "late\n")
    assert words(await task) == "early\nlate"


async def test_L6_past_its_time_limit_the_whole_tree_is_ended(bench: Bench) -> None:
    command = (
        "sleep 60 & echo $!; (setsid sleep 61 & echo $!); setsid bash -c 'sleep 62 & echo $!; wait'; sleep 63"
    )
    result = await bench.run(BashTool(), command=command, timeout=1.5)
    *pids, note = words(result).splitlines()
    assert note == "[timed out after 1.5 s and ended, with everything it had started]"
    assert (result.is_error, result.summary) == (True, "timed out · 3 lines")
    assert len(pids) == 3
    assert not any(alive(int(pid)) for pid in pids)


async def test_L9_a_daemon_that_left_group_and_parent_is_found_by_its_mark(bench: Bench) -> None:
    command = "(setsid setsid sleep 60 >/dev/null 2>&1 & echo $! > pid); sleep 61"
    result = await bench.run(BashTool(), command=command, timeout=1.5)
    assert result.summary == "timed out · no output"
    assert not alive(int((bench.cwd / "pid").read_text()))


async def test_L9_what_ignores_the_polite_signal_is_killed(bench: Bench) -> None:
    command = "trap '' TERM; echo $$; while true; do read -t 1 < /dev/zero; done"
    result = await bench.run(BashTool(), command=command, timeout=1.5)
    assert not alive(int(words(result).splitlines()[0]))


async def test_L9_a_polite_end_gets_its_time(bench: Bench) -> None:
    command = "trap 'echo tidied up; exit 0' TERM; echo ready; while true; do sleep 0.01; done"
    result = await bench.run(BashTool(), command=command, timeout=1.5)
    assert words(result).startswith("ready\n")
    assert "tidied up" in words(result)


async def test_L9_a_stop_ends_the_tree_before_it_passes(bench: Bench) -> None:
    task = asyncio.ensure_future(bench.run(BashTool(), command="sleep 60 & echo $!; wait"))
    await until(lambda: bench.live)
    pid = int(bench.live[0])
    assert alive(pid)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not alive(pid)
    assert bench.ctx.left == [f"{pid}\n[stopped, with everything it had started]"]


async def test_L9_a_second_stop_does_not_tear_the_first(bench: Bench) -> None:
    command = "trap '' TERM; sleep 60 & echo $!; while true; do wait; done"
    task = asyncio.ensure_future(bench.run(BashTool(), command=command))
    await until(lambda: bench.live)
    for _ in range(3):
        task.cancel()
        await asyncio.wait([task], timeout=0.01)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not alive(int(bench.live[0]))


async def test_L9_a_stop_at_the_very_start_leaves_nothing_behind(bench: Bench) -> None:
    task = asyncio.ensure_future(bench.run(BashTool(), command="sleep 60 & echo $! > pid; wait"))
    await asyncio.wait([task], timeout=0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    file = bench.cwd / "pid"
    assert not file.exists() or not file.read_text() or not alive(int(file.read_text()))


async def test_L9_what_escapes_is_reported(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    real_kill = os.kill
    monkeypatch.setattr(os, "kill", lambda pid, number: None)
    task = asyncio.ensure_future(bench.run(BashTool(), command="echo $$; exec sleep 60"))
    await until(lambda: bench.live)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    pid = int(bench.live[0])
    assert f"[may still be running: pid {pid} sleep 60]" in bench.ctx.left[0]
    above = parent(pid)
    real_kill(pid, signal.SIGKILL)
    await until(lambda: not Path(f"/proc/{above}").exists())
    await asyncio.sleep(0.05)  # the event loop learns of it


@pytest.fixture
def background(bench: Bench) -> Iterator[Callable[[], int]]:
    def pid() -> int:
        return int((bench.cwd / "pid").read_text())

    yield pid
    os.kill(pid(), signal.SIGKILL)


async def test_a_background_process_does_not_hold_the_tool_and_is_named(
    bench: Bench, background: Callable[[], int]
) -> None:
    async with asyncio.timeout(30):
        result = await bench.run(BashTool(), command="sleep 60 & echo $! > pid; echo started")
    assert alive(background())
    note = f"[running in the background: pid {background()} sleep 60; its output is no longer read]"
    assert words(result) == f"started\n{note}"
    assert (result.is_error, result.summary) == (False, "1 line")


async def test_all_that_the_shell_wrote_is_read_though_a_child_holds_the_pipe(
    bench: Bench, background: Callable[[], int], kept: Path
) -> None:
    class SlowDisk(ManualClock):
        first = True

        async def in_thread(self, call: Callable[[], T]) -> T:
            if self.first:
                self.first = False
                await asyncio.sleep(0.4)
            return await super().in_thread(call)

    bench.ctx.clock = SlowDisk()
    command = "sleep 60 & echo $! > pid; head -c 90000 /dev/zero | tr '\\0' 'y'; echo; echo last"
    result = await bench.run(BashTool(), command=command)
    assert "]\nlast\n[running in the background: " in words(result)
    assert the_file(kept).stat().st_size == 90_006


async def test_a_background_flood_does_not_hold_the_tool(
    bench: Bench, background: Callable[[], int], kept: Path
) -> None:
    async with asyncio.timeout(30):
        await bench.run(BashTool(), command="yes & echo $! > pid")


async def test_a_time_limit_is_in_real_seconds_whatever_the_clock_shows(bench: Bench) -> None:
    clock = VirtualClock()
    clock.call_later(3_600, lambda: None)
    ctx = ToolContext(bench.cwd, clock)
    begun = clock.now()
    result = await BashTool().run(bench.parse(BashTool(), {"command": "sleep 0.1; echo done"}), ctx)
    assert words(result) == "done"
    assert clock.now() == begun


async def test_limits_of_time_are_those_of_the_tool(bench: Bench) -> None:
    result = await bench.run(BashTool(default_s=0.1), command="sleep 60")
    assert words(result).startswith("[timed out after 0.1 s ")
    result = await bench.run(BashTool(max_s=0.2), command="sleep 60", timeout=500)
    assert words(result).startswith("[timed out after 0.2 s ")


async def test_what_cannot_start_says_why(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ToolError, match="the command could not be started: Argument list too long"):
        await bench.run(BashTool(), command="echo " + "x" * 3_000_000)
    bench.ctx.cwd = bench.cwd / "gone"
    with pytest.raises(ToolError, match=r"the working folder .*gone no longer exists"):
        await bench.run(BashTool(), command="true")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ToolError, match="there is no bash or sh"):
        await bench.run(BashTool(), command="true")


async def test_no_descriptor_is_left_open(bench: Bench, kept: Path) -> None:
    await bench.run(BashTool(), command="true")
    before = descriptors()
    for command in ("true", "seq 1 5000", "exit 2"):
        await bench.run(BashTool(), command=command)
    assert descriptors() == before


async def test_children_of_other_systems_are_found_through_ps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_PROC", Path("/nowhere"))
    child = "import subprocess, sys; subprocess.run(['sleep', '60'])"
    shell = await asyncio.create_subprocess_exec(sys.executable, "-c", child, start_new_session=True)
    try:
        found: list[str] = []

        def both() -> bool:
            found[:] = [p.command for p in processes.family(shell.pid, "no-mark")]
            return len(found) == 2 and "sleep 60" in found

        await until(both)
    finally:
        os.killpg(shell.pid, signal.SIGKILL)
        await shell.wait()


def test_the_title_is_one_line_and_the_detail_is_whole(bench: Bench) -> None:
    assert bench.preview(BashTool(), command="pytest -q").title == "pytest -q"
    assert bench.preview(BashTool(), command="pytest -q").detail == ""
    script = "cd src\n  make [/]\n" + "x" * 300
    preview = bench.preview(BashTool(), command=script, description="build\nit")
    assert preview.title.startswith("cd src ↵ make [/] ↵ xxx") and len(preview.title) == 200
    assert preview.detail == f"# build ↵ it\n{script}"


def test_J5_no_key_of_a_provider_of_the_catalog_reaches_a_child() -> None:
    planted = {name: "sk-planted" for entry in built_in().values() for name in entry.keys}
    assert "TOGETHER_AI_API_KEY" in planted and "LMSTUDIO_API_KEY" in planted
    assert scrubbed_environment({**planted, "HOME": "/"}) == {"HOME": "/"}


@pytest.mark.attack
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can adopt the children of others")
@pytest.mark.parametrize("ending", ["exited", "timed out", "stopped"])
async def test_L9_a_process_that_left_session_and_environment_is_found(bench: Bench, ending: str) -> None:
    pids = bench.cwd / "pid"
    escape = f"(env -i setsid /bin/sh -c 'echo $$ > {pids}; exec sleep 60 <&- >&- 2>&-' &) ; "
    command = (
        escape + f"while [ ! -s {pids} ]; do sleep 0.01; done" + ("" if ending == "exited" else "; sleep 60")
    )
    task = asyncio.ensure_future(
        bench.run(BashTool(), command=command, **({"timeout": 1} if ending == "timed out" else {}))
    )
    await until(lambda: pids.exists() and pids.read_text().strip())
    pid = int(pids.read_text())
    try:
        if ending == "stopped":
            task.cancel()
            await asyncio.wait([task])
            assert not alive(pid)
            assert bench.ctx.left[0].endswith("[stopped, with everything it had started]")
        elif ending == "timed out":
            assert "with everything it had started" in words(await task)
            assert not alive(pid)
        else:
            assert f"[running in the background: pid {pid} sleep 60" in words(await task)
    finally:
        if alive(pid):
            os.kill(pid, signal.SIGKILL)


async def test_what_a_session_keeps_is_bounded_lies_in_its_folder_and_can_be_read(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handrail.tools.kept.MAX_SESSION", 100_000)
    folder = bench.cwd.parent / "session" / "output"
    bench.ctx.memory = {**memory_with(folder)}
    command = "head -c 90000 /dev/zero | tr '\\0' 'y'"
    for _ in range(3):
        result = await bench.run(BashTool(), command=command)
    assert sum(file.stat().st_size for file in folder.iterdir()) == 100_000
    assert "the whole output could not be kept: the session has kept" in words(result)
    bench.ctx.memory = {**memory_with(folder)}  # another life of the session
    for file in folder.iterdir():
        assert bench.preview(ReadTool(), path=str(file)).outside == ()
