"""`handrail gateway`: bounds, limits and a bill for any program that asks a model."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from handrail.errors import ConfigError
from handrail_tui.commands._options import Duration

if TYPE_CHECKING:
    from handrail.agents.gateway import Gateway
    from handrail.agents.gateway_session import GatewaySession
    from handrail.loop.context import RunContext
    from handrail.session.writer import JournalWriter
    from handrail_tui.lines.json_lines import Out


@click.command(context_settings={"ignore_unknown_options": False})
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--exec", "start", is_flag=True, help="Run COMMAND with its providers led through the gateway.")
@click.option("--max-turns", type=int, metavar="N", help="Requests at most (default 50).")
@click.option("--deadline", type=Duration(), metavar="30m", help="Wall clock at most, waits not counted.")
@click.option("--max-total-tokens", type=int, metavar="N", help="Tokens of all requests at most.")
@click.option("--max-cost", type=float, metavar="USD", help="Dollars at most; needs known prices.")
@click.option("--hold-keys", is_flag=True, help="Keep the keys here: the program gets none.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Default: one that is free."
)
@click.option("--cwd", default=".", metavar="DIR", help="The working folder (default: here).")
@click.option(
    "--quiet", "-q", is_flag=True, help="Nothing but the bill, for programs that draw on the screen."
)
@click.option(
    "--json", "as_json", is_flag=True, help="Events as JSON on stdout; the program's output on stderr."
)
def gateway(
    command: tuple[str, ...],
    start: bool,
    max_turns: int | None,
    deadline: float | None,
    max_total_tokens: int | None,
    max_cost: float | None,
    hold_keys: bool,
    port: int,
    cwd: str,
    quiet: bool,
    as_json: bool,
) -> int:
    """Bounds, limits and a bill for any program that asks a model.

    Requests go to the provider as they are and replies come back unchanged. A bound refuses the next request with an
    error that clients do not retry; a usage limit is counted down. Lines go to stderr: the program's output stays its
    own, and so does its exit code. Without --exec the gateway serves until Ctrl-C and prints what to set.

    \b
    handrail gateway --exec -- python my_agent.py
    handrail gateway --max-turns 20 --max-cost 0.50 --exec -- python my_agent.py
    handrail gateway --hold-keys --exec -- claude -p "fix the flaky test"
    handrail gateway --json --exec -- python my_agent.py | jq -r .type
    """
    if command and not start:
        raise click.UsageError(
            f"Write --exec before the program: handrail gateway --exec -- {shlex.join(command)}"
        )
    if start and not command:
        raise click.UsageError("--exec needs a program: handrail gateway --exec -- python my_agent.py")
    folder = Path(cwd)
    if not folder.is_dir():
        raise click.BadParameter(f"'{cwd}' is no folder.", param_hint="'--cwd'")
    bounds = {
        "max_turns": max_turns,
        "deadline_s": deadline,
        "max_total_tokens": max_total_tokens,
        "max_cost": max_cost,
    }
    said = {name: value for name, value in bounds.items() if value is not None}
    stream: TextIO = sys.stdout if as_json else sys.stderr
    with _opened(folder.resolve(), said, hold_keys, command) as opened:
        return asyncio.run(_serve(opened, command, port, stream, as_json=as_json, quiet=quiet))


@dataclass(slots=True)
class _Opened:
    """A session of the gateway, and where it is kept."""

    session: GatewaySession
    context: RunContext
    writer: JournalWriter
    cwd: Path

    def __enter__(self) -> _Opened:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        """Let the journal go; of what could not even begin nothing is kept."""
        from handrail.session.store import Store

        self.writer.close()
        if kind is ConfigError:
            Store().delete(self.writer.journal.session)


def _opened(cwd: Path, bounds: dict[str, float], hold_keys: bool, command: tuple[str, ...]) -> _Opened:
    """Raises ConfigError, before anything is started."""
    from handrail import settings
    from handrail.agents.gateway_session import GatewaySession
    from handrail.agents.program import emitter
    from handrail.agents.routes import routes
    from handrail.clock import RealClock
    from handrail.loop.context import RunContext
    from handrail.mask import Masker, key_values
    from handrail.providers import catalog
    from handrail.session.spec import SessionSpec
    from handrail_tui.sessions.prepare import new_journal

    chosen = settings.load(cwd, flags={"bounds": bounds} if bounds else {}).settings
    known = routes(os.environ, chosen.providers, hold_keys=hold_keys)
    clock = RealClock()
    writer = new_journal(clock, SessionSpec(cwd=str(cwd), command=command))
    names = catalog.key_variables(chosen.providers)
    held = [route.key for route in known.values() if route.key is not None]
    context = RunContext(clock, writer, Masker([*key_values(os.environ, names), *held]))
    session = GatewaySession(
        writer.journal.session,
        clock=clock,
        routes=known,
        bounds=chosen.bounds,
        policy=chosen.recovery,
        emit=emitter(context),
        model_info=lambda name: catalog.model_info(name, chosen.models),
    )
    return _Opened(session, context, writer, cwd)


async def _serve(
    opened: _Opened, command: tuple[str, ...], port: int, stream: TextIO, *, as_json: bool, quiet: bool
) -> int:
    from handrail.agents.gateway import Gateway
    from handrail.agents.program import ProgramRun
    from handrail_tui.lines.json_lines import Out
    from handrail_tui.sessions import signals
    from handrail_tui.sessions.headless import OutputMode

    out = Out(stream)
    if not quiet or as_json:
        opened.context.listen(OutputMode(as_json, stream, asks=False).listener(out))
    server = Gateway()
    try:
        await server.start(port)
    except OSError as error:
        raise ConfigError(
            f"port {port} cannot be listened on: {error.strerror}. Choose another --port."
        ) from None
    async with server:
        if not command:
            return await _until_stopped(opened, server, out, as_json=as_json)
        run = ProgramRun(
            command, opened.session, opened.context, opened.cwd, shares_terminal=sys.stdin.isatty()
        )
        with signals.handled(run):
            code, _ = await run.run(server, os.environ, stdout=sys.stderr.fileno() if as_json else None)
    if not as_json:
        _bill(opened.session, out)
    return code


async def _until_stopped(opened: _Opened, server: Gateway, out: Out, *, as_json: bool) -> int:
    """Serve anybody who has the address, until a signal ends it."""
    from handrail_tui.lines import exit_codes
    from handrail_tui.sessions import signals

    session, ended = opened.session, asyncio.get_running_loop().create_future()

    def end(name: str) -> None:
        if not ended.done():
            ended.set_result(name)

    server.add(session)
    opened.context.emit(session.started(cwd=str(opened.cwd)))
    if not as_json:
        for name, value in server.environ(session, {}).items():
            click.echo(f"export {name}={shlex.quote(value)}")
    calls = {name: lambda name=name: end(name) for name in ("SIGINT", "SIGTERM", "SIGHUP")}
    signals.listen(calls)
    try:
        name = await ended
    finally:
        signals.ignore(calls)
    await session.close()
    stopped = name == "SIGINT"
    opened.context.emit(session.finished("cancelled", stopped=True) if stopped else session.interrupted(name))
    await opened.context.commit()
    if not as_json:
        _bill(session, out)
    return exit_codes.CANCELLED if stopped else exit_codes.of_signal(name)


def _bill(session: GatewaySession, out: Out) -> None:
    """What was asked of each model, and what it cost."""
    from handrail_tui.view.text import count, money, one_line, plural

    for name, row in sorted(session.bill.items()):
        used = row.usage
        cost = "price not known" if row.cost is None else money(row.cost)
        cached = f", {count(used.cache_read)} from a cache" if used.cache_read else ""
        out.line(
            f"bill: {one_line(name)}: {plural(row.requests, 'request')}, {count(used.context)} tokens in{cached},"
            f" {count(used.output)} out, {cost}"
        )
    if not session.bill:
        out.line("bill: no model was asked")
    if session.refused:
        out.line(f"bill: {plural(session.refused, 'request')} refused here, at no cost")
