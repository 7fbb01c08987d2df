"""`ask_human` for agents of others: an MCP server on stdin and stdout that asks the person of the run that started it.

The agent starts it (`python -m handrail.agents.ask_server`); the run behind it listens on a loopback port, whose number
and token stand in the environment. Nothing but the standard library is imported: it must be there at once.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from typing import Any, Final

PORT: Final = "HANDRAIL_ASK_PORT"
TOKEN: Final = "HANDRAIL_ASK_TOKEN"
NAME: Final = "ask_human"
KINDS: Final = (
    "captcha",
    "login",
    "2fa",
    "payment",
    "permission",
    "physical",
    "decision",
    "information",
    "other",
)
TOOL: Final[dict[str, Any]] = {
    "name": NAME,
    "description": (
        "Ask the person for what only a person can do: solve a captcha, log in, confirm a second factor, pay, grant a "
        "permission, do something physical, decide, or tell you what you cannot find out. It returns when they have "
        "answered, which may take long. Do not use it for anything that you can find out or do with your other tools."
    ),
    "inputSchema": {
        "type": "object",
        "required": ["kind", "needed"],
        "properties": {
            "kind": {"type": "string", "enum": list(KINDS), "description": "What sort of step it is."},
            "needed": {
                "type": "string",
                "description": "What the person should do, in one or two sentences.",
            },
            "where": {"type": "string", "description": "Where: a URL or a path. Empty if nowhere special."},
            "tried": {"type": "string", "description": "What you tried before asking. Empty if nothing."},
        },
    },
}


def serve() -> None:
    """Answer requests until stdin ends. A call waits in a thread of its own."""
    lock = threading.Lock()

    def send(message: dict[str, Any]) -> None:
        with lock:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            sys.stdout.flush()

    for line in sys.stdin:
        try:
            message = json.loads(line)
        except ValueError:
            continue
        if not isinstance(message, dict) or "id" not in message or "method" not in message:
            continue
        id, method, params = message["id"], message["method"], message.get("params") or {}
        if method == "initialize":
            version = params.get("protocolVersion", "2025-06-18")
            info = {"name": "handrail", "title": "The person at Handrail", "version": "1"}
            send(
                {
                    "id": id,
                    "result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info},
                }
            )
        elif method == "tools/list":
            send({"id": id, "result": {"tools": [TOOL]}})
        elif method == "tools/call" and params.get("name") == NAME:
            arguments = params.get("arguments") or {}
            threading.Thread(
                target=lambda id=id, arguments=arguments: send({"id": id, "result": _asked(arguments)}),
                daemon=True,
            ).start()
        elif method == "ping":
            send({"id": id, "result": {}})
        else:
            send({"id": id, "error": {"code": -32601, "message": f"there is no {method}"}})


def _asked(arguments: dict[str, Any]) -> dict[str, Any]:
    """Ask, wait for the answer, and give it as the tool's result."""
    asked = {name: str(arguments.get(name) or "") for name in ("kind", "needed", "where", "tried")}
    try:
        with (
            socket.create_connection(("127.0.0.1", int(os.environ[PORT]))) as line,
            line.makefile("rwb") as file,
        ):
            file.write(json.dumps({"token": os.environ[TOKEN], **asked}).encode() + b"\n")
            file.flush()
            answer = json.loads(file.readline())
    except (OSError, ValueError, KeyError):
        answer = {"text": "The run of Handrail that could ask the person has ended.", "error": True}
    content = [{"type": "text", "text": str(answer.get("text"))}]
    return {"content": content, "isError": answer.get("error") is True}


if __name__ == "__main__":
    serve()
