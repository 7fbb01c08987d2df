"""Deltas a second through our client and through the official SDK, from one loopback server in one run, for each of the
three protocols.

    python tests/benchmarks/bench_client.py [DELTAS] [ROUNDS]

The server is a process of its own and sends each delta as an event and an HTTP chunk of its own, as fast as it is
read. The figure that counts is the ratio.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from multiprocessing.connection import Connection
from typing import Any, TypeAlias

import anthropic
import openai

from handrail.messages import Text, UserMessage
from handrail.providers.base import ModelInfo, Request, TextDelta
from handrail.providers.chat import OpenAIChat
from handrail.providers.messages import Anthropic
from handrail.providers.responses import OpenAIResponses

Client: TypeAlias = Callable[[str], Awaitable[int]]
Event: TypeAlias = dict[str, Any]

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
INFO = ModelInfo("demo/m")


def chat_events(deltas: int) -> Iterator[Event]:
    """A whole reply of the chat protocol."""

    def chunk(delta: dict[str, str], finish: str | None = None) -> Event:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        kind = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1767614400, "model": "m"}
        return {**kind, "choices": [choice]}

    yield from (chunk({"content": f"word{n} "}) for n in range(deltas))
    yield chunk({}, "stop")


def responses_events(deltas: int) -> Iterator[Event]:
    """A whole reply of the Responses protocol."""
    part = {"type": "output_text", "text": "", "annotations": []}
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    response = {"id": "resp_1", "object": "response", "model": "m", "created_at": 1767614400, "tools": []}
    response |= {"tool_choice": "auto", "parallel_tool_calls": True}
    text = "".join(f"word{n} " for n in range(deltas))
    whole = {**item, "status": "completed", "content": [{**part, "text": text}]}
    yield {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}}
    yield {"type": "response.output_item.added", "output_index": 0, "item": item}
    yield {"type": "response.content_part.added", **place, "part": part}
    for n in range(deltas):
        yield {"type": "response.output_text.delta", **place, "delta": f"word{n} ", "logprobs": []}
    yield {"type": "response.output_text.done", **place, "text": text, "logprobs": []}
    yield {"type": "response.output_item.done", "output_index": 0, "item": whole}
    usage = {"input_tokens": 1, "output_tokens": deltas, "total_tokens": deltas + 1}
    end = {**response, "status": "completed", "output": [whole], "usage": usage}
    yield {"type": "response.completed", "response": end}


def messages_events(deltas: int) -> Iterator[Event]:
    """A whole reply of the Messages protocol."""
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []}
    usage = {"input_tokens": 1, "output_tokens": 1}
    yield {"type": "message_start", "message": {**message, "stop_reason": None, "usage": usage}}
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    for n in range(deltas):
        delta = {"type": "text_delta", "text": f"word{n} "}
        yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": deltas}}
    yield {"type": "message_stop"}


def framed(events: Iterator[Event], *, done: bool = False) -> bytes:
    """A whole HTTP answer: each event a chunk of its own."""
    pieces = [HEAD]
    for sent in events:
        name = b"event: %s\n" % sent["type"].encode() if "type" in sent else b""
        data = name + b"data: " + json.dumps(sent).encode() + b"\n\n"
        pieces.append(b"%x\r\n%s\r\n" % (len(data), data))
    if done:
        pieces.append(b"e\r\ndata: [DONE]\n\n\r\n")
    return b"".join(pieces) + b"0\r\n\r\n"


def serve(pipe: Connection, deltas: int) -> None:
    """Answer every request with the stream of its path, until the process is ended."""
    bodies = {
        b"chat/completions": framed(chat_events(deltas), done=True),
        b"responses": framed(responses_events(deltas)),
        b"messages": framed(messages_events(deltas)),
    }

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while not reader.at_eof():
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except (asyncio.IncompleteReadError, ConnectionError):
                break
            length = next(h for h in head.lower().split(b"\r\n") if h.startswith(b"content-length:"))
            await reader.readexactly(int(length.split(b":")[1]))
            path = head.split(b" ", 2)[1]
            writer.write(next(body for end, body in bodies.items() if path.endswith(end)))
            await writer.drain()
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(connection, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


def ours(make: Callable[..., OpenAIChat | OpenAIResponses | Anthropic], path: str = "/v1") -> Client:
    """Counts the deltas that our client tells of."""

    async def count(server: str) -> int:
        provider = make(INFO, base_url=f"{server}{path}", api_key="k")
        found = 0
        async for part in provider.stream(Request((UserMessage((Text("go"),)),))):
            if isinstance(part, TextDelta):
                found += 1
        await provider.aclose()
        return found

    return count


async def sdk_chat(server: str) -> int:
    """Deltas that the official client tells of."""
    found = 0
    async with openai.AsyncOpenAI(base_url=f"{server}/v1", api_key="k") as client:
        reply = await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "go"}], stream=True
        )
        async for chunk in reply:
            if chunk.choices and chunk.choices[0].delta.content:
                found += 1
    return found


async def sdk_responses(server: str) -> int:
    """The same of the Responses protocol."""
    found = 0
    async with openai.AsyncOpenAI(base_url=f"{server}/v1", api_key="k") as client:
        async for event in await client.responses.create(model="m", input="go", stream=True):
            if event.type == "response.output_text.delta":
                found += 1
    return found


async def sdk_messages(server: str) -> int:
    """The same of the Messages protocol."""
    found = 0
    async with anthropic.AsyncAnthropic(base_url=server, api_key="k") as client:
        reply = await client.messages.create(
            model="m", max_tokens=64, messages=[{"role": "user", "content": "go"}], stream=True
        )
        async for event in reply:
            if event.type == "content_block_delta" and event.delta.type == "text_delta":
                found += 1
    return found


WIRES: dict[str, tuple[Client, Client]] = {
    "openai-chat": (ours(OpenAIChat), sdk_chat),
    "openai-responses": (ours(OpenAIResponses), sdk_responses),
    "anthropic": (ours(Anthropic, ""), sdk_messages),
}


def main() -> None:
    deltas, rounds = (*map(int, sys.argv[1:]), *(20_000, 5)[len(sys.argv) - 1 :])
    near, far = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(far, deltas), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{near.recv()}"
    sdks = f"openai {openai.__version__}, anthropic {anthropic.__version__}"
    sys.stdout.write(f"deltas/s          {'handrail':>10} {'SDK':>10} {'ratio':>7}   ({sdks})\n")
    for wire, clients in WIRES.items():
        seconds: tuple[list[float], list[float]] = ([], [])
        for _ in range(rounds):
            for times, client in zip(seconds, clients, strict=True):
                began = time.perf_counter()
                assert asyncio.run(_counted(client, url)) == deltas, wire
                times.append(time.perf_counter() - began)
        us, them = (deltas / statistics.median(times) for times in seconds)
        sys.stdout.write(f"{wire:<17} {us:>10,.0f} {them:>10,.0f} {us / them:>7.2f}\n")
    server.terminate()


async def _counted(client: Client, url: str) -> int:
    return await client(url)


if __name__ == "__main__":
    main()
