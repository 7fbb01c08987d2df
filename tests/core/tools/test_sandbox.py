"""`--sandbox`: what a command can do in it, tried for real."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import platformdirs
import pytest
from toolbench import Bench, words

from handrail.errors import ConfigError
from handrail.tools import builtin_tools, sandbox
from handrail.tools.base import Tool
from handrail.tools.sandbox import find_sandbox, problem_of

PROBLEM = problem_of()
pytestmark = [
    pytest.mark.attack,
    pytest.mark.skipif(PROBLEM is not None, reason=f"no sandbox: {PROBLEM}"),
]


def bash(mode: sandbox.SandboxMode = "on") -> Tool:
    (tool,) = builtin_tools(["bash"], sandbox=find_sandbox(mode))
    return tool


async def test_the_working_folder_is_writable_and_the_rest_is_not(bench: Bench, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    result = await bench.run(
        bash(), command=f"echo in > a.txt; echo out > {outside}/b.txt; rm -rf {outside}; pwd"
    )
    assert bench.read("a.txt") == b"in\n"
    assert list(outside.iterdir()) == [] and outside.is_dir()
    assert words(result).rstrip().endswith(str(bench.cwd))


async def test_system_files_and_the_home_folder_cannot_be_changed(bench: Bench) -> None:
    target = Path.home() / f".handrail-test-{os.getpid()}"
    targets = [target, Path("/etc/x")]
    result = await bench.run(
        bash(), command=f"touch {target}; touch /etc/x; mount -o remount,rw /; touch /etc/x"
    )
    assert not any(map(os.path.lexists, targets))
    assert words(result).count("Read-only file system") >= 3


async def test_no_network_reaches_a_server_on_this_machine_and_with_one_it_does(bench: Bench) -> None:
    came: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                with client:
                    came.append(client.recv(100))

        threading.Thread(target=serve, daemon=True).start()
        command = f"echo secret > /dev/tcp/127.0.0.1/{server.getsockname()[1]}"
        await bench.run(bash(), command=command)
        assert came == []
        await bench.run(bash("network"), command=f"{command}; sleep 0.1")
        server.shutdown(socket.SHUT_RDWR)
    assert came == [b"secret\n"]


async def test_a_socket_of_a_running_program_and_our_own_state_are_out_of_reach(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    state = platformdirs.user_state_path("handrail", appauthor=False)
    state.mkdir(parents=True)
    (state / "token").write_text("let me in")
    result = await bench.run(bash(), command=f"cat {state}/token; ls -A /tmp /run")
    assert "let me in" not in words(result)
    assert "No such file" in words(result)


async def test_nothing_that_was_started_outlives_the_command(bench: Bench) -> None:
    result = await bench.run(
        bash(), command="(setsid sh -c 'while :; do date >> alive; sleep 0.02; done' &) ; sleep 0.1"
    )
    assert "background" not in words(result)
    size = len(bench.read("alive"))
    await bench.run(bash(), command="sleep 0.1")
    assert len(bench.read("alive")) == size


async def test_processes_outside_cannot_be_seen(bench: Bench) -> None:
    result = await bench.run(
        bash(), command=f"kill -0 {os.getpid()} || echo none; ls /proc | grep -c '^[0-9]'"
    )
    assert "none" in words(result)


def test_a_system_without_a_sandbox_says_what_is_not_protected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "_tried", lambda: (None, "bwrap was not found"))
    with pytest.raises(ConfigError, match="commands may read, change and send whatever you can"):
        find_sandbox("on")
    assert find_sandbox("off") is None
