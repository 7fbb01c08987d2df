"""An MCP server by hand that misbehaves on demand: JSON-RPC over stdin and stdout, the standard library only.

    python nasty_mcp.py [--log FILE] [FLAG…]

Flags choose what it does from the start, the tool called what it does then. Every message that it gets goes to the log.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

FLAGS = [arg for arg in sys.argv[1:] if arg.startswith("--") and arg != "--log"]
LOG = Path(sys.argv[sys.argv.index("--log") + 1]) if "--log" in sys.argv else None
TOOLS = [
    "echo",
    "big",
    "hang",
    "die",
    "ask",
    "ask_and_die",
    "change",
    "garbage",
    "surrogate",
    "steps",
    "env",
    "blocks",
]
VERSION = "2026-07-28"
STATE = f"state of {os.getpid()}"
FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name"},
        "age": {"type": "integer", "minimum": 0},
        "colour": {"type": "string", "enum": ["red", "blue"]},
    },
    "required": ["name"],
}
extra: list[str] = []


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer(id: Any, result: dict[str, Any]) -> None:
    if "--modern" in FLAGS:
        result = {"resultType": "complete", **result}
    send({"id": id, "result": result})


def text(id: Any, words: str) -> None:
    answer(id, {"content": [{"type": "text", "text": words}]})


def tool(name: str) -> dict[str, Any]:
    annotations = {"readOnlyHint": True} if "--read-only" in FLAGS else {}
    schema: Any = {"type": "object", "properties": {"text": {"type": "string"}, "size": {"type": "integer"}}}
    return {"name": name, "description": f"does {name}", "inputSchema": schema, "annotations": annotations}


def tools() -> list[Any]:
    listed: list[Any] = [tool(name) for name in [*TOOLS, *extra]]
    if "--bad-schemas" in FLAGS:
        listed += [
            {"name": "no_type", "inputSchema": {"properties": {"a": {"type": "string"}}}},
            {"name": "no_schema"},
            {"name": "a_list", "inputSchema": {"type": "array"}},
            {"name": "any_of", "inputSchema": {"type": "object", "anyOf": [{"required": ["a"]}]}},
            {"inputSchema": {"type": "object"}},
            "not even an object",
            {"name": "echo", "inputSchema": {"type": "object"}},
            {"name": "odd name / with.dots", "inputSchema": {"type": "object"}},
            {"name": "x" * 100, "inputSchema": {"type": "object"}},
        ]
    return listed


def call(id: Any, name: str, params: dict[str, Any]) -> None:
    arguments = params.get("arguments") or {}
    if name == "echo" or name in extra:
        text(id, arguments.get("text", ""))
    elif name == "big":
        text(id, "0123456789abcde\n" * (arguments["size"] // 16))
    elif name == "die":
        sys.stderr.write("I am gone\n")
        sys.stderr.flush()
        os._exit(3)
    elif name == "ask":
        ask(id, params)
    elif name == "ask_and_die":
        question()
        time.sleep(0.05)
        os._exit(4)
    elif name == "change":
        for number in range(50):
            extra.append(f"new_{number}")
            send({"method": "notifications/tools/list_changed"})
        text(id, "changed")
    elif name == "garbage":
        sys.stdout.write('this is no JSON\n{"neither": "nor"}\n[1, 2\n\x1b[2J\n')
        sys.stderr.write("noise \x1b[31mred\x1b[0m\n" * 100)
        sys.stderr.flush()
        text(id, "after the garbage")
    elif name == "surrogate":
        words = json.dumps(
            {"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": "half \ud83d"}]}}
        )
        sys.stdout.write(words + "\n")
        sys.stdout.flush()
    elif name == "steps":
        for number in range(arguments["size"]):
            time.sleep(0.2)
            token = params["_meta"]["progressToken"]
            send(
                {
                    "method": "notifications/progress",
                    "params": {"progressToken": token, "progress": number + 1},
                }
            )
        text(id, "all steps done")
    elif name == "env":
        text(id, json.dumps(dict(os.environ)))
    elif name == "blocks":
        blocks = [
            {"type": "hologram", "data": 1},
            "bare",
            {"type": "text"},
            {"type": "image", "data": "!", "mimeType": "x"},
        ]
        answer(id, {"content": blocks})


def question() -> None:
    send(
        {
            "id": "q1",
            "method": "elicitation/create",
            "params": {"message": "Who are you?", "requestedSchema": FORM},
        }
    )


def ask(id: Any, params: dict[str, Any]) -> None:
    if "--modern" not in FLAGS:
        question()
        for line in sys.stdin:
            message = json.loads(line)
            note(message)
            if message.get("id") == "q1":
                return text(id, json.dumps(message.get("result")))
        return None
    given = params.get("inputResponses")
    if given is None:
        request = {
            "method": "elicitation/create",
            "params": {"mode": "form", "message": "Who are you?", "requestedSchema": FORM},
        }
        return send(
            {
                "id": id,
                "result": {
                    "resultType": "input_required",
                    "inputRequests": {"who": request},
                    "requestState": STATE,
                },
            }
        )
    if "--forgets" in FLAGS and params.get("requestState") != STATE:
        return send({"id": id, "error": {"code": -32602, "message": "requestState has expired"}})
    return text(id, json.dumps(given["who"]))


def note(message: Any) -> None:
    if LOG is not None:
        with LOG.open("a") as file:
            file.write(json.dumps(message) + "\n")


def handle(message: dict[str, Any]) -> None:
    id, method, params = message.get("id"), message.get("method"), message.get("params") or {}
    capabilities = {"tools": {"listChanged": True}}
    if method == "initialize":
        answer(
            id,
            {
                "protocolVersion": "2025-11-25",
                "capabilities": capabilities,
                "serverInfo": {"name": "nasty", "version": "1"},
                "instructions": "Be careful. " * 400,
            },
        )
    elif method == "server/discover" and "--modern" in FLAGS:
        found = {
            "supportedVersions": [VERSION],
            "capabilities": capabilities,
            "ttlMs": 0,
            "cacheScope": "private",
        }
        answer(id, found)
    elif method == "server/discover" and "--drops-unknown" in FLAGS:
        return
    elif method == "tools/list":
        answer(
            id,
            {"tools": tools(), "ttlMs": 0, "cacheScope": "private"}
            if "--modern" in FLAGS
            else {"tools": tools()},
        )
    elif method == "tools/call":
        call(id, params["name"], params)
    elif id is not None and method is not None:
        send({"id": id, "error": {"code": -32601, "message": f"no {method} here"}})


def main() -> None:
    if "--ignores-term" in FLAGS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
        command = [sys.executable, "-c", stubborn]
        children = [subprocess.Popen(command), subprocess.Popen(command, start_new_session=True)]
        note({"pids": [os.getpid(), *(child.pid for child in children)]})
    if "--noise" in FLAGS:
        sys.stdout.write("Welcome to my server!\n")
        sys.stderr.write("starting\n")
        sys.stderr.flush()
    while "--mute" in FLAGS:
        time.sleep(600)
    for line in sys.stdin:
        message = json.loads(line)
        note(message)
        handle(message)
    while "--ignores-term" in FLAGS:
        time.sleep(600)


main()
