"""MCP servers as other programs' files name them: Claude's `mcpServers`, VS Code's `servers`.

Values may hold `${VAR}`, `${VAR:-default}`, `${env:VAR}` and `${workspaceFolder}`. An entry that cannot be used is left
out, with the reason; the others count.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from handrail.errors import ConfigError
from handrail.server_settings import ServerSettings, server_name
from handrail.toml import short_path
from handrail.trust import up_to_root

PROJECT_FILES: Final = (".mcp.json", ".vscode/mcp.json")
_LONGEST: Final = 1_000_000
_TABLES: Final = ("mcpServers", "servers")
_VARIABLE: Final = re.compile(r"\$\{(?:(env|input):)?([\w.-]+)(?::-([^}]*))?\}")
_KEYS: Final = ("command", "args", "env", "cwd", "url", "headers")


@dataclass(frozen=True, slots=True)
class ServerFile:
    """The servers of one file. `left_out` says why an entry cannot be used, by its name."""

    path: Path
    servers: Mapping[str, ServerSettings] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)


def project_files(cwd: Path) -> list[Path]:
    """The server files of the project that holds `cwd`: the nearest of each kind."""
    found = []
    for name in PROJECT_FILES:
        path = next((p for d in up_to_root(cwd) if (p := d / name).is_file()), None)
        if path is not None:
            found.append(path)
    return found


def read_server_file(path: Path, env: Mapping[str, str], cwd: Path) -> ServerFile:
    """The servers that a file names. Raises ConfigError when it cannot be read as one."""
    try:
        if path.stat().st_size > _LONGEST:
            raise ConfigError(f"{short_path(path)}: longer than {_LONGEST:,} bytes.")
        data = json.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"{short_path(path)}: cannot be read: {error.strerror or error}.") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{short_path(path)}: is no JSON: {error}.") from None
    table = next(
        (data[key] for key in _TABLES if isinstance(data, dict) and isinstance(data.get(key), dict)), None
    )
    if table is None:
        raise ConfigError(f"{short_path(path)}: names no servers; it needs an object {' or '.join(_TABLES)}.")
    servers: dict[str, ServerSettings] = {}
    left_out: dict[str, str] = {}
    for name, entry in table.items():
        try:
            cleaned = server_name(name)
            if not cleaned or cleaned in servers:
                raise ValueError("its name cannot be used; rename it")
            servers[cleaned] = _server(entry, {**env, "workspaceFolder": str(cwd)})
        except ValueError as error:
            left_out[name] = _words(error)
    return ServerFile(path, servers, left_out)


def _server(entry: Any, variables: Mapping[str, str]) -> ServerSettings:
    if not isinstance(entry, dict):
        raise ValueError("it is no object")
    kind = entry.get("type")
    if kind == "sse":
        raise ValueError("it speaks the old SSE transport; use its streamable HTTP address")
    given = {key: entry[key] for key in _KEYS if entry.get(key) not in (None, [], {}, "")}
    if entry.get("disabled") is True:
        given["enabled"] = False
    return ServerSettings.model_validate(_expanded(given, variables))


def _expanded(value: Any, variables: Mapping[str, str]) -> Any:
    """`value` with its variables replaced. Raises ValueError for one that is not set."""
    if isinstance(value, str):
        return _VARIABLE.sub(lambda found: _value(found, variables), value)
    if isinstance(value, list):
        return [_expanded(each, variables) for each in value]
    if isinstance(value, dict):
        return {key: _expanded(each, variables) for key, each in value.items()}
    return value


def _value(found: re.Match[str], variables: Mapping[str, str]) -> str:
    kind, name, default = found[1], found[2], found[3]
    if kind == "input":
        raise ValueError(f"it asks for {found[0]}; put the value into a variable of the environment")
    value = variables.get(name)
    if value is None and default is None:
        raise ValueError(f"the variable {name} is not set")
    return value if value is not None else default


def _words(error: ValueError) -> str:
    """The reason, without values: they may be secret."""
    if isinstance(error, ValidationError):
        return "; ".join(_one(each) for each in error.errors(include_url=False, include_input=False))
    return str(error)


def _one(error: Any) -> str:
    path = ".".join(str(part) for part in error["loc"])
    message = str(error["msg"]).removeprefix("Value error, ")
    return f"{path}: {message}" if path else message


def found_elsewhere(home: Path) -> Iterator[Path]:
    """Where other programs keep the servers of a person, as far as they are there."""
    for name in (
        ".claude.json",
        "Library/Application Support/Claude/claude_desktop_config.json",
        ".config/Claude/claude_desktop_config.json",
        ".cursor/mcp.json",
        ".codeium/windsurf/mcp_config.json",
        ".config/Code/User/mcp.json",
    ):
        if (path := home / name).is_file():
            yield path
