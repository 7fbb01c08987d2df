"""The client that the protocol's conformance suite drives: our servers, against the address that it gives.

    npx @modelcontextprotocol/conformance client --command "python tests/support/mcp_conformance.py" --suite all

It lists the tools and calls each of them, answers a form with its defaults, and signs in where it is asked to.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import threading
import urllib.request
from pathlib import Path
from typing import Any

from handrail.clock import RealClock
from handrail.forms import check_values
from handrail.mcp import Servers
from handrail.mcp.login import Login
from handrail.messages import ToolCall
from handrail.server_settings import ServerSettings
from handrail.tools.base import Form, FormAnswer, ToolContext, ToolError

ARGUMENTS: dict[str, dict[str, Any]] = {"add_numbers": {"a": 5, "b": 3}}


def say(*parts: object) -> None:
    sys.stdout.write(" ".join(map(str, parts)) + "\n")


async def accept(form: Form) -> FormAnswer:
    """What a person does who only presses enter."""
    return FormAnswer("accept", check_values(form.fields, {}))


def visit(address: str) -> None:
    """A browser in which the person is signed in already: it follows the redirect back to us."""
    threading.Thread(target=lambda: urllib.request.urlopen(address, timeout=10).read(), daemon=True).start()


async def main(url: str, folder: Path) -> int:
    servers = Servers({"suite": ServerSettings(url=url, start_timeout=20)}, cwd=folder)
    login = Login(url, visit, folder)
    servers.server("suite").auth = await login.auth()
    servers.start()
    try:
        await servers.settle(patiently=True)
        [status] = servers.statuses()
        say(status.state, status.why, status.protocol, [tool.name for tool in status.tools])
        servers.take_changes()
        ctx = ToolContext(folder, RealClock(), ask_form=accept)
        for tool in servers.tools.values():
            call = ToolCall("c1", tool.name, ARGUMENTS.get(tool.tool, {}))
            try:
                say(await tool.run(tool.parse(call), ctx))
            except ToolError as error:
                say("error:", error)
        return 0 if status.state == "ready" else 1
    finally:
        login.close()
        await servers.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        sys.exit(asyncio.run(main(sys.argv[-1], Path(name))))
