"""`handrail doctor`: what works here, and what to do about the rest. It never shows a key."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, Literal

import click
import platformdirs

from handrail import settings, trust
from handrail._toml import short_path
from handrail._version import __version__
from handrail.errors import ConfigError
from handrail_tui.sessions.model import NoModel, resolve_model
from handrail_tui.view.text import clean_for_terminal

_WORDS: Final = {"ok": "ok", "hint": "could be", "bad": "WRONG"}
_STYLES: Final = {"ok": "green", "hint": "yellow", "bad": "red"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. `hint`: it could be better; `bad`: it keeps something from working."""

    state: Literal["ok", "hint", "bad"]
    what: str
    words: str


@click.command()
def doctor() -> int:
    """Keys (present or not, never shown), servers, terminal, folders, versions: what works and what to do.

    Exits with 1 when something here keeps Handrail from working.

    \b
    handrail doctor
    handrail doctor | grep -v ^ok
    """
    findings = [*_versions(), *_settings(), *_terminal(), *_folders(), *_programs()]
    for finding in findings:
        word = click.style(f"{_WORDS[finding.state]:<8}", fg=_STYLES[finding.state])
        click.echo(f"{word} {finding.what:<10} {clean_for_terminal(finding.words)}")
    return 1 if any(finding.state == "bad" for finding in findings) else 0


def _versions() -> Iterator[Finding]:
    parts = [f"handrail {__version__}", f"Python {platform.python_version()}"]
    for name in ("textual", "pydantic", "httpx"):
        try:
            parts.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            yield Finding("bad", "versions", f"{name} is not installed: install Handrail again with pip")
    yield Finding("ok", "versions", f"{', '.join(parts)}, {platform.system()} {platform.machine()}")


def _settings() -> Iterator[Finding]:
    """The settings, and what depends on them: model, keys, servers, theme."""
    cwd = Path.cwd()
    try:
        loaded = settings.load(cwd)
    except ConfigError as error:
        for line in str(error).splitlines():
            yield Finding("bad", "settings", f"{line} (handrail config edit)")
        loaded = settings.Loaded(settings.Settings())
    else:
        places = ", ".join(source.name for source in loaded.sources) or "nothing is set, all is default"
        yield Finding("ok", "settings", f"{short_path(settings.user_file())}; in force: {places}")
    if loaded.held_back and not trust.is_refused(trust.project_root(cwd)):
        keys = ", ".join(loaded.held_back)
        yield Finding("hint", "trust", f"the project's {keys} is not used; trust it: handrail config trust")
    yield from _model(loaded.settings)
    yield from _keys(loaded.settings)
    yield from _servers(loaded.settings)
    yield from _local_models()
    yield from _theme(loaded.settings)


def _model(chosen: settings.Settings) -> Iterator[Finding]:
    try:
        found = resolve_model(chosen)
    except NoModel:
        yield Finding(
            "hint", "model", "none set up: set a key, or `model` in the settings (see handrail run)"
        )
        return
    except ConfigError as error:
        yield Finding("bad", "model", str(error))
        return
    key = f"key from {found.key_source}" if found.key_source else "without a key"
    where = found.base_url or "on this machine"
    yield Finding("ok", "model", f"{found.model.name}, {found.api}, {where}, {key}")
    if found.model.price is None and not found.local:
        yield Finding(
            "hint",
            "price",
            f"unknown for {found.model.name}: cost is not counted; set its price under [models]",
        )


def _keys(chosen: settings.Settings) -> Iterator[Finding]:
    from handrail.providers import catalog

    missing = []
    for entry in catalog.providers(chosen.providers).values():
        present = [name for name in entry.keys if os.environ.get(name, "").strip()]
        if entry.key is not None:
            present.append("the settings")
        if present:
            yield Finding("ok", "key", f"{entry.name}: {', '.join(present)}")
        elif entry.keys and not entry.local:
            missing.append(entry.keys[0])
    if missing:
        yield Finding("hint", "key", f"not set: {', '.join(missing)}")


