"""Which MCP servers a run starts: those of the settings, and those that files of a trusted project name."""

from __future__ import annotations

import os
from pathlib import Path

from handrail.errors import ConfigError, did_you_mean
from handrail.server_files import project_files, read_server_file
from handrail.server_settings import ServerSettings
from handrail.settings import Settings
from handrail.toml import short_path
from handrail_tui.lines import faults


def known_servers(chosen: Settings, cwd: Path, *, trusted: bool) -> dict[str, ServerSettings]:
    """All servers by name. The settings win over a file; what is wrong with a file is said on stderr."""
    known: dict[str, ServerSettings] = {}
    for path in project_files(cwd) if trusted else ():
        try:
            found = read_server_file(path, os.environ, cwd)
        except ConfigError as error:
            faults.say(f"note: {error}")
            continue
        for name, why in found.left_out.items():
            faults.say(f"note: {short_path(path)}: the server {name!r} is left out: {why}")
        known = {**found.servers, **known}
    return {**known, **chosen.mcp}


def chosen_servers(chosen: Settings, cwd: Path, *, trusted: bool) -> dict[str, ServerSettings]:
    """The servers to start: those that `servers` names, else all that are enabled. Raises ConfigError."""
    if chosen.servers is not None and not chosen.servers:
        return {}
    known = known_servers(chosen, cwd, trusted=trusted)
    if chosen.servers is None:
        return {name: server for name, server in known.items() if server.enabled}
    for name in chosen.servers:
        if name not in known:
            raise ConfigError(
                f"there is no MCP server {name!r}.{did_you_mean(name, known)} `handrail mcp list` shows them."
            )
    return {name: known[name].model_copy(update={"enabled": True}) for name in chosen.servers}
