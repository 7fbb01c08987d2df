"""Recorded streams played back through a server on loopback: whole, cut and split."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from handrail.messages import AssistantMessage, Text, Thinking, UserMessage
from handrail.providers.base import (
    CallDelta,
    CallStarted,
    Finished,
    Part,
    Provider,
    Request,
    Started,
    TextDelta,
    ThinkingDelta,
)

STREAMS = Path(__file__).parents[2] / "../shared/corpus/streams"
HELLO = Request([UserMessage((Text("Hello"),))])
PATIENCE_S = 10.0  # a test that waits longer hangs


@dataclass(frozen=True)
class Recording:
    """A stream, and what it holds: text, thinking, tool_calls, stop, usage."""

    name: str
    body: bytes
    expected: Mapping[str, Any]


def recordings(api: str) -> list[Any]:
    """The recordings of one protocol as parameters of a test; one that skips where they are absent."""
    listing = STREAMS / "expected.jsonl"
    if not listing.exists():
        reason = "recordings of real streams are not here (../shared/corpus/streams)"
        return [pytest.param(None, marks=pytest.mark.skip(reason=reason))]
    rows = [json.loads(line) for line in listing.read_text(encoding="utf-8").splitlines()]
    found = (
        Recording(row["file"], (STREAMS / row["file"]).read_bytes(), row) for row in rows if row["api"] == api
    )
    return [pytest.param(recording, id=recording.name.rpartition("--")[2]) for recording in found]


def stream_of(*events: Mapping[str, Any], end: str = "\n") -> bytes:
    """Events as a server sends them, each with its name."""
    lines = (f"event: {e['type']}{end}data: {json.dumps(e, ensure_ascii=False)}{end}{end}" for e in events)
    return "".join(lines).encode("utf-8", "surrogatepass")


async def ask(provider: Provider, request: Request = HELLO) -> tuple[list[Part], AssistantMessage]:
    """All parts of a reply but the last, and its message. Fails where the stream hangs."""
    async with asyncio.timeout(PATIENCE_S):
        *parts, last = [p async for p in provider.stream(request) if not isinstance(p, Started)]
    assert isinstance(last, Finished)
    assert not any(isinstance(part, Finished) for part in parts)
    return parts, last.message


def told(message: AssistantMessage) -> dict[str, Any]:
    """A message in the words of expected.jsonl. There the input counts what was read from a cache, too."""
    usage = message.usage
    return {
        "text": message.text,
        "thinking": message.thinking,
        "tool_calls": [{"name": call.name, "arguments": call.arguments} for call in message.calls],
        "stop": message.stop_reason,
        "usage": usage and {"input": usage.context, "output": usage.output},
        "error": message.failure,
    }


def expected_of(recording: Recording) -> dict[str, Any]:
    return {
        key: recording.expected[key] for key in ("text", "thinking", "tool_calls", "stop", "usage", "error")
    }


def check_parts(parts: Sequence[Part], message: AssistantMessage) -> None:
    """The deltas add up to the message."""
    assert "".join(p.text for p in parts if isinstance(p, TextDelta)) == message.text
    thinking = "".join(p.text for p in parts if isinstance(p, ThinkingDelta))
    shown = message.thinking or not any(isinstance(b, Thinking) and not b.text for b in message.content)
    assert thinking == message.thinking or not shown
    started = [p for p in parts if isinstance(p, CallStarted)]
    assert [(p.index, p.id, p.name) for p in started] == [
        (n, c.id, c.name) for n, c in enumerate(message.calls)
    ]
    for n, call in enumerate(message.calls):
        raw = "".join(p.text for p in parts if isinstance(p, CallDelta) and p.index == n)
        assert (raw.strip() or "{}") == call.raw


def events_in(body: bytes) -> Iterator[Mapping[str, Any]]:
    """The events that are whole in `body`, read by other means than ours."""
    for line in body.replace(b"\r\n", b"\n").split(b"\n"):
        if line.startswith(b"data:") and line[5:].strip() != b"[DONE]":
            with suppress(ValueError):  # a line that was cut
                yield json.loads(line[5:])


def cuts(recording: Recording, terminal: bytes, many: int = 12) -> list[int]:
    """Where to cut: bytes before the terminal event, the same in each run, and right before it."""
    end = recording.body.rindex(terminal)
    end = recording.body.rindex(b"\n\n", 0, end) + 2
    chance = random.Random(recording.name)
    return sorted({*(chance.randrange(1, end) for _ in range(many)), end})


def split(body: bytes, seed: str) -> list[bytes]:
    """`body` in chunks of 1 to 40 bytes, so that lines, names and letters are cut."""
    chance, chunks, at = random.Random(seed), [], 0
    while at < len(body):
        size = chance.randint(1, 40)
        chunks.append(body[at : at + size])
        at += size
    return chunks


def noisy(body: bytes) -> bytes:
    """`body` with CRLF, comments, pings and retry fields between its events."""
    noise = b': keep-alive\n\nevent: ping\ndata: {"type": "ping"}\n\nretry: 3000\n\n'
    return (b": hello\n\n" + body.replace(b"\n\n", b"\n\n" + noise)).replace(b"\n", b"\r\n")
