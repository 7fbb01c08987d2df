"""Where a key comes from: the environment, the settings, a command that prints it, or the system's keyring.

The program takes the keys out of its own environment before it starts a child, so that neither the child nor
/proc/PID/environ shows them.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from importlib import import_module

from handrail.errors import ConfigError

KEYRING = "keyring:"
COMMAND_S = 60.0  # a password manager may ask its owner first


def find_key(
    setting: str | None, variables: Sequence[str], environ: Mapping[str, str], provider: str
) -> tuple[str | None, str | None]:
    """The key and where it was found; (None, None) when there is none.

    HANDRAIL_API_KEY wins, then the settings (`key`: a command when it begins with `!`, an entry of the keyring when it
    is `keyring:SERVICE` or `keyring:SERVICE/USER`), then `variables` in order. Raises ConfigError when a command or
    the keyring gives no key.
    """
    first, *others = variables
    if value := environ.get(first, "").strip():
        return value, first
    if setting is not None:
        place = f"settings: providers.{provider}.key"
        if setting.startswith("!"):
            return _from_command(setting[1:], place), place
        if setting.startswith(KEYRING):
            return _from_keyring(setting.removeprefix(KEYRING), place), place
        return setting.strip() or None, place
    for name in others:
        if value := environ.get(name, "").strip():
            return value, name
    return None, None


_withheld: dict[str, str] = {}


def environment() -> dict[str, str]:
    """The environment of this process, with the keys that `withhold` took out of it."""
    return {**_withheld, **os.environ}


def withhold(names: Collection[str]) -> None:
    """Take these variables (names in upper case) out of the environment of this process.

    On Linux their values are also overwritten in the block that /proc/PID/environ shows. They stay in the memory of the
    process, which a debugger of the same user may read.
    """
    found = [name for name in os.environ if name.upper() in names]
    if found and sys.platform == "linux":
        _overwrite({os.fsencode(name) for name in found})
    for name in found:
        _withheld[name] = os.environ.pop(name)


def give_back() -> None:
    """Forget what was withheld: for a process that goes on with another environment."""
    _withheld.clear()


def _overwrite(names: Collection[bytes]) -> None:
    """Overwrite the values of variables where the C library holds them."""
    block = ctypes.POINTER(ctypes.c_void_p).in_dll(ctypes.CDLL(None), "environ")
    at = 0
    while block and (address := block[at]):
        entry = ctypes.string_at(address)
        name, equals, value = entry.partition(b"=")
        if equals and name in names:
            ctypes.memset(address + len(name) + 1, 0, len(value))
        at += 1


def _from_keyring(entry: str, place: str) -> str:
    """The password of `SERVICE/USER` in the system's keyring; the user is `handrail` where none is named."""
    service, _, user = entry.strip().partition("/")
    user = user or "handrail"
    place = f"{place}: {KEYRING}{entry.strip()}"
    try:
        keyring = import_module("keyring")
    except ImportError:
        raise ConfigError(
            f"{place} needs a package that is not installed: pip install 'handrail[keyring]'"
        ) from None
    try:
        key = keyring.get_password(service, user)
    except Exception as error:  # each backend has errors of its own
        raise ConfigError(
            f"{place}: the keyring cannot be read ({type(error).__name__}). Is it unlocked?"
        ) from None
    if not key:
        raise ConfigError(f"{place}: there is no such entry. Make it with: keyring set {service} {user}")
    return str(key).strip()


def _from_command(command: str, place: str) -> str:
    """The first line that `command` prints. Its output is never shown: it may hold the key."""
    place = f"{place}: the command `{command.strip()}`"
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
