"""How fast the loop turns, against pydantic-ai with its function model, in one run on this machine.

    python tests/benchmarks/bench_loop.py [--repeat 5]

Screen and journal off. Each figure is the best of the repeats, peers and ours taking turns; what counts is the ratio.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import time
from collections.abc import Callable

from handrail import events as ev
from handrail.messages import AssistantMessage, Text, ToolCall, Usage
from handrail.policy import Bounds
from handrail.providers.base import Finished, Request, TextDelta
from handrail.providers.function import FunctionProvider
from handrail.session import Session
from handrail.tools import tool


@tool
async def add(n: int) -> str:
    """Add one to a number."""
    return str(n + 1)


def handrail_turns(turns: int, calls: int) -> float:
    """Seconds for a run of `turns` tool turns with `calls` parallel calls each, and a last word."""
    asked = 0

    def answer(request: Request) -> AssistantMessage:
        nonlocal asked
        asked += 1
        if asked > turns:
            return AssistantMessage((Text("done"),), "stop", Usage(1, 1), "function/model")
        blocks = tuple(
            ToolCall(f"c{asked}_{i}", "add", {"n": asked}, f'{{"n": {asked}}}') for i in range(calls)
        )
        return AssistantMessage(blocks, "tool_use", Usage(1, 1), "function/model")

    async def go() -> float:
        session = Session(FunctionProvider(answer), tools=[add], bounds=Bounds(max_turns=turns + 1))
        began = time.perf_counter()
        finished = await session.run("Go.")
        took = time.perf_counter() - began
        assert isinstance(finished, ev.RunFinished) and finished.requests == turns + 1
        return took

    return asyncio.run(go())


def pydantic_ai_turns(turns: int, calls: int) -> float:
    """The same run with pydantic-ai's agent and function model."""
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel
    from pydantic_ai.usage import UsageLimits

    asked = 0

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        nonlocal asked
        asked += 1
        if asked > turns:
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(
            parts=[ToolCallPart("add", {"n": asked}, tool_call_id=f"c{asked}_{i}") for i in range(calls)]
        )

    agent = Agent(FunctionModel(answer))

    @agent.tool_plain
    async def add(n: int) -> str:
        """Add one to a number."""
        return str(n + 1)

    async def go() -> float:
        began = time.perf_counter()
        await agent.run("Go.", usage_limits=UsageLimits(request_limit=None))
        return time.perf_counter() - began

    took = asyncio.run(go())
    assert asked == turns + 1
    return took


def handrail_deltas(count: int) -> float:
    """Seconds for one reply of `count` deltas through the loop to a listener."""

    async def stream(request: Request):  # type: ignore[no-untyped-def]
        for _ in range(count):
            yield TextDelta("word ")
        yield Finished(AssistantMessage((Text("word " * count),), "stop", Usage(1, 1), "function/model"))

    async def go() -> float:
        session, heard = Session(FunctionProvider(stream)), 0

        def listen(event: ev.Event) -> None:
            nonlocal heard
            heard += isinstance(event, ev.MessageDelta)

        session.listen(listen)
        began = time.perf_counter()
        await session.run("Go.")
        took = time.perf_counter() - began
        assert heard == count
        return took

    return asyncio.run(go())


def command(*words: str) -> float:
    """Seconds for one process."""
    began = time.perf_counter()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def best(repeat: int, *runs: Callable[[], float]) -> list[float]:
    """The best time of each, taking turns, so that a busy machine is busy for all."""
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(repeat):
        for kept, run in zip(times, runs, strict=True):
            kept.append(run())
    return [min(kept) for kept in times]


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--turns", type=int, default=500)
    options = parser.parse_args()
    turns = options.turns
    handrail_turns(10, 1)
    for calls in (1, 4):
        ours, theirs = best(
            options.repeat,
            lambda n=calls: handrail_turns(turns, n),
            lambda n=calls: pydantic_ai_turns(turns, n),
        )
        say(
            f"{turns} turns, {calls} calls each: handrail {turns / ours:,.0f} turns/s, "
            f"pydantic-ai {turns / theirs:,.0f} turns/s: {theirs / ours:.1f} times"
        )
    short, long = best(options.repeat, lambda: handrail_turns(250, 1), lambda: handrail_turns(1000, 1))
    say(f"1,000 turns cost {long / short:.2f} times 250 turns")
    (deltas,) = best(options.repeat, lambda: handrail_deltas(20_000))
    say(f"20,000 deltas to a listener: {20_000 / deltas:,.0f} a second")
    python = sys.executable
    handrail = str(python).rsplit("/", 1)[0] + "/handrail"
    empty, version, ours, theirs = best(
        options.repeat * 2,
        lambda: command(python, "-c", "pass"),
        lambda: command(handrail, "--version"),
        lambda: command(python, "-c", "import handrail"),
        lambda: command(python, "-c", "import pydantic, httpx"),
    )
    say(
        f"handrail --version: {version * 1000:.0f} ms, python -c pass: {empty * 1000:.0f} ms: "
        f"{version / empty:.2f} times"
    )
    say(
        f"import handrail: {ours * 1000:.0f} ms, import pydantic, httpx: {theirs * 1000:.0f} ms: "
        f"{ours / theirs:.2f} times"
    )


if __name__ == "__main__":
    main()
