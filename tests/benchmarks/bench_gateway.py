"""What the gateway costs: the delay of the first byte, and the time and CPU of a long reply, with it and without.

    python tests/benchmarks/bench_gateway.py [DELTAS] [ROUNDS]

Provider, gateway and client are a process each; the provider sends each delta as an event and an HTTP chunk of its
own, as fast as it is read. The client is OpenAI's SDK.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import statistics
import sys
import time
from multiprocessing.connection import Connection

import openai
from bench_client import serve

from handrail.agents.gateway import Gateway
from handrail.agents.gateway_session import GatewaySession
from handrail.agents.routes import Route
from handrail.clock import RealClock


def stand_between(pipe: Connection, url: str) -> None:
    """The gateway, until the process is ended. Says its CPU seconds whenever it is asked."""

    async def main() -> None:
        session = GatewaySession("s", clock=RealClock(), routes={"openai": Route("openai", url)})
        async with Gateway() as gateway:
            gateway.add(session)
            pipe.send(gateway.base_url(session, "openai"))
            while True:
                await asyncio.to_thread(pipe.recv)
                pipe.send(time.process_time())

    asyncio.run(main())


async def read(url: str) -> tuple[float, float, float]:
    """Seconds to the first delta and to the last, and CPU seconds of this client."""
    async with openai.AsyncOpenAI(base_url=url, api_key="k") as client:
        begun, cpu, first, count = time.perf_counter(), time.process_time(), 0.0, 0
        stream = await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "go"}], stream=True
        )
        async for _ in stream:
            first = first or time.perf_counter() - begun
            count += 1
        return first, time.perf_counter() - begun, time.process_time() - cpu


def main() -> None:
    deltas = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    ours, theirs = multiprocessing.Pipe()
    provider = multiprocessing.Process(target=serve, args=(theirs, deltas), daemon=True)
    provider.start()
    direct = f"http://127.0.0.1:{ours.recv()}/v1"
    gate, side = multiprocessing.Pipe()
    between = multiprocessing.Process(target=stand_between, args=(side, direct), daemon=True)
    between.start()
    through = gate.recv()
    found: dict[str, list[tuple[float, float, float]]] = {"direct": [], "gateway": []}
    for url in (direct, through):
        asyncio.run(read(url))  # warm
    gate.send(None)
    before = gate.recv()
    for _ in range(rounds):
        found["direct"].append(asyncio.run(read(direct)))
        found["gateway"].append(asyncio.run(read(through)))
    gate.send(None)
    own = (gate.recv() - before) / rounds
    medians = {
        name: [statistics.median(column) for column in zip(*rows, strict=True)]
        for name, rows in found.items()
    }
    for name, (first, whole, cpu) in medians.items():
        print(
            f"{name:8} first {first * 1000:7.2f} ms  {deltas} deltas {whole:6.3f} s  client's CPU {cpu:6.3f} s"
        )
    (first0, whole0, cpu0), (first1, whole1, cpu1) = medians["direct"], medians["gateway"]
    print(f"gateway's own CPU {own:.3f} s, {own / deltas * 1e6:.1f} µs a delta; cores {os.cpu_count()}")
    print(
        f"first byte +{(first1 - first0) * 1000:.2f} ms · time ×{whole1 / whole0:.2f} · CPU ×{(cpu1 + own) / cpu0:.2f}"
    )


if __name__ == "__main__":
    main()
