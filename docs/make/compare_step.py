"""Makes the table of docs/step.md: `python docs/make/compare_step.py`. A test holds that it is right.

The same replies are given to `step` and, where it is installed (extra `dev`), to pydantic-ai with its defaults. What
pydantic-ai came to is kept in compare_step.json with its version and the day; without it the table is made from that.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from handrail import StepFailed, step, tool
from handrail.clock import VirtualClock
from handrail.messages import Failure
from handrail.providers.scripted import ScriptedCall, ScriptedProvider, ScriptedReply
from handrail.tools import ToolError

DOCS: Final = Path(__file__).parents[1]
SEEN: Final = Path(__file__).with_suffix(".json")
PAGE: Final = DOCS / "step.md"
BEGIN: Final = "<!-- Made by `python docs/make/compare_step.py`: -->\n"
END: Final = "<!-- until here -->\n"
TURNS: Final = 4


class Answer(BaseModel):
    n: int


@dataclass(frozen=True)
class Reply:
    """What the model says. A call is the name of a tool and its arguments as text."""

    text: str = ""
    calls: Sequence[tuple[str, str]] = ()
    cut: bool = False
    fails: bool = False


def submit(n: object) -> tuple[str, str]:
    return ("submit", json.dumps({"n": n}))


LOOKUP: Final = ("lookup", "{}")
AGAIN: Final = ("again", "{}")
CRASH: Final = ("crash", "{}")
DONE: Final = Reply("Done.")

SITUATIONS: Final[dict[str, Sequence[Reply]]] = {
    "5, beside a tool that asks to be tried again; then prose": [
        Reply(calls=[submit(5), AGAIN]),
        *[DONE] * 3,
    ],
    "5, beside a lookup with wrong arguments; then prose": [
        Reply(calls=[submit(5), ("lookup", '{"q": 1}')]),
        *[DONE] * 3,
    ],
    "5, beside a tool that raises; then prose": [Reply(calls=[submit(5), CRASH]), DONE],
    "5, beside a lookup; then the connection fails": [Reply(calls=[LOOKUP, submit(5)]), Reply(fails=True)],
    "5, beside a lookup; then lookups for ever": [
        Reply(calls=[LOOKUP, submit(5)]),
        *[Reply(calls=[LOOKUP])] * 9,
    ],
    "5 and 6 in one reply": [Reply(calls=[submit(5), submit(6)])],
    'the text "5" for an integer; then 6': [Reply(calls=[submit("5")]), Reply(calls=[submit(6)])],
    "two invalid ones, one a reply; then 5": [
        Reply(calls=[submit("a")]),
        Reply(calls=[submit("b")]),
        Reply(calls=[submit(5)]),
    ],
    "three invalid ones in one reply; then 5": [
        Reply(calls=[submit("a"), submit("b"), submit("c")]),
        Reply(calls=[submit(5)]),
    ],
    "a reply cut off inside the submission; then 5": [
        Reply(calls=[("submit", '{"n": 1')], cut=True),
        Reply(calls=[submit(5)]),
    ],
    "a reply cut off behind a submission of 1; then 5": [
        Reply(calls=[submit(1)], cut=True),
        Reply(calls=[submit(5)]),
    ],
    "prose; then 5": [Reply("It is 5."), Reply(calls=[submit(5)])],
    "nothing; then 5": [Reply(), Reply(calls=[submit(5)])],
}


async def ours(replies: Sequence[Reply], *, sequential: bool = False) -> str:
    """What `step` comes to; `sequential`: with tools that run one after another."""
    clock = VirtualClock()
    provider = ScriptedProvider([_scripted(reply) for reply in replies], clock)

    @tool(sequential=sequential)
    async def lookup() -> str:
        return "42"

    @tool(sequential=sequential)
    async def again() -> str:
        raise ToolError("try me again")

    @tool(sequential=sequential)
    async def crash() -> str:
        raise RuntimeError("the disk is gone")

    tools = [lookup, again, crash]
    try:
        answer = await step("Go.", Answer, model=provider, tools=tools, max_turns=TURNS, clock=clock)
    except StepFailed as failed:
        return _said(f"StepFailed: {failed.kind}", len(provider.requests))
    return _said(str(answer.n), len(provider.requests))


def _scripted(reply: Reply) -> ScriptedReply:
    if reply.fails:
        return ScriptedReply(failure=Failure("overloaded", status=503))
    calls = [ScriptedCall(name, raw) for name, raw in reply.calls]
    return ScriptedReply(text=reply.text, calls=calls, stop="length" if reply.cut else None)


async def theirs(replies: Sequence[Reply], *, sequential: bool = False) -> str:
    """What pydantic-ai comes to, with its defaults; `sequential`: in its mode that runs tools one after another."""
    from pydantic_ai import Agent, ModelRetry
    from pydantic_ai.exceptions import ModelHTTPError
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel
    from pydantic_ai.usage import UsageLimits

    left, asked = iter(replies), 0

    def answer(messages: Any, info: Any) -> ModelResponse:
        nonlocal asked
        asked += 1
        reply = next(left)
        if reply.fails:
            raise ModelHTTPError(503, "scripted", "overloaded")
        names = {"submit": info.output_tools[0].name}
        parts: list[Any] = [TextPart(reply.text)] if reply.text else []
        parts += [ToolCallPart(names.get(name, name), raw) for name, raw in reply.calls]
        return ModelResponse(parts=parts, finish_reason="length" if reply.cut else "stop")

    agent = Agent(FunctionModel(answer), output_type=Answer)

    @agent.tool_plain
    def lookup() -> str:
        return "42"

    @agent.tool_plain
    def again() -> str:
        raise ModelRetry("try me again")

    @agent.tool_plain
    def crash() -> str:
        raise RuntimeError("the disk is gone")

    try:
        with Agent.parallel_tool_call_execution_mode("sequential" if sequential else "parallel"):
            result = await agent.run("Go.", usage_limits=UsageLimits(request_limit=TURNS))
    except Exception as error:
        return _said(type(error).__name__, asked)
    return _said(str(result.output.n), asked)


def _said(what: str, requests: int) -> str:
    return f"{what} ({requests} request{'s' if requests > 1 else ''})"


async def _all(play: Callable[..., Any]) -> dict[str, str]:
    """What each situation comes to, with tools all at once and one after another; both where they differ."""
    rows: dict[str, str] = {}
    for name, replies in SITUATIONS.items():
        both = [await play(replies, sequential=sequential) for sequential in (False, True)]
        rows[name] = " / ".join(dict.fromkeys(both))
    return rows


def look_again() -> dict[str, Any]:
    """What pydantic-ai comes to now, with its version and the day."""
    rows = asyncio.run(_all(theirs))
    return {
        "version": version("pydantic-ai-slim"),
        "seen": datetime.now(UTC).date().isoformat(),
        "rows": rows,
    }


def table(seen: dict[str, Any]) -> str:
    """The table, our column played now and theirs as it was seen."""
    lines = [
        f"| the model says | `step` | pydantic-ai {seen['version']}, its defaults, seen {seen['seen']} |",
        "|---|---|---|",
    ]
    mine = asyncio.run(_all(ours))
    lines += [f"| {name} | {mine[name]} | {seen['rows'][name]} |" for name in SITUATIONS]
    return "\n".join(lines) + "\n"


def page(text: str, seen: dict[str, Any]) -> str:
    """docs/step.md with its table made anew."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{table(seen)}\n{END}{tail}"


def main() -> None:
    try:
        version("pydantic-ai-slim")
    except PackageNotFoundError:
        print("pydantic-ai-slim is not installed; its column stays as it was seen.")
    else:
        seen = look_again()
        if not SEEN.exists() or json.loads(SEEN.read_text("utf-8")) | {"seen": ""} != seen | {"seen": ""}:
            SEEN.write_text(json.dumps(seen, indent=2, ensure_ascii=False) + "\n", "utf-8")
    text = PAGE.read_text("utf-8")
    PAGE.write_text(page(text, json.loads(SEEN.read_text("utf-8"))), "utf-8")


if __name__ == "__main__":
    main()