def _servers(chosen: settings.Settings) -> Iterator[Finding]:
    from handrail.providers import catalog

    silent = []
    for server in asyncio.run(catalog.list_local(list(catalog.providers(chosen.providers).values()))):
        if server.problem is None:
            some = ", ".join(server.models[:3]) + (" …" if len(server.models) > 3 else "")
            yield Finding("ok", "server", f"{server.base_url}: {some or 'answers, but has no model loaded'}")
        else:
            silent.append(f"{server.provider} ({server.base_url})")
    if silent:
        yield Finding("hint", "server", f"no answer: {', '.join(silent)}")


def _local_models() -> Iterator[Finding]:
    from handrail.providers import local_models

    names = ", ".join(f"local/{name}" for name in local_models.local_models())
    if names and local_models.server_installed():
        yield Finding("ok", "local", names)
    elif names:
        yield Finding("hint", "local", f"{names}: to run them, {local_models.INSTALL_SERVER}")
    else:
        yield Finding("hint", "local", "no model on this machine; a small one: handrail models get smollm2")


def _theme(chosen: settings.Settings) -> Iterator[Finding]:
    from handrail_tui.widgets import theming

    themes = theming.Themes(settings.user_file().parent / "themes")
    for problem in themes.poll().problems:
        yield Finding("hint", "theme", problem)
    name = chosen.theme or theming.DEFAULT
    if name in themes.sources:
        yield Finding("ok", "theme", name)
    else:
        yield Finding("hint", "theme", f"'{name}' is not there, {theming.DEFAULT} is used: handrail themes")


def _terminal() -> Iterator[Finding]:
    if not sys.stdout.isatty():
        yield Finding("hint", "terminal", "none here: runs print lines; --json for scripts")
        return
    size = shutil.get_terminal_size()
    state: Literal["ok", "hint"] = "ok" if size.columns >= 60 and size.lines >= 20 else "hint"
    small = "" if state == "ok" else ": small, 80x24 and more shows everything"
    yield Finding(
        state, "terminal", f"{os.environ.get('TERM', 'TERM is not set')}, {size.columns}x{size.lines}{small}"
    )
    yield _colors()
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    if encoding == "utf8":
        yield Finding("ok", "encoding", "UTF-8")
    else:
        yield Finding(
            "hint", "encoding", f"{encoding or 'unknown'}: set LANG to a UTF-8 locale, such as C.UTF-8"
        )
    if os.environ.get("TMUX"):
        yield Finding("hint", "tmux", "in tmux.conf, for notifications: set -g allow-passthrough on")
        yield Finding("hint", "tmux", "in tmux.conf, for colours: set -g default-terminal tmux-256color")


def _colors() -> Finding:
    if os.environ.get("NO_COLOR"):
        return Finding("ok", "colours", "none, as NO_COLOR says")
    if os.environ.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return Finding("ok", "colours", "24 bit")
    if "256" in os.environ.get("TERM", ""):
        return Finding("ok", "colours", "256; if the terminal can do more: export COLORTERM=truecolor")
    return Finding("hint", "colours", '16: export COLORTERM=truecolor if the terminal can, or theme = "ansi"')


def _folders() -> Iterator[Finding]:
    for folder in (
        settings.user_file().parent,
        platformdirs.user_state_path("handrail", appauthor=False),
        platformdirs.user_log_path("handrail", appauthor=False),
    ):
        there = next(place for place in (folder, *folder.parents) if place.exists())
        try:
            with tempfile.TemporaryFile(dir=there):
                yield Finding("ok", "folder", f"{short_path(folder)} can be written")
        except OSError as error:
            hint = f"{short_path(there)} cannot be written ({error.strerror}): mend its rights"
            yield Finding("bad", "folder", hint)


def _programs() -> Iterator[Finding]:
    for name, use in (
        ("rg", "grep and find fall back to a slower search: install ripgrep"),
        ("node", "only tests with third-party servers need it"),
    ):
        where = shutil.which(name)
        yield Finding("ok", name, where) if where else Finding("hint", name, f"not found; {use}")
