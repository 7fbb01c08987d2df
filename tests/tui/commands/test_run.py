"""`handrail run` and `handrail step` as a script sees them: a real process, a server on loopback, exit codes."""

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

from handrail_tui.main import main

LIMIT_S = 30.0


@pytest.fixture
async def server() -> AsyncIterator[MockServer]:
    mock = MockServer()
    await mock.start()
    yield mock
    await mock.stop()


def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    data = json.dumps({"id": "x", "object": "chat.completion.chunk", "choices": [choice]})
    return f"data: {data}\n\n".encode()


def says(text: str) -> list[bytes]:
    return [chunk({"role": "assistant", "content": text}), chunk({}, "stop"), b"data: [DONE]\n\n"]


def calls(*named: tuple[str, dict[str, Any]]) -> list[bytes]:
    made = [
        {"index": i, "id": f"c{i}", "type": "function", "function": {"name": n, "arguments": json.dumps(a)}}
        for i, (n, a) in enumerate(named)
    ]
    return [chunk({"role": "assistant", "tool_calls": made}), chunk({}, "tool_calls"), b"data: [DONE]\n\n"]


class Program:
    """`handrail` as a child process in a folder of its own."""

    def __init__(self, server: MockServer, folder: Path) -> None:
        self._url, self.folder = server.url, folder

    async def start(
        self, command: str, *args: str, stdin: int = asyncio.subprocess.DEVNULL
    ) -> asyncio.subprocess.Process:
        kept = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG", "PYTHONPATH", "SYSTEMROOT")}
        homes = {
            f"XDG_{n}_HOME": str(self.folder / ".home" / n) for n in ("CONFIG", "STATE", "DATA", "CACHE")
        }
        where = ["--base-url", f"{self._url}/v1", "--model", "my/model", "--no-recovery"]
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "handrail_tui",
            command,
            *where,
            *args,
            cwd=self.folder,
            env={**kept, **homes, "HOME": str(self.folder), "HANDRAIL_DEBUG": "1"},
            stdin=stdin,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def done(self, command: str, *args: str, piped: bytes | None = None) -> tuple[int, str, str]:
        stdin = asyncio.subprocess.DEVNULL if piped is None else asyncio.subprocess.PIPE
        child = await self.start(command, *args, stdin=stdin)
        out, err = await asyncio.wait_for(child.communicate(piped), LIMIT_S)
        assert child.returncode is not None
        return child.returncode, out.decode(), err.decode()


@pytest.fixture
def program(server: MockServer, tmp_path: Path) -> Program:
    return Program(server, tmp_path)


def last(out: str) -> dict[str, Any]:
    found = json.loads(out.splitlines()[-1])
    assert isinstance(found, dict)
    return found


async def test_a_task_of_several_turns_ends_with_run_finished(server: MockServer, program: Program) -> None:
    (program.folder / "a.txt").write_text("one\n")
    server.answer(calls(("read", {"path": "a.txt"}), ("ls", {})))
    server.answer(calls(("write", {"path": "b.txt", "content": "two\n"})))
    server.answer(says("Done: b.txt."))
    code, out, err = await program.done("run", "--json", "--approve", "edits", "make b.txt")
    assert (code, err) == (0, "")
    assert last(out)["outcome"] == "completed" and last(out)["requests"] == 3
    assert (program.folder / "b.txt").read_text() == "two\n"
    first = server.requests[0].body["messages"]
    assert first[0]["content"].startswith("You work for the person")


async def test_H5_nobody_there_and_no_mode_denies_with_the_reason(
    server: MockServer, program: Program
) -> None:
    server.answer(calls(("write", {"path": "b.txt", "content": "two\n"})))
    server.answer(says("I may not."))
    code, out, _ = await program.done("run", "--plain", "make b.txt")
    assert code == 0 and not (program.folder / "b.txt").exists()
    assert "denied: nobody was there to ask" in out


async def test_H4_a_question_that_nobody_answers_is_exit_4(server: MockServer, program: Program) -> None:
    server.answer(calls(("ask_human", {"kind": "captcha", "needed": "solve it", "where": "http://x"})))
    code, out, _ = await program.done("run", "--json", "go")
    assert code == 4
    assert last(out)["outcome"] == "human-required" and last(out)["question"]["needed"] == "solve it"


async def test_a_provider_that_refuses_is_exit_5(server: MockServer, program: Program) -> None:
    server.answer('{"error":{"message":"invalid api key"}}', 401)
    code, out, _ = await program.done("run", "--json", "go")
    assert (code, last(out)["outcome"], last(out)["class"]) == (5, "provider", "auth")


async def test_L1_a_bound_is_exit_6(server: MockServer, program: Program) -> None:
    server.answer(calls(("ls", {})))
    code, out, _ = await program.done("run", "--json", "--max-turns", "2", "go")
    assert (code, last(out)["outcome"], len(server.requests)) == (6, "turn-limit", 2)


async def test_piped_input_beside_a_prompt_is_context(server: MockServer, program: Program) -> None:
    server.answer(says("Because."))
    code, out, _ = await program.done("run", "--json", "why?", piped=b"line one\n\xff\x00line two\n")
    started = json.loads(out.splitlines()[0])
    assert (code, started["prompt"], started["context"]) == (0, "why?", "line one\n\ufffd\ufffdline two\n")
    assert "line two" in json.dumps(server.requests[0].body["messages"])


