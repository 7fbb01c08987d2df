"""Deltas a second through our client and through the official SDK, from one loopback server in one run.

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
from multiprocessing.connection import Connection

import openai

from handrail.messages import Text, UserMessage
from handrail.providers.base import ModelInfo, Request, TextDelta
from handrail.providers.openai_chat import OpenAIChat

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def stream(deltas: int) -> bytes:
    """A whole reply, framed."""

    def event(delta: dict[str, str], finish: str | None = None) -> bytes:
        chunk = {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1767614400,
            "model": "m",
            "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}],
        }
        data = b"data: " + json.dumps(chunk).encode() + b"\n\n"
        return b"%x\r\n%s\r\n" % (len(data), data)

    events = [event({"content": f"word{n} "}) for n in range(deltas)]
    return HEAD + b"".join(events) + event({}, "stop") + b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"


def serve(pipe: Connection, deltas: int) -> None:
    """Answer every request with the same stream, until the process is ended."""
    body = stream(deltas)

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while not reader.at_eof():
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except (asyncio.IncompleteReadError, ConnectionError):
                break
            length = next(h for h in head.lower().split(b"\r\n") if h.startswith(b"content-length:"))
            await reader.readexactly(int(length.split(b":")[1]))
            writer.write(body)
            await writer.drain()
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(connection, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


async def ours(base_url: str) -> int:
    """Deltas that our client told of."""
    provider = OpenAIChat(ModelInfo("demo/m"), base_url=base_url, api_key="k")
    request = Request((UserMessage((Text("go"),)),))
    count = 0
    async for part in provider.stream(request):
        if isinstance(part, TextDelta):
            count += 1
    await provider.aclose()
    return count


async def sdk(base_url: str) -> int:
    """Deltas that the official client told of."""
    count = 0
    async with openai.AsyncOpenAI(base_url=base_url, api_key="k") as client:
        reply = await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "go"}], stream=True
        )
        async for chunk in reply:
            if chunk.choices and chunk.choices[0].delta.content:
                count += 1
    return count


def main() -> None:
    deltas, rounds = (*map(int, sys.argv[1:]), *(20_000, 5)[len(sys.argv) - 1 :])
    near, far = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(far, deltas), daemon=True)
    server.start()
    base_url = f"http://127.0.0.1:{near.recv()}/v1"
    seconds: dict[str, list[float]] = {"ours": [], "sdk": []}
    for _ in range(rounds):
        for name, client in (("ours", ours), ("sdk", sdk)):
            began = time.perf_counter()
            assert asyncio.run(client(base_url)) == deltas
            seconds[name].append(time.perf_counter() - began)
    server.terminate()
    rates = {name: deltas / statistics.median(times) for name, times in seconds.items()}
    sys.stdout.write(f"handrail        {rates['ours']:>10,.0f} deltas/s\n")
    sys.stdout.write(f"openai {openai.__version__:<9}{rates['sdk']:>10,.0f} deltas/s\n")
    sys.stdout.write(f"ratio           {rates['ours'] / rates['sdk']:>10.2f}\n")


if __name__ == "__main__":
    main()
