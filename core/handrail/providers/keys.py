"""Where a key comes from: the environment, the settings, or a command that prints it."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence

from handrail.errors import ConfigError

COMMAND_S = 60.0  # a password manager may ask its owner first


def find_key(
    setting: str | None, variables: Sequence[str], environ: Mapping[str, str], provider: str
) -> tuple[str | None, str | None]:
    """The key and where it was found; (None, None) when there is none.

    HANDRAIL_API_KEY wins, then the settings (`key`, a command when it begins with `!`), then `variables` in
    order. Raises ConfigError when a command gives no key.
    """
    first, *others = variables
    if value := environ.get(first, "").strip():
        return value, first
    if setting is not None:
        key = _from_command(setting[1:], provider) if setting.startswith("!") else setting.strip()
        return key or None, f"settings: providers.{provider}.key"
    for name in others:
        if value := environ.get(name, "").strip():
            return value, name
    return None, None


def _from_command(command: str, provider: str) -> str:
    """The first line that `command` prints. Its output is never shown: it may hold the key."""
    place = f"settings: providers.{provider}.key: the command `{command.strip()}`"
    try:
        done = subprocess.run(
            command, shell=True, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=COMMAND_S
        )
    except (subprocess.TimeoutExpired, OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{place} did not end well: {type(error).__name__}. Try it in a shell.") from None
    key = done.stdout.strip().partition("\n")[0].strip()
    if done.returncode != 0 or not key:
        raise ConfigError(f"{place} ended with status {done.returncode} and gave no key. Try it in a shell.")
    return key
