"""Servers over HTTP that misbehave: too long an answer, a login that nobody gave, nobody there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp_bench import Bench, running, text_of

from handrail.mcp import Servers
from handrail.server_settings import ServerSettings
from handrail.tools.base import ToolError

SCHEMA = {"type": "object", "properties": {}}
INITIALIZED = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "web", "version": "1"},
}


def answer(message: dict[str, Any]) -> dict[str, Any] | None:
    match message.get("method"):
        case "initialize":
            return {"result": INITIALIZED}
        case "tools/list":
            return {"result": {"tools": [{"name": name, "inputSchema": SCHEMA} for name in ("big", "small")]}}
        case "tools/call":
            size = 9_000_000 if message["params"]["name"] == "big" else 5
            return {"result": {"content": [{"type": "text", "text": "x" * size}]}}
    return {"error": {"code": -32601, "message": "no"}} if "id" in message else None


@asynccontextmanager
async def web(status: int = 200) -> AsyncIterator[str]:
    """A server by hand; `status` is what it answers to every request."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = next(
            (int(line[15:]) for line in head.split("\r\n") if line.startswith("content-length:")), 0
        )
        body = await reader.readexactly(length)
        said = answer(json.loads(body)) if body and head.startswith("post") and status == 200 else None
        code, text = (405 if head.startswith("get") else status), b""
        if said is not None:
            text = json.dumps({"jsonrpc": "2.0", "id": json.loads(body).get("id"), **said}).encode()
        elif status == 200 and body:
            code = 202
        kind = "application/json"
        lines = [
            f"HTTP/1.1 {code} X",
            f"content-type: {kind}",
            f"content-length: {len(text)}",
            "connection: close",
        ]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + text)
        try:
            await writer.drain()
        except ConnectionError:
            pass  # the client has had enough
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    finally:
        server.close()


def servers(url: str, folder: Path) -> Servers:
    return Servers({"web": ServerSettings(url=url, timeout=10)}, cwd=folder)


async def test_an_answer_over_8_MiB_is_an_error_and_the_next_call_works(tmp_path: Path) -> None:
    async with web() as url, running(servers(url, tmp_path)) as started:
        bench = Bench(started, tmp_path, tmp_path / "unused")
        assert text_of(await bench.call("small", "web")) == "xxxxx"
        try:
            result = await bench.call("big", "web")
        except ToolError as error:
            words = str(error)
        else:
            assert result.is_error
            words = text_of(result)
        assert "more than 8.4 MB" in words and len(words) < 1_000
        assert text_of(await bench.call("small", "web")) == "xxxxx"


async def test_a_server_that_wants_a_login_says_how(tmp_path: Path) -> None:
    async with web(401) as url, running(servers(url, tmp_path)) as started:
        [status] = started.statuses()
        assert status.state == "failed"
        assert "handrail mcp login" in status.why


async def test_nobody_there_is_said_in_words(tmp_path: Path) -> None:
    async with running(servers("http://127.0.0.1:9/mcp", tmp_path)) as started:
        [status] = started.statuses()
        assert (status.state, status.why) == ("failed", "All connection attempts failed")


@pytest.mark.parametrize("url", ["ftp://x", "", "example.com/mcp"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"url must begin|either command or url"):
        ServerSettings(url=url or None)
