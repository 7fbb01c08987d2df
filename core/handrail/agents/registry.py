"""Which agents of others are known, which are installed, and how each is started (agents.toml)."""

from __future__ import annotations

import shlex
import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from handrail.errors import ConfigError, did_you_mean
from handrail.mask import is_key_name

_BARE: Final = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_*", "TZ", "TMPDIR", "TEMP", "TMP", "TERM"),
    *("XDG_*", "SSH_AUTH_SOCK", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "SSL_CERT_*"),
    *(
        "NODE_EXTRA_CA_CERTS",
        "VIRTUAL_ENV",
        "SYSTEMROOT",
        "APPDATA",
        "LOCALAPPDATA",
        "USERPROFILE",
        "PATHEXT",
    ),
)
"""Variables that every agent gets; what else is in our environment is nothing to it."""


@dataclass(frozen=True, slots=True)
class AgentEntry:
    """One agent (see agents.toml for the fields)."""

    name: str
    command: tuple[str, ...]
    title: str = ""
    install: str = ""
    provider: str | None = None
    keys: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    gateway_arguments: tuple[str, ...] = ()
    gateway_environment: Mapping[str, str] = field(default_factory=dict)
    gateway_needs: tuple[str, ...] = ()
    mode: str | None = None
    authenticate: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def path(self) -> str | None:
        """Where the program is, None when it is not installed."""
        return shutil.which(self.command[0])

    def behind_gateway(self, environ: Mapping[str, str]) -> bool:
        """Whether its requests can be led through the gateway."""
        needs = self.gateway_needs
        return self.provider is not None and (not needs or any(environ.get(name) for name in needs))

    def environ(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Its environment: a bare one, its own variables, its own keys and nobody else's."""
        wanted = (*_BARE, *self.variables)

        def passes(name: str) -> bool:
            upper = name.upper()
            if is_key_name(upper):
                return upper in self.keys
            return any(fnmatchcase(upper, pattern) for pattern in wanted)

        return {n: v for n, v in environ.items() if passes(n)} | dict(self.environment)


@cache
def known() -> Mapping[str, AgentEntry]:
    """The agents of the table, by name."""
    text = files("handrail.agents").joinpath("agents.toml").read_text("utf-8")
    rows: dict[str, dict[str, Any]] = tomllib.loads(text)["agents"]
    return {
        name: _entry(name, {k: tuple(v) if isinstance(v, list) else v for k, v in row.items()})
        for name, row in rows.items()
    }


def find(name: str) -> AgentEntry:
    """The agent of that name, or a command that speaks ACP; one that starts a known agent is treated as that. Raises
    ConfigError when it is not there."""
    entry = known().get(name)
    if entry is None:
        try:
            command = tuple(shlex.split(name))
        except ValueError:
            command = ()
        if not command or shutil.which(command[0]) is None:
            raise ConfigError(
                f"--agent {name}: there is no agent and no program of that name.{did_you_mean(name, known())}"
                " `handrail agents` lists what is installed."
            )
        program = Path(command[0]).name
        of_table = next((row for row in known().values() if row.command[0] == program), None)
        return replace(of_table, command=command) if of_table else AgentEntry(program, command)
    if entry.path is None:
        raise ConfigError(
            f"--agent {name}: {entry.title} is not installed ({entry.command[0]}). Get it with: {entry.install}"
        )
    return entry


def _entry(name: str, row: dict[str, Any]) -> AgentEntry:
    return AgentEntry(name, **row)
