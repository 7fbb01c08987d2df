"""`handrail gateway --exec`: a program that knows nothing of us, its exit code, its bill, its journal."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from mock_server import MockServer, sse
from program import Ended, environment, handrail

AGENT = """
import os, sys, openai
client = openai.OpenAI(max_retries=0)
for _ in range(int(sys.argv[1])):
    reply = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hello"}])
    print("agent got", reply.choices[0].message.content)
sys.exit(int(sys.argv[2]))
"""
WHOLE = {
    "id": "c",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1200, "completion_tokens": 5},
}
KEY = "sk-test-0123456789"


@pytest.fixture
async def server() -> AsyncIterator[MockServer]:
    mock = MockServer()
    await mock.start()
    mock.answer(json.dumps(WHOLE), headers={"content-type": "application/json"}, framing="length")
    yield mock
    await mock.stop()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    (place / "agent.py").write_text(AGENT)
    return place


async def follow(server: MockServer, folder: Path, *args: str, requests: int = 2, code: int = 0) -> Ended:
    """Run the agent under the gateway with these options."""
    env = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": KEY}
    command = ("--exec", "--", sys.executable, "agent.py", str(requests), str(code))
    return await handrail("gateway", *args, *command, folder=folder, env=env)


async def test_a_program_keeps_its_output_and_its_exit_code(server: MockServer, folder: Path) -> None:
    ended = await follow(server, folder, code=7)
    assert ended.code == 7
    assert ended.out == "agent got ok\n" * 2
    assert "turn 2 of 50" in ended.err
    assert "bill: openai/m: 2 requests, 2.4k tokens in, 10 out, price not known" in ended.err
    assert [r.headers["authorization"] for r in server.requests] == [f"Bearer {KEY}"] * 2


async def test_L1_a_bound_ends_the_program_by_itself(server: MockServer, folder: Path) -> None:
    ended = await follow(server, folder, "--max-turns", "2", requests=9)
    assert ended.code == 1
    assert len(server.requests) == 2
    assert "all 2 turns are used" in ended.err
    assert "Turn limit reached" in ended.err
    assert "bill: 1 request refused here, at no cost" in ended.err


async def test_json_has_stdout_and_the_program_stderr(server: MockServer, folder: Path) -> None:
    ended = await follow(server, folder, "--json")
    assert [e["type"] for e in ended.events] == [
        "run_started",
        *(["turn_started", "message_started", "message_delta", "message_finished", "turn_finished"] * 2),
        "run_finished",
    ]
    assert ended.events[-1]["outcome"] == "completed"
    assert ended.events[-1]["requests"] == 2
    assert "agent got ok" in ended.err


async def test_J1_the_run_is_kept_like_any_other(server: MockServer, folder: Path) -> None:
    await follow(server, folder)
    listed = await handrail("sessions", "--json", folder=folder)
    (row,) = [json.loads(line) for line in listed.out.splitlines()]
    replayed = await handrail("replay", row["id"], "--json", folder=folder)
    assert [e["message"]["content"][0]["text"] for e in replayed.of("message_finished")] == ["ok", "ok"]
    assert "agent.py" in listed.out


async def test_J5_no_key_and_no_token_is_kept(server: MockServer, folder: Path) -> None:
    (folder / "agent.py").write_text(
        "import os; os.write(2, ('ADDRESS ' + os.environ['OPENAI_BASE_URL'] + '\\n').encode())\n" + AGENT
    )
    ended = await follow(server, folder, "--json", "--hold-keys")
    address = next(line for line in ended.err.splitlines() if line.startswith("ADDRESS "))
    token = address.split("/")[-2]
    kept = "".join(p.read_text() for p in folder.parent.rglob("journal.jsonl"))
    assert "agent.py" in kept
    for secret in (token, KEY):
        assert secret not in kept + ended.out
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


async def test_a_usage_limit_is_counted_down_and_named(server: MockServer, folder: Path) -> None:
    server.forget()
    server.answer('{"error": {"message": "You have hit your usage limit. Try again in ~42 min."}}', 429)
    ended = await follow(server, folder)
    assert ended.code == 1
    assert "waiting 42:" in ended.err
    assert "Usage limit reached" in ended.err


async def test_a_program_that_is_not_there_leaves_nothing(server: MockServer, folder: Path) -> None:
    ended = await handrail("gateway", "--exec", "--", "no-such-program", folder=folder)
    assert ended.code == 2
    assert "'no-such-program' cannot be started: No such file" in ended.err
    assert (await handrail("sessions", "--json", folder=folder)).out == ""


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--exec"], "needs a program"),
        (["--", "python", "x.py"], "handrail gateway --exec -- python x.py"),
        (["--max-turns", "0", "--exec", "--", "true"], "--max-turns: Input should be greater than 0"),
        (["--cwd", "nowhere", "--exec", "--", "true"], "no folder"),
    ],
)
async def test_what_is_wrong_on_the_command_line_is_said(folder: Path, args: list[str], words: str) -> None:
    ended = await handrail("gateway", *args, folder=folder)
    assert ended.code == 2
    assert words in ended.err


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129)])
async def test_J7_a_signal_ends_the_program_too(folder: Path, name: str, code: int) -> None:
    (folder / "agent.py").write_text("import time; print('up', flush=True); time.sleep(60)")
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "handrail_tui", "gateway", "--exec", "--", sys.executable, "agent.py"),
        cwd=folder,
        env=environment(folder),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        stdin=asyncio.subprocess.DEVNULL,
    )
    assert child.stdout is not None
    assert await child.stdout.readline() == b"up\n"
    child.send_signal(getattr(signal, name))
    _, err = await asyncio.wait_for(child.communicate(), 30)
    assert child.returncode == code
    assert b"interrupted" in err


async def test_without_a_program_it_serves_until_it_is_stopped(server: MockServer, folder: Path) -> None:
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "handrail_tui", "gateway"),
        cwd=folder,
        env=environment(folder, {"OPENAI_BASE_URL": f"{server.url}/v1"}),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        stdin=asyncio.subprocess.DEVNULL,
    )
    assert child.stdout is not None
    shown = {}
    while "NO_PROXY" not in shown:
        name, _, value = (
            (await child.stdout.readline()).decode().removeprefix("export ").strip().partition("=")
        )
        shown[name] = value
    agent = await asyncio.create_subprocess_exec(
        *(sys.executable, "agent.py", "1", "0"),
        cwd=folder,
        env=environment(folder, {"OPENAI_BASE_URL": shown["OPENAI_BASE_URL"], "OPENAI_API_KEY": KEY}),
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await agent.communicate()
    assert out == b"agent got ok\n"
    child.send_signal(signal.SIGINT)
    _, err = await asyncio.wait_for(child.communicate(), 30)
    assert child.returncode == 130
    assert b"bill: openai/m: 1 request" in err


async def test_a_streamed_reply_is_told_live(server: MockServer, folder: Path) -> None:
    chunk = {"choices": [{"index": 0, "delta": {"content": "word by word"}, "finish_reason": "stop"}]}
    server.forget()
    server.answer(sse(chunk))
    (folder / "agent.py").write_text(
        AGENT.replace('"hello"}])', '"hello"}], stream=True)').replace(
            "reply.choices[0].message.content", "sum(1 for _ in reply)"
        )
    )
    ended = await follow(server, folder, requests=1)
    assert "  word by word" in ended.err.splitlines()
