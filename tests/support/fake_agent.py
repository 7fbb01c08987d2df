"""An agent that speaks ACP over its pipes and does what the prompt's first word says. Standard library only."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

FLAGS = frozenset(sys.argv[1:])
SESSION = "sess-1"
lock = threading.Lock()
cancelled = threading.Event()
answers: dict[int, Any] = {}
answered = threading.Condition()
numbers = iter(range(1000, 10_000))
servers: list[dict[str, Any]] = []


def send(message: dict[str, Any]) -> None:
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def update(what: str, /, **more: Any) -> None:
    send(
        {
            "method": "session/update",
            "params": {"sessionId": SESSION, "update": {"sessionUpdate": what, **more}},
        }
    )


def say(text: str, kind: str = "agent_message_chunk") -> None:
    update(kind, content={"type": "text", "text": text})


def ask_permission(call: dict[str, Any]) -> str:
    """The option that was chosen, or `cancelled`."""
    id = next(numbers)
    kinds = (("allow_always", "Always allow writes"), ("allow_once", "Allow"), ("reject_once", "Reject"))
    options = [{"kind": kind, "name": name, "optionId": kind} for kind, name in kinds]
    params = {"sessionId": SESSION, "toolCall": call, "options": options}
    send({"id": id, "method": "session/request_permission", "params": params})
    with answered:
        answered.wait_for(lambda: id in answers)
    outcome = answers[id]["outcome"]
    return str(outcome.get("optionId") or outcome["outcome"])


def edit(name: str, text: str, *, ask: bool = True) -> str:
    """Write a file, after asking. What came of it."""
    path = Path.cwd() / name
    old = path.read_text() if path.exists() else None
    call = {
        "toolCallId": f"call-{name}",
        "title": f"Write {name}",
        "kind": "edit",
        "rawInput": {"path": str(path)},
        "content": [{"type": "diff", "path": str(path), "oldText": old, "newText": text}],
    }
    update("tool_call", status="pending", **call)
    chosen = ask_permission(call) if ask else "allow_once"
    if chosen.startswith("allow"):
        update("tool_call_update", toolCallId=call["toolCallId"], status="in_progress")
        path.write_text(text)
        update("tool_call_update", toolCallId=call["toolCallId"], status="completed", rawOutput="written")
    elif chosen != "cancelled":
        update("tool_call_update", toolCallId=call["toolCallId"], status="failed", rawOutput="rejected")
    return chosen


def ask_model(times: int) -> str:
    """Ask the model that many times; the words of the error that ends it."""
    base = os.environ["ANTHROPIC_BASE_URL"]
    for n in range(times):
        body = json.dumps(
            {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
        ).encode()
        request = urllib.request.Request(f"{base}/v1/messages", body, {"content-type": "application/json"})
        try:
            with urllib.request.urlopen(request) as reply:
                reply.read()
        except urllib.error.HTTPError as error:
            return error.read().decode()
        say(f"request {n + 1}. ")
    return ""


def ask_human() -> str:
    """Call the tool that was handed over."""
    given = servers[0]
    env = {**os.environ, **{v["name"]: v["value"] for v in given["env"]}}
    child = subprocess.Popen(
        [given["command"], *given["args"]], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdin and child.stdout

    def call(id: int, method: str, params: dict[str, Any]) -> Any:
        assert child.stdin and child.stdout
        child.stdin.write(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}) + "\n")
        child.stdin.flush()
        return json.loads(child.stdout.readline())["result"]

    call(1, "initialize", {"protocolVersion": "2025-06-18"})
    (tool,) = call(2, "tools/list", {})["tools"]
    arguments = {"kind": "captcha", "needed": "Solve it.", "where": "https://example.org"}
    text = call(3, "tools/call", {"name": tool["name"], "arguments": arguments})["content"][0]["text"]
    child.stdin.close()
    child.wait()
    return str(text)


def prompt(text: str) -> str:
    """Do it. The stop reason."""
    word, _, rest = text.partition(" ")
    if word == "hello":
        say("Let me think.", "agent_thought_chunk")
        say("Hello, ")
        say("you.")
    elif word == "edit":
        say("I write it.")
        chosen = edit("a.txt", "one\n", ask=rest != "boldly")
        if chosen == "cancelled":
            return "cancelled"
        say(f"It was {chosen}.")
    elif word == "two":
        for n in (1, 2):
            update("tool_call", toolCallId=f"t{n}", title=f"job {n}", kind="execute", status="pending")
        update("tool_call_update", toolCallId="t1", status="in_progress")
        update("tool_call", toolCallId="t3", title="job 3", kind="execute", status="in_progress")
        for n in (2, 1, 3):
            content = [{"type": "content", "content": {"type": "text", "text": f"output {n}"}}]
            update("tool_call_update", toolCallId=f"t{n}", status="completed", content=content)
        say("All done.")
    elif word == "command":
        call = {"toolCallId": "c1", "title": rest, "kind": "execute"}
        update("tool_call", status="in_progress", **call)
        subprocess.run(rest, shell=True, check=False)
        update("tool_call_update", toolCallId="c1", status="completed")
        say("It ran.")
    elif word == "ask":
        say(f"The person said: {ask_human()}")
    elif word == "marked":
        say("I am stuck.\nHUMAN REQUIRED: captcha: solve the puzzle")
    elif word == "model":
        if error := ask_model(int(rest)):
            raise RuntimeError(error)
    elif word == "swallow":
        ask_model(int(rest))
        cancelled.wait(30)
        return "cancelled"
    elif word == "garbage":
        for n in range(500):
            with lock:
                sys.stdout.write(f"this is no message {n}\n")
        sys.stdout.flush()
        time.sleep(30)
    elif word == "dies":
        sys.stderr.write("Segmentation fault, sort of\n")
        sys.stderr.flush()
        os._exit(3)
    elif word == "flood":
        while not cancelled.is_set():
            say("spam ")
        return "cancelled"
    elif word == "stubborn":
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
        say("I never stop.")
        time.sleep(300)
    elif word == "silent":
        cancelled.wait(60)
        return "cancelled"
    elif word == "fails":
        raise RuntimeError(rest)
    else:
        say(f"I heard: {text}")
    return "end_turn"


def run_prompt(id: int, text: str) -> None:
    try:
        stop = prompt(text)
    except RuntimeError as error:
        send(
            {
                "id": id,
                "error": {"code": -32603, "message": "Internal error", "data": {"details": str(error)}},
            }
        )
        return
    send({"id": id, "result": {"stopReason": stop, "usage": {"inputTokens": 7, "outputTokens": 3}}})


def serve() -> None:
    logged_in = "auth" not in FLAGS
    if "stubborn" in FLAGS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    modes = {"currentModeId": "default", "availableModes": [{"id": "default", "name": "Default"}]}
    for line in sys.stdin:
        message = json.loads(line)
        id, method, params = message.get("id"), message.get("method"), message.get("params") or {}
        if method is None:
            with answered:
                answers[id] = message["result"]
                answered.notify_all()
        elif method == "initialize":
            if "banner" in FLAGS:
                sys.stdout.write("Welcome to the agent!\n")
            ways = [{"id": "agent-key", "name": "a key"}]
            abilities = {"loadSession": "no-load" not in FLAGS}
            result = {"protocolVersion": 1, "agentCapabilities": abilities, "authMethods": ways}
            send({"id": id, "result": result})
        elif method == "authenticate":
            logged_in = True
            send({"id": id, "result": {}})
        elif method in ("session/new", "session/load") and not logged_in:
            send({"id": id, "error": {"code": -32000, "message": "Authentication required"}})
        elif method == "session/new":
            servers[:] = params["mcpServers"]
            send({"id": id, "result": {"sessionId": SESSION, "modes": modes}})
        elif method == "session/load":
            servers[:] = params["mcpServers"]
            update("user_message_chunk", content={"type": "text", "text": "what was asked before"})
            say("what I said before")
            send({"id": id, "result": {"modes": modes}})
        elif method == "session/prompt":
            cancelled.clear()
            text = params["prompt"][0]["text"]
            threading.Thread(target=run_prompt, args=(id, text), daemon=True).start()
        elif method == "session/cancel":
            cancelled.set()
        elif id is not None:
            send({"id": id, "error": {"code": -32601, "message": method}})


if __name__ == "__main__":
    serve()
