"""`handrail doctor`: what works here, and how to fix the rest. It never shows a key."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, Literal

import click
import platformdirs

from handrail import __version__, settings, trust
from handrail.errors import ConfigError
from handrail.toml import short_path
from handrail_tui.sessions.model import NoModel, resolve_model
from handrail_tui.sessions.servers import known_servers
from handrail_tui.view.text import clean_for_terminal

_WORDS: Final = {"ok": "ok", "hint": "note", "bad": "ERROR"}
_STYLES: Final = {"ok": "green", "hint": "yellow", "bad": "red"}


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check. `hint`: could be better; `bad`: something does not work."""

    state: Literal["ok", "hint", "bad"]
    what: str
    words: str


@click.command()
def doctor() -> int:
    """Check versions, settings, keys (never shown), servers, terminal and folders, and say how to fix problems.

    Exits with 1 when something keeps Handrail from working.

    \b
    handrail doctor
    handrail doctor | grep -v ^ok
    """
    findings = [*_versions(), *_settings(), *_terminal(), *_folders(), *_programs(), *_agents()]
    for finding in findings:
        word = click.style(f"{_WORDS[finding.state]:<8}", fg=_STYLES[finding.state])
        click.echo(f"{word} {finding.what:<10} {clean_for_terminal(finding.words)}")
    return 1 if any(finding.state == "bad" for finding in findings) else 0


def _versions() -> Iterator[CheckResult]:
    parts = [f"handrail {__version__}", f"Python {platform.python_version()}"]
    for name in ("textual", "pydantic", "httpx"):
        try:
            parts.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            yield CheckResult("bad", "versions", f"{name} is not installed: install Handrail again with pip")
    yield CheckResult("ok", "versions", f"{', '.join(parts)}, {platform.system()} {platform.machine()}")


def _settings() -> Iterator[CheckResult]:
    """The settings, and what depends on them: model, keys, servers, theme."""
    cwd = Path.cwd()
    try:
        loaded = settings.load(cwd)
    except ConfigError as error:
        for line in str(error).splitlines():
            yield CheckResult("bad", "settings", f"{line} (handrail config edit)")
        loaded = settings.LoadedSettings(settings.Settings())
    else:
        places = ", ".join(source.name for source in loaded.sources) or "defaults only"
        yield CheckResult("ok", "settings", f"{short_path(settings.user_file())}; sources: {places}")
    if loaded.held_back and not trust.is_refused(trust.project_root(cwd)):
        keys = ", ".join(loaded.held_back)
        yield CheckResult(
            "hint", "trust", f"ignoring the project's {keys} until you trust it: handrail config trust"
        )
    yield from _model(loaded.settings)
    yield from _keys(loaded.settings)
    yield from _servers(loaded.settings)
    yield from _mcp_servers(loaded.settings, cwd)
    yield from _local_models()
    yield from _theme(loaded.settings)
    yield from _sandbox(loaded.settings)


def _model(chosen: settings.Settings) -> Iterator[CheckResult]:
    try:
        found = resolve_model(chosen)
    except NoModel:
        yield CheckResult(
            "hint", "model", "none set up: set a key, or `model` in the settings (see handrail run)"
        )
        return
    except ConfigError as error:
        yield CheckResult("bad", "model", str(error))
        return
    key = f"key from {found.key_source}" if found.key_source else "no key"
    where = found.base_url or "on this machine"
    yield CheckResult("ok", "model", f"{found.model.name}, {found.api}, {where}, {key}")
    if found.model.price is None and not found.local:
        yield CheckResult(
            "hint",
            "price",
            f"unknown for {found.model.name}, so costs are not tracked; set it under [models]",
        )


def _keys(chosen: settings.Settings) -> Iterator[CheckResult]:
    from handrail.providers import catalog

    missing = []
    for entry in catalog.providers(chosen.providers).values():
        present = [name for name in entry.keys if os.environ.get(name, "").strip()]
        if entry.key is not None:
            present.append("the settings")
        if present:
            yield CheckResult("ok", "key", f"{entry.name}: {', '.join(present)}")
        elif entry.keys and not entry.local:
            missing.append(entry.keys[0])
    if missing:
        yield CheckResult("hint", "key", f"not set: {', '.join(missing)}")


def _servers(chosen: settings.Settings) -> Iterator[CheckResult]:
    from handrail.providers import catalog

    silent = []
    for server in asyncio.run(catalog.list_local(list(catalog.providers(chosen.providers).values()))):
        if server.problem is None:
            some = ", ".join(server.models[:3]) + (" …" if len(server.models) > 3 else "")
            yield CheckResult("ok", "server", f"{server.base_url}: {some or 'running, no model loaded'}")
        else:
            silent.append(f"{server.provider} ({server.base_url})")
    if silent:
        yield CheckResult("hint", "server", f"not running: {', '.join(silent)}")


