"""Recorded streams of the chat wire, through HTTP and the client: whole, in pieces, and cut.

Our own recordings lie beside this file; real ones are taken from ../shared where that is there.
"""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from mock_server import MockServer

from handrail.messages import AssistantMessage
from handrail.providers.base import CallDelta, Finished, ModelInfo, Part, Request, TextDelta, ThinkingDelta
from handrail.providers.chat import OpenAIChat

OWN = Path(__file__).parent / "recordings"
REAL = Path(__file__).parents[3] / "../shared/corpus/streams"


def rows() -> list[Any]:
    found = []
    for folder in (OWN, REAL):
        listing = folder / "expected.jsonl"
        if not listing.is_file():
            reason = "the corpus of real streams is not here (../shared/corpus/streams)"
            found.append(pytest.param(folder, {}, id="real", marks=pytest.mark.skip(reason=reason)))
            continue
        for line in listing.read_text("utf-8").splitlines():
            row = json.loads(line)
            if row["api"] == "openai-chat":
                name = row["file"].removeprefix("openai-chat--").removesuffix(".sse")
                found.append(pytest.param(folder, row, id=name))
    return found


recordings = pytest.mark.parametrize(("folder", "row"), rows())


async def ask(server: MockServer) -> tuple[list[Part], AssistantMessage]:
    provider = OpenAIChat(ModelInfo("demo/model"), base_url=f"{server.url}/v1", api_key="k")
    parts = [part async for part in provider.stream(Request(messages=()))]
    await provider.aclose()
    last = parts[-1]
    assert isinstance(last, Finished)
    return parts, last.message


def check_whole(row: dict[str, Any], parts: list[Part], message: AssistantMessage) -> None:
    """The reply is what the row says, and its deltas add up to it."""
    assert message.text == row["text"]
    assert message.thinking == row["thinking"]
    assert [{"name": c.name, "arguments": c.arguments} for c in message.calls] == row["tool_calls"]
    assert not [c.error for c in message.calls if c.error]
    if row["error"] is not None:
        assert message.failure is not None and message.failure.phase == "stream"
        assert json.loads(message.failure.text)["error"] == row["error"]
    else:
        assert message.failure is None
    assert message.stop_reason == (row["stop"] or ("error" if row["error"] else "stop"))
    if row["usage"] is None:
        assert message.usage is None
    else:
        assert message.usage is not None
        assert {"input": message.usage.context, "output": message.usage.output} == row["usage"]
    assert "".join(p.text for p in parts if isinstance(p, TextDelta)) == row["text"]
    assert "".join(p.text for p in parts if isinstance(p, ThinkingDelta)) == row["thinking"]
    for number, call in enumerate(message.calls):
        raw = "".join(p.text for p in parts if isinstance(p, CallDelta) and p.index == number)
        assert json.loads(raw or "{}") == call.arguments


@recordings
async def test_K1_a_recording_is_read_as_it_was_meant(
    server: MockServer, folder: Path, row: dict[str, Any]
) -> None:
    server.answer((folder / row["file"]).read_bytes())
    parts, message = await ask(server)
    check_whole(row, parts, message)


def disturbed(body: bytes, seed: int) -> list[bytes]:
    """The same events with other line ends, comments and pings between them, in chunks cut anywhere."""
    dice = random.Random(seed)
    body = body.removeprefix("\ufeff".encode())
    events = [e for e in re.split(rb"(?:\r\n|\n|\r){2,}", body) if e.strip()]
    end = dice.choice([b"\n", b"\r\n", b"\r"])
    noise = [b"", b": ping" + end + end, b":" + end, b"retry: 3000" + end + end, b"event: ping" + end + end]
    out = b"".join(dice.choice(noise) + end.join(event.splitlines()) + end + end for event in events)
    chunks = []
    while out:
        size = dice.choice([1, 2, 3, 7, 60, 500, 4096])
        chunks.append(out[:size])
        out = out[size:]
    return chunks


@recordings
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_K1_chunk_borders_line_ends_and_pings_change_nothing(
    server: MockServer, folder: Path, row: dict[str, Any], seed: int
) -> None:
    server.answer(disturbed((folder / row["file"]).read_bytes(), seed))
    parts, message = await ask(server)
    check_whole(row, parts, message)


def terminal(body: bytes) -> int:
    """Where the event begins that tells the end: a finish reason, an error, or the end mark."""
    for match in re.finditer(rb"^(?:event: error\s+)?data:(.*)$", body.replace(b"\r", b"\n"), re.MULTILINE):
        text = match.group(1).strip()
        if text == b"[DONE]" or b'"error"' in text or re.search(rb'"finish_reason":\s*"', text):
            return match.start()
    raise AssertionError("a recording without an end")


def told(body: bytes) -> tuple[str, str]:
    """Text and thinking of the events that are whole in `body`, read without the client."""
    text, thinking = "", ""
    lines = re.split(rb"\r\n|\n|\r", body)
    for data in (line[5:] for line in lines if line.startswith(b"data:")):
        try:
            choices = json.loads(data)["choices"]
        except ValueError:
            continue  # a line that was cut
        for delta in (choice["delta"] for choice in choices):
            thinking += delta.get("reasoning_content") or delta.get("reasoning") or ""
            content = delta.get("content") or ""
            for part in [{"text": content}] if isinstance(content, str) else content:
                text += part.get("text", "")
                thinking += "".join(t["text"] for t in part.get("thinking", []))
    return text, thinking


@recordings
async def test_K1_a_cut_before_the_end_is_a_failure_that_keeps_what_came(
    server: MockServer, folder: Path, row: dict[str, Any]
) -> None:
    body = (folder / row["file"]).read_bytes()
    limit = terminal(body)
    dice = random.Random(row["file"])
    places = [*(dice.randrange(limit) for _ in range(40)), limit - 1, limit]
    for place in places:
        part = body[:place]
        framing, cut = dice.choice(
            [("chunked", "eof"), ("chunked", "reset"), ("close", "eof"), ("length", "eof")]
        )
        server.forget()
        server.answer(part, framing=framing, cut=cut)  # type: ignore[arg-type]
        _, message = await ask(server)
        where = f"cut at {place} ({framing}, {cut})"
        assert message.stop_reason == "error", where
        assert message.failure is not None and message.failure.text, where
        if cut == "eof":  # a reset may overtake bytes that are still under way
            text, thinking = told(part.removeprefix("\ufeff".encode()))
            assert (message.text, message.thinking) == (text, thinking), where
            assert message.failure.phase == "stream", where
