"""`handrail mcp`: the MCP servers whose tools a run may use."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from pydantic import ValidationError

from handrail import settings, trust
from handrail.errors import ConfigError, did_you_mean
from handrail.server_files import found_elsewhere, read_server_file
from handrail.server_settings import ServerSettings, is_server_name
from handrail.toml import short_path
from handrail.tools.source import own_name
from handrail_tui.commands._options import APPROVE_MODES
from handrail_tui.sessions.servers import known_servers
from handrail_tui.view.text import clean_for_terminal, one_line

if TYPE_CHECKING:
    from handrail.tools.base import Tool
    from handrail.tools.source import ServerStatus

_LOGIN_S = 300.0
"""Seconds that a person has to sign in."""


@click.group(invoke_without_command=True)
@click.pass_context
def mcp(ctx: click.Context) -> Any:
    """MCP servers: other people's tools for your runs.

    \b
    handrail mcp                                        the servers you have
    handrail mcp add git -- uvx mcp-server-git          add one that is a command
    handrail mcp add docs --url https://example.com/mcp add one that is an address
    handrail mcp test git                               start it, and show what it offers
    handrail mcp import                                 take over those of other programs
    handrail run --mcp git "what changed last week?"    use only this one
    """
    return ctx.invoke(list_servers) if ctx.invoked_subcommand is None else None


@mcp.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def list_servers(as_json: bool) -> None:
    """The servers of your settings and of this project. Nothing is started.

    \b
    handrail mcp list
    """
    known = _known()
    if as_json:
        rows = [
            {"name": n, "where": s.where, "enabled": s.enabled, "trust": s.trust} for n, s in known.items()
        ]
        click.echo(json.dumps(rows, ensure_ascii=False))
        return
    if not known:
        click.echo("No MCP server is set up. Add one: handrail mcp add git -- uvx mcp-server-git")
    width = max((len(name) for name in known), default=0)
    for name, server in known.items():
        notes = [word for word, on in (("off", not server.enabled), ("trusted", server.trust)) if on]
        end = f"  ({', '.join(notes)})" if notes else ""
        click.echo(clean_for_terminal(f"{name:<{width}}  {one_line(server.where, 200)}{end}"))


@mcp.command()
@click.argument("name")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--url", help="The address of a server over HTTP, instead of a command.")
@click.option("--env", "env", multiple=True, metavar="NAME=VALUE", help="A variable for the command.")
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="A header for the address.")
@click.option("--cwd", help="The folder that the command starts in (default: the run's).")
@click.option("--tools", metavar="NAME,…", help="Offer only these of its tools; * and ? work.")
@click.option("--approve", type=APPROVE_MODES, help="The approval mode for its tools.")
@click.option("--trust", is_flag=True, help="Believe what it says of its tools, such as that one only reads.")
def add(
    name: str,
    command: tuple[str, ...],
    url: str | None,
    env: tuple[str, ...],
    headers: tuple[str, ...],
    cwd: str | None,
    tools: str | None,
    approve: str | None,
    trust: bool,
) -> None:
    """Add a server to your settings. The command comes after --.

    \b
    handrail mcp add git -- uvx mcp-server-git
    handrail mcp add files -- npx -y @modelcontextprotocol/server-filesystem .
    handrail mcp add docs --url https://example.com/mcp --header "Authorization=Bearer …"
    """
    given: dict[str, Any] = {
        "command": command[0] if command else None,
        "args": list(command[1:]),
        "env": _pairs(env, "--env"),
        "cwd": cwd,
        "url": url,
        "headers": _pairs(headers, "--header"),
        "tools": [t.strip() for t in tools.split(",") if t.strip()] if tools is not None else None,
        "approve": approve,
        "trust": trust,
    }
    try:
        server = ServerSettings.model_validate(
            {k: v for k, v in given.items() if v not in (None, [], {}, False)}
        )
    except ValidationError as error:
        message = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise ConfigError(
            f"{message}: handrail mcp add NAME -- COMMAND, or handrail mcp add NAME --url URL."
        ) from None
    _write({name: server})
    click.echo(
        clean_for_terminal(
            f"Added {name} to {short_path(settings.user_file())}. Try it: handrail mcp test {name}"
        )
    )


@mcp.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def test(name: str, as_json: bool) -> int:
    """Start a server and show what it offers. Exits with 1 when it does not work.

    \b
    handrail mcp test git
    """
    from handrail.mcp import Servers

    server = _one(name).model_copy(update={"enabled": True})

    async def look() -> ServerStatus:
        servers = Servers({name: server}, cwd=Path.cwd())
        servers.start()
        try:
            await servers.settle(patiently=True)
            return servers.statuses()[0]
        finally:
            await servers.close()

    status = asyncio.run(look())
    if as_json:
        tools = [{"name": own_name(t.name), "as": t.name, "effect": t.effect} for t in status.tools]
        said = {
            "name": name,
            "state": status.state,
            "why": status.why,
            "protocol": status.protocol,
            "tools": tools,
        }
        click.echo(json.dumps(said, ensure_ascii=False))
    else:
        for line in _described(status):
            click.echo(clean_for_terminal(line))
    return 0 if status.state == "ready" else 1


@mcp.command(name="import")
@click.argument("file", required=False, type=click.Path(path_type=Path), metavar="[FILE]")
def import_servers(file: Path | None) -> None:
    """Take over the servers of other programs (Claude, Cursor, VS Code …), or of one FILE of theirs.

    Servers that you have already stay as they are.

    \b
    handrail mcp import
    handrail mcp import ~/.cursor/mcp.json
    """
    files = [file] if file is not None else list(found_elsewhere(Path.home()))
    if not files:
        click.echo("No other program's servers were found. Give a file: handrail mcp import FILE")
    for path in files:
        try:
            found = read_server_file(path, os.environ, Path.cwd())
        except ConfigError as error:
            if file is not None:
                raise
            click.echo(clean_for_terminal(f"skipped: {error}"))
            continue
        have = settings.load(Path.cwd()).settings.mcp
        new = {name: server for name, server in found.servers.items() if name not in have}
        if new:
            _write(new)
        click.echo(clean_for_terminal(f"{short_path(path)}: added {', '.join(new) or 'nothing new'}"))
        for name, why in found.left_out.items():
            click.echo(clean_for_terminal(f"  left out {one_line(name, 60)}: {why}"))


@mcp.command()
@click.argument("name")
def login(name: str) -> int:
    """Sign in to a server that asks for it (OAuth), in the browser.

    \b
    handrail mcp login docs
    """
    server = _one(name)
    url = server.url
    if url is None:
        raise ConfigError(f"{name} is a command, not an address: it needs no login.")
    patient = server.model_copy(update={"enabled": True, "start_timeout": _LOGIN_S})

    async def sign_in() -> ServerStatus:
        from handrail.mcp import Servers
        from handrail.mcp.login import Login

        def show(address: str) -> None:
            click.echo(clean_for_terminal(f"Sign in here: {address}"))
            click.launch(address)

        servers, one = Servers({name: patient}, cwd=Path.cwd()), Login(url, show)
        try:
            servers.server(name).auth = await one.auth()
            servers.start()
            await servers.settle(patiently=True)
            return servers.statuses()[0]
        finally:
            one.close()
            await servers.close()

    status = asyncio.run(sign_in())
    words = "you are signed in" if status.state == "ready" else f"not signed in: {status.why}"
    click.echo(clean_for_terminal(f"{name}: {words}"))
    return 0 if status.state == "ready" else 1


def _known() -> dict[str, ServerSettings]:
    cwd = Path.cwd()
    chosen = settings.load(cwd).settings
    return known_servers(chosen, cwd, trusted=trust.is_trusted(trust.project_root(cwd), also=chosen.trusted))


def _one(name: str) -> ServerSettings:
    known = _known()
    if name not in known:
        raise ConfigError(
            f"there is no MCP server {name!r}.{did_you_mean(name, known)} `handrail mcp list` shows them."
        )
    return known[name]


def _described(status: ServerStatus) -> Iterator[str]:
    head = " · ".join(
        filter(None, (status.state, status.version, status.protocol and f"protocol {status.protocol}"))
    )
    yield f"{status.name}: {head}"
    if status.why:
        yield f"  {status.why}"
    for tool in status.tools:
        yield f"  {own_name(tool.name):<28} {_effect(tool):<12} {one_line(tool.description, 90)}"
    for name, why in status.left_out:
        yield f"  {name:<28} left out     {why}"
    for words, names in (("prompts", status.prompts), ("resources", status.resources)):
        if names:
            yield f"  {words}: {one_line(', '.join(names), 200)}"


def _effect(tool: Tool) -> str:
    if tool.effect == "read" or tool.approve == "all":
        return "does not ask"
    return "asks first"


def _pairs(given: tuple[str, ...], option: str) -> dict[str, str]:
    pairs = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name.strip():
            raise click.UsageError(f"{option} takes NAME=VALUE.")
        pairs[name.strip()] = value
    return pairs


def _write(servers: Mapping[str, ServerSettings]) -> None:
    """Append the servers to the user's file. Raises ConfigError; the file is left as it was."""
    file = settings.user_file()
    have = settings.load(Path.cwd()).settings.mcp
    for name in servers:
        if not is_server_name(name):
            raise ConfigError(
                f"{name!r} is no name for a server: letters, digits, - and single _, at most 32."
            )
        if name in have:
            raise ConfigError(f"there is a server {name!r} already. Change it: handrail config edit")
    text = "".join(f"\n{table}" for name, server in servers.items() for table in _tables(name, server))
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "a", encoding="utf-8") as opened:
            opened.write(text)
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}. Check its permissions.") from error


def _tables(name: str, server: ServerSettings) -> Iterator[str]:
    """The entry as TOML: what differs from the defaults."""
    said = server.model_dump(mode="json", exclude_defaults=True)
    inner = {key: said.pop(key) for key in ("env", "headers") if key in said}
    yield f"[mcp.{name}]\n" + "".join(f"{key} = {_toml(value)}\n" for key, value in said.items())
    for key, table in inner.items():
        yield f"[mcp.{name}.{key}]\n" + "".join(f"{_toml(k)} = {_toml(v)}\n" for k, v in table.items())


def _toml(value: Any) -> str:
    """JSON's texts, numbers, booleans and lists are TOML's too; DEL alone must be escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
