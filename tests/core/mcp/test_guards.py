"""Each row of the table of guards (mcp.md) with a server that really does it."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from pathlib import Path

import pytest
from mcp_bench import NASTY, Bench, StartBench, text_of, until

from handrail.mcp import Servers
from handrail.server_settings import ServerSettings
from handrail.tools.base import ToolError


def size_and_mode(path: Path) -> tuple[int, int]:
    return path.stat().st_size, path.stat().st_mode & 0o777


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


async def test_a_long_result_is_capped_and_whole_in_a_file_of_the_session(nasty: StartBench) -> None:
    bench = await nasty()
    result = await bench.call("big", size=4_000_000)
    text = text_of(result)
    assert len(text) < 32_000
    found = re.search(r"the whole output is in (\S+?):", text)
    assert found is not None
    assert size_and_mode(bench.folder / "mcp" / Path(found[1]).name) == (4_000_000, 0o600)


async def test_a_line_over_8_MiB_is_an_error_and_the_server_is_started_again(nasty: StartBench) -> None:
    bench = await nasty()
    with pytest.raises(ToolError, match=r"more than 8\.4 MB"):
        await bench.call("big", size=20_000_000)
    assert text_of(await bench.call("echo", text="still here")) == "still here"
    assert len(bench.seen("tools/list")) == 2


async def test_a_tool_that_never_answers_ends_at_its_timeout_and_is_cancelled(nasty: StartBench) -> None:
    bench = await nasty(timeout=0.3)
    with pytest.raises(ToolError, match=r"hang of nasty gave no result within 0\.3 s"):
        await bench.call("hang")
    assert text_of(await bench.call("echo", text="next")) == "next"
    cancelled = bench.seen("notifications/cancelled")
    hung = next(m for m in bench.seen("tools/call") if m["params"]["name"] == "hang")
    assert [m["params"]["requestId"] for m in cancelled] == [hung["id"]]


async def test_progress_starts_the_timeout_anew_and_is_shown(nasty: StartBench) -> None:
    bench = await nasty(timeout=0.5)
    assert text_of(await bench.call("steps", size=4)) == "all steps done"
    assert "".join(bench.progress) == "1\n2\n3\n4\n"


async def test_a_server_that_dies_in_a_call_leaves_its_outcome_unknown(nasty: StartBench) -> None:
    bench = await nasty()
    with pytest.raises(
        ToolError, match=r"outcome unknown: it ended with exit code 3: I am gone.*look before"
    ) as error:
        await bench.call("die")
    assert "Traceback" not in str(error.value)
    assert text_of(await bench.call("echo", text="back")) == "back"
    assert len([m for m in bench.seen("tools/call") if m["params"]["name"] == "die"]) == 1


async def test_a_call_that_only_reads_is_made_once_more(nasty: StartBench) -> None:
    bench = await nasty("--read-only", trust=True)
    with pytest.raises(ToolError, match=r"not running|lost twice"):
        await bench.call("die")
    assert len([m for m in bench.seen("tools/call") if m["params"]["name"] == "die"]) == 2


async def test_a_server_that_keeps_dying_is_given_up(nasty: StartBench) -> None:
    bench = await nasty()
    for _ in range(2):
        with pytest.raises(ToolError):
            await bench.call("die")
    with pytest.raises(ToolError, match=r"nasty is not running.*handrail mcp test nasty"):
        await bench.call("echo")
    [status] = bench.servers.statuses()
    assert status.state == "failed"
    assert "exit code 3" in status.why


async def test_a_server_that_never_shakes_hands_is_given_up_at_our_deadline(nasty: StartBench) -> None:
    bench = await nasty("--mute", start_timeout=0.4)
    [status] = bench.servers.statuses()
    assert (status.state, status.why) == ("failed", "it did not answer within 0.4 s")


async def test_a_late_server_holds_up_neither_the_run_nor_the_others(tmp_path: Path) -> None:
    quick = ServerSettings(command=sys.executable, args=(str(NASTY),))
    late = ServerSettings(command=sys.executable, args=(str(NASTY), "--drops-unknown"), start_timeout=8)
    servers = Servers({"late": late, "quick": quick}, cwd=tmp_path)
    servers.start()
    try:
        await until(lambda: any(s.state == "ready" for s in servers.statuses()), 10)
        await servers.settle(0.01)
        assert {c.server: (c.state, len(c.added)) for c in servers.take_changes()} == {
            "late": ("starting", 0),
            "quick": ("ready", 12),
        }
        assert servers.take_changes() == []
        await until(lambda: all(s.state == "ready" for s in servers.statuses()), 10)
        [joined] = servers.take_changes()
        assert (joined.server, joined.state, len(joined.added)) == ("late", "ready", 12)
        assert "mcp__late__echo" in servers.tools
    finally:
        await servers.close()


async def test_a_server_that_drops_what_it_does_not_know_is_asked_in_the_earlier_protocol(
    nasty: StartBench,
) -> None:
    bench = await nasty("--drops-unknown", start_timeout=1.0)
    [status] = bench.servers.statuses()
    assert (status.state, status.protocol) == ("ready", "2025-11-25")


async def test_garbage_and_noise_go_to_the_sessions_folder(
    nasty: StartBench, capfd: pytest.CaptureFixture[str]
) -> None:
    bench = await nasty("--noise")
    assert text_of(await bench.call("garbage")) == "after the garbage"
    log = (bench.folder / "mcp" / "nasty.log").read_bytes()
    assert b"[stdout] Welcome to my server!" in log
    assert b"[stdout] this is no JSON" in log
    await until(lambda: b"noise" in (bench.folder / "mcp" / "nasty.log").read_bytes())
    assert capfd.readouterr() == ("", "")


async def test_text_that_no_text_may_hold_is_replaced(nasty: StartBench) -> None:
    bench = await nasty(timeout=2)
    assert text_of(await bench.call("surrogate")) == "half ?"


async def test_blocks_that_nobody_knows_are_not_lost(nasty: StartBench) -> None:
    bench = await nasty()
    text = text_of(await bench.call("blocks"))
    assert '"hologram"' in text
    assert "bare" in text
    assert "[image, x: its base64 cannot be read]" in text


async def test_a_bad_schema_costs_its_tool_and_no_other(nasty: StartBench) -> None:
    bench = await nasty("--bad-schemas")
    [status] = bench.servers.statuses()
    names = {tool.tool: tool for tool in status.tools}
    assert {"echo", "no_type", "no_schema", "any_of"} <= names.keys()
    assert all(tool.parameters["type"] == "object" for tool in status.tools)
    assert "anyOf" not in names["any_of"].parameters
    left_out = dict(status.left_out)
    assert left_out["a_list"] == "its arguments are no object but array"
    assert left_out["echo"] == "another tool has this name"
    assert {"number 17", "number 18"} <= left_out.keys()
    for tool in status.tools:
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", tool.name), tool.name
    bench.servers.take_changes()
    assert len(bench.servers.tools) == len(status.tools)


async def test_a_changed_list_is_fetched_once_and_told_at_the_next_look(nasty: StartBench) -> None:
    bench = await nasty()
    bench.servers.take_changes()
    await bench.call("change")
    await until(lambda: len(bench.seen("tools/list")) > 1)
    await until(lambda: len(bench.servers.statuses()[0].tools) > 50)
    [change] = bench.servers.take_changes()
    assert len(change.added) == 50
    assert not change.removed
    assert len(bench.seen("tools/list")) == 2
    assert text_of(await bench.call("new_7", text="x")) == "x"


async def test_roots_are_the_working_folder_only(nasty: StartBench) -> None:
    bench = await nasty()
    bench.servers.take_changes()
    server = bench.servers.server("nasty")
    assert server.connection is not None
    assert [str(root.uri) for root in server.connection.roots().roots] == [bench.folder.resolve().as_uri()]


async def test_keys_of_ours_never_reach_a_server(nasty: StartBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-ours")
    monkeypatch.setenv("SOMETHING_ELSE", "ours")
    bench = await nasty(env={"GIVEN": "yes"})
    text = text_of(await bench.call("env"))
    assert "sk-ours" not in text
    assert "SOMETHING_ELSE" not in text
    assert '"GIVEN": "yes"' in text


async def test_instructions_are_cut_at_2_kB(nasty: StartBench) -> None:
    bench = await nasty()
    [(server, text)] = bench.servers.instructions()
    assert server == "nasty"
    assert 2_000 < len(text.encode()) <= 2_048


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_closing_ends_a_server_that_ignores_everything(nasty: StartBench) -> None:
    bench = await nasty("--ignores-term")
    pids = bench.pids
    assert len(pids) == 3
    assert all(map(alive, pids))
    await bench.servers.close()
    assert not any(map(alive, pids))
    assert not list((bench.folder / "mcp").glob("*.process"))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_a_stop_in_a_call_ends_the_call_and_leaves_a_word(nasty: StartBench) -> None:
    bench = await nasty()
    call = asyncio.ensure_future(bench.call("hang"))
    await until(lambda: bench.seen("tools/call"))
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await until(lambda: bench.seen("notifications/cancelled"))


HOST = """
import asyncio, sys
from pathlib import Path
from handrail.mcp import Servers
from handrail.server_settings import ServerSettings

