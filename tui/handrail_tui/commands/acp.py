"""`handrail acp`: sessions for an editor that speaks the Agent Client Protocol."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from handrail_tui.commands._options import run_options
from handrail_tui.sessions.options import RunOptions

if TYPE_CHECKING:
    from handrail.events import Event
    from handrail.policy import Approve
    from handrail.session.protocol import SessionProtocol
    from handrail_tui.sessions.prepare import PreparedSession


@click.command()
@run_options
def acp(**given: Any) -> int:
    """Serve sessions to an editor over its pipes (Agent Client Protocol): Zed, JetBrains, neovim, acpx.

    The editor starts this command, shows what happens, asks for approvals and sends prompts. Sessions are stored like
    all others. The options hold for every session that the editor opens.

    \b
    handrail acp --model anthropic/claude-sonnet-4-6
    acpx --agent "handrail acp" exec "what is in this folder?"
    """
    options = RunOptions(**given)
    if options.plain or options.as_json:
        raise click.UsageError("--plain and --json do not apply to acp: an editor reads its output.")
    return asyncio.run(_serve(options))


async def _serve(options: RunOptions) -> int:
    from handrail.agents.acp_server import AcpServer
    from handrail_tui.sessions import signals

    # The protocol has stdout for itself: whatever else is printed goes to stderr.
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=2**20)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, out)
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    server = AcpServer(reader, writer, lambda cwd, id: _open(options, cwd, id))
    serving = asyncio.create_task(server.serve())
    calls = dict.fromkeys(("SIGTERM", "SIGHUP", "SIGINT"), serving.cancel)
    signals.listen(calls)
    try:
        await asyncio.gather(serving, return_exceptions=True)
    finally:
        signals.ignore(calls)
        transport.close()
    return 0


@dataclass(frozen=True, slots=True)
class _Open:
    """A session for the server."""

    prepared: PreparedSession

    @property
    def id(self) -> str:
        return self.prepared.session.id

    @property
    def session(self) -> SessionProtocol:
        return self.prepared.session

    @property
    def past(self) -> Sequence[Event]:
        return self.prepared.past

    @property
    def mode(self) -> Approve:
        return self.prepared.settings.approve or "ask"

    def close(self) -> None:
        self.prepared.close()


def _open(options: RunOptions, cwd: Path, id: str | None) -> _Open:
    """Raises ConfigError."""
    from handrail_tui.sessions.prepare import prepare
    from handrail_tui.sessions.resume import ResumeRequest, resume

    if id is not None:
        return _Open(resume(id, ResumeRequest(wait=True), attended=True))
    return _Open(prepare(replace(options, cwd=str(cwd)), attended=True))
