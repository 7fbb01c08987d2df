"""Servers that others wrote, over stdio and HTTP, in both eras of the protocol."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mcp_bench import Bench, running, text_of
from real_mcp import free_port, node_server, python_server

from handrail.mcp import Servers
from handrail.messages import Image
from handrail.server_settings import ServerSettings
from handrail.tools.base import FormAnswer, ToolError

pytestmark = pytest.mark.servers


def bench(servers: Servers, folder: Path) -> Bench:
    return Bench(servers, folder, folder / "unused")


@pytest.fixture(params=["stdio", "http"])
async def everything(request: Any, tmp_path: Path) -> AsyncIterator[Bench]:
    port = free_port()
    settings = node_server("server-everything", env={"PORT": str(port)})
    if request.param == "stdio":
        async with running(
            Servers({"everything": settings}, cwd=tmp_path, folder=tmp_path / "mcp")
        ) as servers:
            yield bench(servers, tmp_path)
        return
    process = await start_http(settings, port)
    try:
        reached = ServerSettings(url=f"http://127.0.0.1:{port}/mcp", headers={"X-Test": "1"})
        async with running(
            Servers({"everything": reached}, cwd=tmp_path, folder=tmp_path / "mcp")
        ) as servers:
            yield bench(servers, tmp_path)
    finally:
        process.kill()
        await process.communicate()


async def start_http(settings: ServerSettings, port: int) -> asyncio.subprocess.Process:
    assert settings.command is not None
    process = await asyncio.create_subprocess_exec(
        settings.command,
        *settings.args,
        "streamableHttp",
        env={"PORT": str(port), "PATH": "/usr/bin:/bin"},
        stderr=-1,
    )
    assert process.stderr is not None
    await process.stderr.readuntil(b"listening on port")
    return process


async def test_everything_text_progress_pictures_and_roots(everything: Bench) -> None:
    [status] = everything.servers.statuses()
    assert (status.state, status.protocol) == ("ready", "2025-11-25"), status.why
    assert text_of(await everything.call("echo", "everything", message="hi")) == "Echo: hi"
    picture = await everything.call("get-tiny-image", "everything")
    assert [b.media_type for b in picture.blocks if isinstance(b, Image)] == ["image/png"]
    await everything.call("trigger-long-running-operation", "everything", duration=0.3, steps=3)
    assert "".join(everything.progress) == "1/3\n2/3\n3/3\n"
    roots = text_of(await everything.call("get-roots-list", "everything"))
    assert everything.folder.resolve().as_uri() in roots


async def test_everything_asks_for_every_kind_of_field(everything: Bench) -> None:
    everything.answers = [
        FormAnswer("accept", {"name": "Ada", "check": True, "integer": 7}),
        FormAnswer("decline"),
    ]
    answered = text_of(await everything.call("trigger-elicitation-request", "everything"))
    assert "Name: Ada" in answered
    assert len(everything.asked[0].fields) == 13
    assert {f.kind for f in everything.asked[0].fields} == {
        *("text", "boolean", "email", "uri", "date", "integer", "number", "choice", "choices")
    }
    declined = text_of(await everything.call("trigger-elicitation-request", "everything"))
    assert "declined" in declined


async def test_everything_sends_a_person_to_an_address(everything: Bench) -> None:
    everything.answers = [FormAnswer("accept")]
    await everything.call("trigger-url-elicitation", "everything", url="https://example.com/sign")
    assert everything.asked[0].where == "https://example.com/sign"


async def test_an_http_server_that_was_restarted_is_found_again(tmp_path: Path) -> None:
    port = free_port()
    settings = node_server("server-everything", env={"PORT": str(port)})
    process = await start_http(settings, port)
    reached = ServerSettings(url=f"http://127.0.0.1:{port}/mcp")
    async with running(Servers({"everything": reached}, cwd=tmp_path)) as servers:
        one = bench(servers, tmp_path)
        await one.call("echo", "everything", message="a")
        process.kill()
        await process.communicate()
        process = await start_http(settings, port)
        try:
            assert text_of(await one.call("echo", "everything", message="b")) == "Echo: b"
        finally:
            process.kill()
            await process.communicate()


async def test_the_filesystem_server_gets_the_working_folder_whatever_its_arguments_said(
    tmp_path: Path,
) -> None:
    other, work = tmp_path / "other", tmp_path / "work"
    for folder in (other, work):
        folder.mkdir()
    settings = node_server("server-filesystem", str(other))
    async with running(Servers({"fs": settings}, cwd=work)) as servers:
        one = bench(servers, work)
        while str(work) not in text_of(await one.call("list_allowed_directories", "fs")):
            pass  # it asks for roots beside its answers
        await one.call("write_file", "fs", path=str(work / "a.txt"), content="hello")
        assert (work / "a.txt").read_text() == "hello"
        assert text_of(await one.call("read_text_file", "fs", path=str(work / "a.txt"))) == "hello"
        refused = await one.call("write_file", "fs", path=str(other / "b.txt"), content="no")
        assert refused.is_error
        assert not (other / "b.txt").exists()


async def test_the_memory_server_keeps_its_graph(tmp_path: Path) -> None:
    settings = node_server("server-memory", env={"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")})
    async with running(Servers({"memory": settings}, cwd=tmp_path)) as servers:
        one = bench(servers, tmp_path)
        entity = {"name": "Ada", "entityType": "person", "observations": ["wrote the first program"]}
        await one.call("create_entities", "memory", entities=[entity])
        assert "first program" in text_of(await one.call("search_nodes", "memory", query="Ada"))


def repository(folder: Path) -> None:
    subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], check=True)
    (folder / "a.txt").write_text("a\n")


async def test_the_git_server_works_in_the_later_protocol(tmp_path: Path) -> None:
    settings = python_server("mcp-server-git")
    repository(tmp_path)
    async with running(Servers({"git": settings}, cwd=tmp_path)) as servers:
        [status] = servers.statuses()
        assert (status.state, status.protocol) == ("ready", "2026-07-28"), status.why
        one = bench(servers, tmp_path)
        await one.call("git_add", "git", repo_path=str(tmp_path), files=["a.txt"])
        assert "a.txt" in text_of(await one.call("git_status", "git", repo_path=str(tmp_path)))


async def test_the_time_server_refuses_what_is_no_zone(tmp_path: Path) -> None:
    async with running(Servers({"time": python_server("mcp-server-time")}, cwd=tmp_path)) as servers:
        one = bench(servers, tmp_path)
        assert "Europe/Berlin" in text_of(
            await one.call("get_current_time", "time", timezone="Europe/Berlin")
        )
        try:
            assert (await one.call("get_current_time", "time", timezone="Nowhere")).is_error
        except ToolError as error:
            pytest.fail(f"a refusal is a result: {error}")
