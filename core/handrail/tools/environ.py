"""The environment of child processes: without providers' API keys, and set up so that nothing waits for a
keypress."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

MARK: Final = "HANDRAIL_CALL"
"""Set in every child, so that a daemon that left its process group and parent can still be found."""

_SETTINGS: Final = {
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "SSH_ASKPASS_REQUIRE": "never",
    "DEBIAN_FRONTEND": "noninteractive",
}


def scrubbed_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` without the keys of model providers.

    Other secrets (for git, for a cloud) belong to the person's own work and are passed on. The program has also dropped
    the keys that a person's own settings name from its environment, see `handrail.providers.keys.withhold`.
    """
    from handrail.providers.catalog import key_variables  # late: it is read when the first child starts

    secret = key_variables()
    return {name: value for name, value in environ.items() if name.upper() not in secret}


def child_environment(env: Mapping[str, str] | None, mark: str) -> dict[str, str]:
    """The environment of a command: `env`, or ours without keys; no pager, no prompt, no terminal; and the
    mark."""
    return {**scrubbed_environment(os.environ if env is None else env), **_SETTINGS, MARK: mark}