async def main(folder):
    args = (sys.argv[2], "--log", str(folder / "nasty.jsonl"), "--ignores-term")
    servers = Servers({"nasty": ServerSettings(command=sys.executable, args=args)}, cwd=folder, folder=folder / "mcp")
    servers.start()
    await servers.settle(20)
    print("up", flush=True)
    await asyncio.sleep(600)

asyncio.run(main(Path(sys.argv[1])))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("watcher_dies_too", [False, True])
async def test_a_server_does_not_outlive_a_killed_program(tmp_path: Path, watcher_dies_too: bool) -> None:
    host = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOST, str(tmp_path), str(NASTY), stdout=asyncio.subprocess.PIPE
    )
    assert host.stdout is not None
    assert await host.stdout.readline() == b"up\n"
    pids = Bench(Servers({}, cwd=tmp_path), tmp_path, tmp_path / "nasty.jsonl").pids
    assert all(map(alive, pids))
    if watcher_dies_too:
        for pid in children_of(host.pid, b"handrail-mcp-watch"):
            os.kill(pid, signal.SIGKILL)
    host.kill()
    await host.wait()
    if watcher_dies_too:
        assert alive(pids[0])
        again = Servers({}, cwd=tmp_path, sessions=tmp_path.parent)
        again.start()
        await again.close()
    await until(lambda: not any(map(alive, pids)))


def children_of(parent: int, word: bytes) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat, words = (folder / "stat").read_text(), (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if word in words and int(stat.rpartition(")")[2].split()[1]) == parent:
            found.append(int(folder.name))
    return found
