"""`handrail acp` with clients that are not ours: the protocol's own SDK, and acpx."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mock_server import MockServer
from npm import npm_program
from program import environment

acp = pytest.importorskip("acp")

from acp import schema  # noqa: E402

pytestmark = pytest.mark.skipif(os.name == "nt", reason="pipes of an event loop")


def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    data = json.dumps({"id": "x", "object": "chat.completion.chunk", "choices": [choice]})
    return f"data: {data}\n\n".encode()


def says(text: str) -> list[bytes]:
    return [chunk({"role": "assistant", "content": text}), chunk({}, "stop"), b"data: [DONE]\n\n"]


def calls(name: str, **arguments: Any) -> list[bytes]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    made = [{"index": 0, "id": "c0", "type": "function", "function": function}]
    return [chunk({"role": "assistant", "tool_calls": made}), chunk({}, "tool_calls"), b"data: [DONE]\n\n"]


class Editor:
    """A client of the SDK: keeps every update, answers as it is told."""

    def __init__(self, option: str = "once", answer: str | None = None) -> None:
        self.option, self.answer = option, answer
        self.updates: list[Any] = []
        self.asked: list[Any] = []
        self.forms: list[str] = []

    async def session_update(self, session_id: str, update: Any, **more: Any) -> None:
        self.updates.append(update)

    async def request_permission(self, session_id: str, tool_call: Any, options: Any, **more: Any) -> Any:
        self.asked.append((tool_call, options))
        chosen = schema.AllowedOutcome(outcome="selected", option_id=self.option)
        return schema.RequestPermissionResponse(outcome=chosen)

    async def create_elicitation(self, message: str, mode: Any, **more: Any) -> Any:
        self.forms.append(message)
        return {"action": "accept", "content": {"answer": self.answer}}

    def text(self, kind: str = "agent_message_chunk") -> str:
        """What was said, joined."""
        return "".join(u.content.text for u in self.updates if u.session_update == kind)

    def of(self, kind: str) -> list[Any]:
        return [u for u in self.updates if u.session_update == kind]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    return place


@pytest.fixture
async def server() -> AsyncIterator[MockServer]:
    mock = MockServer()
    await mock.start()
    yield mock
    await mock.stop()


@asynccontextmanager
async def editor(
    server: MockServer, folder: Path, *args: str, **how: Any
) -> AsyncIterator[tuple[Any, Editor]]:
    """An editor connected to a `handrail acp` of its own."""
    client = Editor(**how)
    command = ("-m", "handrail_tui", "acp", "--base-url", f"{server.url}/v1", "--model", "my/m", *args)
    async with acp.spawn_agent_process(
        client, sys.executable, *command, env=environment(folder), cwd=folder, use_unstable_protocol=True
    ) as (connection, process):
        form = {"elicitation": {"form": {}}} if client.answer is not None else {}
        capabilities = schema.ClientCapabilities.model_validate(form)
        await connection.initialize(protocol_version=1, client_capabilities=capabilities)
        yield connection, client
    assert process.returncode is not None


def words(text: str) -> list[Any]:
    return [acp.text_block(text)]


async def test_a_prompt_is_a_run_whose_words_stream(server: MockServer, folder: Path) -> None:
    server.answer(says("Hello, editor."))
    async with editor(server, folder) as (agent, seen):
        session = await agent.new_session(cwd=str(folder), mcp_servers=[])
        assert [m.id for m in session.modes.available_modes] == ["ask", "edits", "all"]
        ended = await agent.prompt(session_id=session.session_id, prompt=words("hello"))
        assert ended.stop_reason == "end_turn"
        assert seen.text() == "Hello, editor."
        await agent.prompt(session_id=session.session_id, prompt=words("and again"))
    assert [m["content"] for m in server.requests[1].body["messages"] if m["role"] == "user"] == [
        "hello",
        "and again",
    ]


@pytest.mark.parametrize(("option", "written"), [("once", True), ("session", True), ("deny", False)])
async def test_H5_an_approval_is_a_permission_with_its_diff(
    server: MockServer, folder: Path, option: str, written: bool
) -> None:
    server.answer(calls("write", path="a.txt", content="one\n"))
    server.answer(says("Done."))
    async with editor(server, folder, option=option) as (agent, seen):
        session = await agent.new_session(cwd=str(folder), mcp_servers=[])
        await agent.prompt(session_id=session.session_id, prompt=words("write"))
    ((call, options),) = seen.asked
    assert (call.content[0].path, call.content[0].old_text, call.content[0].new_text) == (
        "a.txt",
        None,
        "one\n",
    )
    assert [o.kind for o in options] == ["allow_once", "allow_always", "reject_once"]
    assert (folder / "a.txt").exists() is written
    last = [u for u in seen.of("tool_call_update") if u.status in ("completed", "failed")][-1]
    assert last.status == ("completed" if written else "failed")


async def test_H1_a_question_is_a_form_where_the_editor_has_that(server: MockServer, folder: Path) -> None:
    server.answer(calls("ask_human", kind="captcha", needed="Solve it."))
    server.answer(says("Thank you."))
    async with editor(server, folder, answer="4711") as (agent, seen):
        session = await agent.new_session(cwd=str(folder), mcp_servers=[])
        await agent.prompt(session_id=session.session_id, prompt=words("go"))
    assert seen.forms == ["captcha: Solve it."]
    assert server.requests[1].body["messages"][-1]["content"] == "4711"


async def test_H1_elsewhere_a_question_is_words_and_the_next_prompt_its_answer(
    server: MockServer, folder: Path
) -> None:
    server.answer(calls("ask_human", kind="decision", needed="Red or blue?"))
    server.answer(says("Blue it is."))
    async with editor(server, folder) as (agent, seen):
        session = await agent.new_session(cwd=str(folder), mcp_servers=[])
        ended = await agent.prompt(session_id=session.session_id, prompt=words("go"))
        assert ended.stop_reason == "end_turn"
        assert "Needs you (decision): Red or blue?" in seen.text()
        await agent.prompt(session_id=session.session_id, prompt=words("blue"))
    assert seen.text().endswith("Blue it is.")
    assert server.requests[1].body["messages"][-1]["content"] == "blue"


async def test_J_a_stored_session_is_told_again_and_goes_on(server: MockServer, folder: Path) -> None:
    server.answer(calls("ask_human", kind="decision", needed="Red or blue?"))
    server.answer(says("Blue it is."))
    async with editor(server, folder) as (agent, _):
        id = (await agent.new_session(cwd=str(folder), mcp_servers=[])).session_id
        await agent.prompt(session_id=id, prompt=words("paint it"))
    async with editor(server, folder) as (agent, seen):
        await agent.load_session(cwd=str(folder), session_id=id, mcp_servers=[])
        assert seen.text("user_message_chunk") == "paint it"
        await agent.prompt(session_id=id, prompt=words("blue"))
    assert seen.text() == "Blue it is."


async def test_L9_a_cancel_stops_the_run(server: MockServer, folder: Path) -> None:
    server.answer([chunk({"role": "assistant", "content": "I begin"})], cut="hang")
    async with editor(server, folder) as (agent, _):
        id = (await agent.new_session(cwd=str(folder), mcp_servers=[])).session_id
        prompting = asyncio.create_task(agent.prompt(session_id=id, prompt=words("go")))
        await server.arrival()
        await agent.cancel(session_id=id)
        assert (await asyncio.wait_for(prompting, 20)).stop_reason == "cancelled"


async def test_U8_a_wait_is_a_call_in_progress_that_says_until_when(server: MockServer, folder: Path) -> None:
    server.answer('{"error": {"message": "Usage limit reached. Try again in ~42 min."}}', 429)
    async with editor(server, folder) as (agent, seen):
        id = (await agent.new_session(cwd=str(folder), mcp_servers=[])).session_id
        prompting = asyncio.create_task(agent.prompt(session_id=id, prompt=words("go")))
        while not (waits := [u for u in seen.of("tool_call") if u.title.startswith("Waiting until")]):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        assert waits[0].status == "in_progress"
        assert "42 min" in waits[0].content[0].content.text
        await agent.cancel(session_id=id)
        assert (await prompting).stop_reason == "cancelled"


async def test_L1_a_bound_is_the_protocols_own_reason(server: MockServer, folder: Path) -> None:
    server.answer(calls("ls", path="."))
    async with editor(server, folder, "--max-turns", "2") as (agent, seen):
        id = (await agent.new_session(cwd=str(folder), mcp_servers=[])).session_id
        assert (await agent.prompt(session_id=id, prompt=words("go"))).stop_reason == "max_turn_requests"
    assert "all 2 turns are used" in seen.text()


async def test_what_is_wrong_is_an_error_in_words(server: MockServer, folder: Path) -> None:
    server.answer('{"error": {"message": "Incorrect API key provided"}}', 401)
    async with editor(server, folder) as (agent, _):
        with pytest.raises(acp.RequestError, match="there is no session 'nope'"):
            await agent.prompt(session_id="nope", prompt=words("go"))
        with pytest.raises(acp.RequestError, match="is no folder"):
            await agent.new_session(cwd="/no/such/place", mcp_servers=[])
        with pytest.raises(acp.RequestError, match="No session"):
            await agent.load_session(cwd=str(folder), session_id="zzz", mcp_servers=[])
        id = (await agent.new_session(cwd=str(folder), mcp_servers=[])).session_id
        with pytest.raises(acp.RequestError, match="Incorrect API key"):
            await agent.prompt(session_id=id, prompt=words("go"))


@pytest.mark.servers
async def test_acpx_runs_a_session_with_an_approval_and_a_question(
    peers: Path, server: MockServer, folder: Path
) -> None:
    acpx = npm_program(peers, "acpx@0.19.1", "acpx")
    server.answer(calls("write", path="a.txt", content="one\n"))
    server.answer(calls("ask_human", kind="decision", needed="Red or blue?"))
    server.answer(says("Blue it is."))
    agent = shlex.join(
        [sys.executable, "-m", "handrail_tui", "acp", "--base-url", f"{server.url}/v1", "--model", "my/m"]
    )

    async def run(*args: str) -> str:
        """Its process in the background ends after a second of rest; a prompt that meets that end is not sent."""
        for _ in range(5):
            said = await once(*args)
            if "Queue owner is shutting down" not in said:
                break
        return said

    async def once(*args: str) -> str:
        child = await asyncio.create_subprocess_exec(
            acpx,
            *("--cwd", str(folder), "--agent", agent, "--approve-all", "--ttl", "1"),
            *args,
            env=environment(folder),
            cwd=folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        assert child.stdout is not None
        said = await asyncio.wait_for(child.stdout.read(), 120)
        await child.wait()
        return said.decode()

    assert "created session" in await run("sessions", "new")
    assert "Red or blue?" in await run("prompt", "paint it")
    assert (folder / "a.txt").read_text() == "one\n"
    assert "Blue it is." in await run("prompt", "blue")