@pytest.mark.parametrize("args", [("-",), ()])
async def test_a_prompt_from_stdin(server: MockServer, program: Program, args: tuple[str, ...]) -> None:
    server.answer(says("Hello."))
    code, out, _ = await program.done("run", "--json", *args, piped="grüß mich".encode())
    assert (code, json.loads(out.splitlines()[0])["prompt"]) == (0, "grüß mich")


async def test_no_prompt_at_all_is_a_usage_error(program: Program) -> None:
    code, out, err = await program.done("run")
    assert (code, out) == (2, "") and "prompt is empty" in err


SCHEMA = '{"type":"object","required":["answer"],"properties":{"answer":{"type":"integer"}}}'


async def test_S1_step_prints_the_value_and_nothing_else_on_stdout(
    server: MockServer, program: Program
) -> None:
    (program.folder / "s.json").write_text(SCHEMA)
    server.answer(calls(("submit", {"answer": "no"})))
    server.answer(calls(("submit", {"answer": 42})))
    code, out, err = await program.done("step", "--schema", "s.json", "answer")
    assert (code, out) == (0, '{"answer":42}\n')
    assert "submission rejected, 1 of 3" in err and "Value accepted" in err


async def test_S7_step_without_a_value_is_exit_3_and_an_empty_stdout(
    server: MockServer, program: Program
) -> None:
    (program.folder / "s.json").write_text(SCHEMA)
    server.answer(says("I would rather not."))
    code, out, _ = await program.done("step", "--schema", "s.json", "answer")
    assert (code, out) == (3, "")


async def test_step_has_a_small_bound_of_its_own(server: MockServer, program: Program) -> None:
    (program.folder / "s.json").write_text(SCHEMA)
    for number in range(9):
        server.answer(calls(("read", {"path": f"gone-{number}"})))
    code, _, _ = await program.done("step", "--schema", "s.json", "answer")
    assert (code, len(server.requests)) == (6, 8)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--max-turns", "0", "go"), "--max-turns: Input should be greater than 0"),
        (("--tools", "raed", "go"), "Did you mean 'read'?"),
        (("--deadline", "soon", "go"), "'soon' is not a duration"),
        (("--cwd", "gone", "go"), "'gone' is not a folder"),
        (("--schema", "gone.json", "go"), "gone.json"),
        (("--system", "gone.md", "go"), "gone.md"),
        (("--max-cost", "1", "go"), "price"),
        (("--plain", "--json", "go"), "cannot be combined"),
        (("--base-url", "nonsense", "go"), "nonsense"),
    ],
)
def test_what_cannot_be_is_one_clear_error_before_anything_is_spent(
    args: tuple[str, ...],
    words: str,
    home: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["run", "--model", "my/model", "--base-url", "http://127.0.0.1:9/v1", *args]) == 2
    out, err = capsys.readouterr()
    assert out == "" and words in err and len(err.splitlines()) <= 2
    assert list(home.rglob("journal.jsonl")) == []


@pytest.mark.parametrize(
    ("name", "code", "kind"),
    [
        ("SIGTERM", 143, "run_interrupted"),
        ("SIGHUP", 129, "run_interrupted"),
        ("SIGINT", 130, "run_finished"),
    ],
)
async def test_J7_a_signal_ends_the_run_with_its_line_and_its_code(
    server: MockServer, program: Program, name: str, code: int, kind: str
) -> None:
    server.answer([chunk({"role": "assistant", "content": "thinking about it"})], cut="hang")
    child = await program.start("run", "--json", "go")
    out = await _until(child, b'"message_delta"')
    child.send_signal(getattr(signal, name))
    rest, err = await asyncio.wait_for(child.communicate(), LIMIT_S)
    end = last((out + rest).decode())
    assert (child.returncode, end["type"], err) == (code, kind, b"")
    assert end.get("signal") == (name if kind == "run_interrupted" else None)
    assert end.get("outcome") == ("cancelled" if kind == "run_finished" else None)


async def test_a_reader_that_goes_away_ends_the_run(server: MockServer, program: Program) -> None:
    (program.folder / "a.txt").write_text("x")
    server.answer(calls(("read", {"path": "a.txt"})))
    child = await program.start("run", "--json", "--max-turns", "1000", "go")
    await _until(child, b'"turn_finished"')
    assert child.stdout is not None and child.stderr is not None
    child.stdout._transport.close()  # type: ignore[attr-defined]  # as `| head` does
    err = await asyncio.wait_for(child.stderr.read(), LIMIT_S)
    assert (await child.wait(), err) == (141, b"")
    assert len(server.requests) < 1000


async def _until(child: asyncio.subprocess.Process, words: bytes) -> bytes:
    assert child.stdout is not None
    seen = b""
    async with asyncio.timeout(LIMIT_S):
        while words not in seen:
            line = await child.stdout.readline()
            assert line, f"the program ended early: {seen.decode()}"
            seen += line
    return seen