def _mcp_servers(chosen: settings.Settings, cwd: Path) -> Iterator[CheckResult]:
    """A row for each MCP server: started, looked at and ended."""
    trusted = trust.is_trusted(trust.project_root(cwd), also=chosen.trusted)
    servers = {n: s for n, s in known_servers(chosen, cwd, trusted=trusted).items() if s.enabled}
    if not servers:
        return
    from handrail.mcp import Servers
    from handrail.tools.source import ServerStatus

    async def look() -> Sequence[ServerStatus]:
        session = Servers(servers, cwd=cwd)
        session.start()
        try:
            await session.settle(patiently=True)
            return session.statuses()
        finally:
            await session.close()

    for status in asyncio.run(look()):
        if status.state != "ready":
            yield CheckResult("bad", "mcp", f"{status.name}: {status.why} (handrail mcp test {status.name})")
            continue
        words = f"{status.name}: {len(status.tools)} tools, {status.version}, protocol {status.protocol}"
        yield CheckResult("ok", "mcp", words)
        for name, why in status.left_out:
            yield CheckResult("hint", "mcp", f"{status.name}: the tool {name} is left out: {why}")


def _local_models() -> Iterator[CheckResult]:
    from handrail.providers import local_models

    names = ", ".join(f"local/{name}" for name in local_models.local_models())
    if names and local_models.server_installed():
        yield CheckResult("ok", "local", names)
    elif names:
        yield CheckResult("hint", "local", f"{names}: to run them, {local_models.INSTALL_SERVER}")
    else:
        yield CheckResult("hint", "local", "no local model; for a small one: handrail models get smollm2")


def _theme(chosen: settings.Settings) -> Iterator[CheckResult]:
    from handrail_tui.widgets import theming

    themes = theming.Themes(settings.user_file().parent / "themes")
    for problem in themes.poll().problems:
        yield CheckResult("hint", "theme", problem)
    name = chosen.theme or theming.DEFAULT
    if name in themes.sources:
        yield CheckResult("ok", "theme", name)
    else:
        yield CheckResult(
            "hint", "theme", f"'{name}' not found, using {theming.DEFAULT}; handrail themes lists them"
        )


def _terminal() -> Iterator[CheckResult]:
    if not sys.stdout.isatty():
        yield CheckResult("hint", "terminal", "none: runs print lines; use --json in scripts")
        return
    size = shutil.get_terminal_size()
    state: Literal["ok", "hint"] = "ok" if size.columns >= 60 and size.lines >= 20 else "hint"
    small = "" if state == "ok" else ": small; 80x24 or more shows everything"
    yield CheckResult(
        state, "terminal", f"{os.environ.get('TERM', 'TERM not set')}, {size.columns}x{size.lines}{small}"
    )
    yield _colors()
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    if encoding == "utf8":
        yield CheckResult("ok", "encoding", "UTF-8")
    else:
        yield CheckResult(
            "hint", "encoding", f"{encoding or 'unknown'}: set LANG to a UTF-8 locale, such as C.UTF-8"
        )
    if os.environ.get("TMUX"):
        yield CheckResult("hint", "tmux", "for notifications, in tmux.conf: set -g allow-passthrough on")
        yield CheckResult("hint", "tmux", "for colours, in tmux.conf: set -g default-terminal tmux-256color")


def _colors() -> CheckResult:
    if os.environ.get("NO_COLOR"):
        return CheckResult("ok", "colours", "off (NO_COLOR is set)")
    if os.environ.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return CheckResult("ok", "colours", "24 bit")
    if "256" in os.environ.get("TERM", ""):
        return CheckResult("ok", "colours", "256; for more, if supported: export COLORTERM=truecolor")
    return CheckResult(
        "hint", "colours", '16; export COLORTERM=truecolor if supported, or set theme = "ansi"'
    )


def _folders() -> Iterator[CheckResult]:
    for folder in (
        settings.user_file().parent,
        platformdirs.user_state_path("handrail", appauthor=False),
        platformdirs.user_log_path("handrail", appauthor=False),
    ):
        there = next(place for place in (folder, *folder.parents) if place.exists())
        try:
            with tempfile.TemporaryFile(dir=there):
                yield CheckResult("ok", "folder", f"{short_path(folder)} is writable")
        except OSError as error:
            hint = f"{short_path(there)} is not writable ({error.strerror}): check its permissions"
            yield CheckResult("bad", "folder", hint)


def _sandbox(chosen: settings.Settings) -> Iterator[CheckResult]:
    from handrail.tools.sandbox import UNPROTECTED, problem_of

    problem, mode = problem_of(), chosen.sandbox or "off"
    if problem is not None:
        state: Literal["bad", "hint"] = "hint" if mode == "off" else "bad"
        yield CheckResult(state, "sandbox", f"{problem}; without one, {UNPROTECTED}")
    elif mode == "off":
        yield CheckResult("hint", "sandbox", f"available, and off: {UNPROTECTED}; use --sandbox")
    else:
        yield CheckResult("ok", "sandbox", "on" if mode == "on" else "on, with a network")


def _programs() -> Iterator[CheckResult]:
    for name, use in (
        ("rg", "install ripgrep for faster grep and find"),
        ("node", "only needed for tests with third-party servers"),
    ):
        where = shutil.which(name)
        yield CheckResult("ok", name, where) if where else CheckResult("hint", name, f"not found; {use}")


def _agents() -> Iterator[CheckResult]:
    """The agents of others."""
    from handrail.agents.registry import known
    from handrail_tui.commands.agents import described

    for entry in known().values():
        yield CheckResult("ok" if entry.path else "hint", entry.name, described(entry))
