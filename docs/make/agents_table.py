"""What works with each agent of others: each is run against a mock provider, and the table in docs/agents.md written.

    python docs/make/agents_table.py [NAME …]

Needs the agents (`handrail agents`) and aimock (`llmock`, npm @copilotkit/aimock) on PATH, and no network. An agent
that is not installed keeps its row.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from handrail import events as ev
from handrail.agents.agent_session import AgentSession
from handrail.agents.registry import known
from handrail.agents.routes import routes
from handrail.policy import Bounds, RecoveryPolicy

PAGE = Path(__file__).parents[1] / "agents.md"
BEGIN = "<!-- agents: made by `python docs/make/agents_table.py` -->"
END = "<!-- end of agents -->"
COLUMNS = ("agent", "first word", "asks, then acts", "bound of 3", "usage limit", "stop", "goes on later")
PATIENCE_S = 90.0

# A call by which each writes a.txt in %s, as its own model would make it; and what its command line needs here.
CALLS = {
    "claude": ("Write", '{"file_path": "%s/a.txt", "content": "hello\\n"}'),
    "codex": (
        "shell_command",
        '{"command": "echo hello > %s/a.txt", "sandbox_permissions": "require_escalated", "justification": "x"}',
    ),
    "gemini": ("write_file", '{"file_path": "%s/a.txt", "content": "hello\\n"}'),
    "opencode": ("write", '{"filePath": "%s/a.txt", "content": "hello\\n"}'),
    "vibe": ("write_file", '{"path": "%s/a.txt", "content": "hello\\n"}'),
}
ARGUMENTS = {"gemini": ("-m", "gemini-2.5-flash")}
LIMIT = "You have hit your usage limit. Try again in ~42 min."


@dataclass
class Bench:
    """One agent with one provider, in a folder of its own."""

    name: str
    folder: Path
    url: str

    def session(self, kept: Path | None = None, **more: Any) -> tuple[AgentSession, list[ev.Event]]:
        work, home = self.folder / "work", self.folder / "home"
        folder = kept or self.folder / uuid4().hex[:8]
        for place in (work, home, folder):
            place.mkdir(exist_ok=True)
        entry = known()[self.name]
        entry = replace(entry, command=(*entry.command, *ARGUMENTS.get(self.name, ())))
        environ = environment(home, self.url)
        session = AgentSession(
            entry,
            cwd=work,
            environ=environ,
            routes=routes(environ),
            id=uuid4().hex[:11],
            folder=folder,
            **more,
        )
        events: list[ev.Event] = []
        session.listen(events.append)
        return session, events


def environment(home: Path, url: str) -> dict[str, str]:
    """A bare environment whose providers are at `url`."""
    config = {"model": "anthropic/claude-sonnet-4-5", "small_model": "anthropic/claude-sonnet-4-5"}
    home.mkdir(exist_ok=True)
    (home / "opencode.json").write_text(
        json.dumps({**config, "autoupdate": False, "permission": {"edit": "ask"}})
    )
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "CODEX_HOME": str(home),
        "OPENCODE_CONFIG": str(home / "opencode.json"),
        "VIBE_HOME": str(home),
        "IS_SANDBOX": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "ANTHROPIC_API_KEY": "sk-ant-test-0123456789",
        "ANTHROPIC_BASE_URL": url,
        "OPENAI_API_KEY": "sk-test-0123456789",
        "OPENAI_BASE_URL": f"{url}/v1",
        "GEMINI_API_KEY": "test-0123456789",
        "GOOGLE_GEMINI_BASE_URL": url,
        "MISTRAL_API_KEY": "test-0123456789",
        "MISTRAL_BASE_URL": f"{url}/v1",
    }


@contextmanager
def provider(name: str, folder: Path) -> Iterator[str]:
    """A mock model that writes a file, loops, meets a limit, stalls, or just talks."""
    tool, arguments = CALLS[name]
    call = {"name": tool, "arguments": arguments % (folder / "work")}
    fixtures = [
        {
            "match": {"userMessage": "meet the limit"},
            "response": {"error": {"message": LIMIT}, "status": 429},
        },
        {"match": {"userMessage": "loop"}, "response": {"content": "Again.", "toolCalls": [call]}},
        {"match": {"userMessage": "write it", "hasToolResult": True}, "response": {"content": "Written."}},
        {"match": {"userMessage": "write it"}, "response": {"content": "I write.", "toolCalls": [call]}},
        {"match": {"userMessage": "stall"}, "latency": 60_000, "response": {"content": "much too late"}},
        {"match": {}, "response": {"content": "Hello."}},
    ]
    script = folder / "fixtures.json"
    script.write_text(json.dumps({"fixtures": fixtures}))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        ["llmock", "-p", str(port), "-f", str(script)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert server.stdout is not None
    while b"listening" not in (line := server.stdout.readline()) and line:
        pass
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


async def talks(bench: Bench) -> str:
    session, events = bench.session()
    began = time.time()
    last = await session.run("say hello")
    first = next((e.at for e in events if isinstance(e, ev.MessageDelta)), None)
    if last.type != "run_finished" or last.outcome != "completed" or first is None:
        return f"no: {_words(last)}"
    return f"{first - began:.1f} s"


async def acts(bench: Bench) -> str:
    session, events = bench.session(attended=True)
    session.listen(lambda e: session.approve(e.id, "once") if isinstance(e, ev.ApprovalRequested) else None)
    last = await session.run("write it")
    asked = sum(isinstance(e, ev.ApprovalRequested) for e in events)
    there = (bench.folder / "work" / "a.txt").exists()
    diff = any(isinstance(e, ev.ToolFinished) and e.diff for e in events)
    if not there or last.type != "run_finished" or last.outcome != "completed":
        return f"no: {_words(last)}"
    return f"{'yes' if asked else 'acts without asking'}{', with its diff' if diff else ''}"


async def bounded(bench: Bench) -> str:
    session, _ = bench.session(approve="all", bounds=Bounds(max_turns=3))
    last = await session.run("loop")
    if last.type == "run_finished" and (last.outcome, last.requests) == ("turn-limit", 3):
        return "exactly"
    return f"no: {_words(last)}"


async def limited(bench: Bench) -> str:
    session, events = bench.session(recovery=RecoveryPolicy(max_wait_s=60.0))
    began = time.time()
    last = await session.run("meet the limit")
    seen = any(isinstance(e, ev.Decided) and e.failure and "42 min" in e.failure.text for e in events)
    if last.type == "run_finished" and last.outcome == "usage-limit" and seen:
        return f"seen after {time.time() - began:.0f} s, words kept"
    return f"no: {_words(last)}"


async def stopped(bench: Bench) -> str:
    session, _ = bench.session()
    running = asyncio.create_task(session.run("stall"))
    while not session.requests and not running.done():  # noqa: ASYNC110  (no events of its session)
        await asyncio.sleep(0.02)
    began = time.time()
    session.stop()
    last = await running
    took = time.time() - began
    return f"{took:.1f} s" if last.type == "run_finished" and last.stopped else f"no: {_words(last)}"


async def resumed(bench: Bench) -> str:
    kept = bench.folder / "kept"
    first, events = bench.session(kept)
    await first.run("say hello")
    second, told = bench.session(kept)
    second.load(events)
    last = await second.resume()
    anew = any(isinstance(e, ev.Notice) and "begins anew" in e.text for e in told)
    if last.type != "run_finished" or last.outcome != "completed":
        return f"no: {_words(last)}"
    return "begins anew" if anew else "its own session"


def _words(last: ev.RunEnded) -> str:
    said = last.outcome if last.type == "run_finished" else "interrupted"
    error = last.error if last.type == "run_finished" else None
    return " ".join(f"{said} {error or ''}".split())[:60].replace("|", "/")


async def row(name: str) -> str:
    """The row of one agent; what fails says why."""
    cells = [f"{known()[name].title} (`{name}`)"]
    with tempfile.TemporaryDirectory() as place, provider(name, Path(place)) as url:
        for probe in (talks, acts, bounded, limited, stopped, resumed):
            try:
                cells.append(await asyncio.wait_for(probe(Bench(name, Path(place), url)), PATIENCE_S))
            except TimeoutError:
                cells.append(f"no: nothing within {PATIENCE_S:.0f} s")
            sys.stdout.write(f"{name}: {probe.__name__}: {cells[-1]}\n")
            sys.stdout.flush()
    return f"| {' | '.join(cells)} |"


def page(rows: Sequence[str]) -> str:
    """docs/agents.md with these rows; the others as they were."""
    text = PAGE.read_text("utf-8")
    head, rest = text.split(BEGIN)
    old, tail = rest.split(END)
    fresh = {match[1]: line for line in rows if (match := re.search(r"\(`(\w+)`\)", line))}
    before = {match[1]: line for line in old.splitlines() if (match := re.search(r"\(`(\w+)`\)", line))}
    merged = before | fresh
    lines = [f"| {' | '.join(COLUMNS)} |", "|" + " --- |" * len(COLUMNS)]
    for name, entry in known().items():
        lines.append(merged.get(name, f"| {entry.title} (`{name}`) | not tried |{' |' * (len(COLUMNS) - 2)}"))
    table = "\n".join(lines)
    return f"{head}{BEGIN}\n\n{table}\n\n{END}{tail}"


async def main(names: Sequence[str]) -> None:
    rows = [await row(name) for name in names]
    PAGE.write_text(page(rows), "utf-8")
    sys.stdout.write(f"wrote {PAGE.name}\n")


if __name__ == "__main__":
    asyncio.run(
        main(sys.argv[1:] or [name for name, entry in known().items() if entry.path and name in CALLS])
    )
