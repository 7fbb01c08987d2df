"""Which folders a person trusts: only there do a project's instructions and weighty settings count.

What is trusted is kept in the platform's state folder, never in the project: a project cannot trust itself.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import platformdirs

from handrail.errors import ConfigError


def up_to_root(folder: Path) -> Iterator[Path]:
    """`folder` and those above it, up to the root of its git repository; outside of one only `folder`."""
    folder = folder.resolve()
    chain = [folder, *folder.parents]
    root = next((i for i, d in enumerate(chain) if (d / ".git").exists()), 0)
    yield from chain[: root + 1]


def project_root(folder: Path) -> Path:
    """The root of the git repository that holds `folder`, else `folder` itself."""
    return list(up_to_root(folder))[-1]


def is_trusted(folder: Path, *, also: Iterable[str] = ()) -> bool:
    """Whether `folder` or one above it is trusted. `also`: folders that the person's own settings name."""
    known = {Path(p).expanduser().resolve() for p in also} | set(trusted_folders())
    folder = folder.resolve()
    return any(place in known for place in (folder, *folder.parents))


def trusted_folders() -> list[Path]:
    """The folders that were trusted with `trust`."""
    try:
        kept = json.loads(_file().read_text("utf-8"))
    except (OSError, ValueError):
        return []
    return [Path(p) for p in kept if isinstance(p, str)] if isinstance(kept, list) else []


def trust(folder: Path) -> None:
    """Trust `folder` and everything in it. Raises ConfigError when that cannot be kept."""
    _keep({*trusted_folders(), folder.resolve()})


def distrust(folder: Path) -> None:
    """Take the trust in `folder` back. Raises ConfigError when that cannot be kept."""
    _keep(set(trusted_folders()) - {folder.resolve()})


def _file() -> Path:
    return platformdirs.user_state_path("handrail", appauthor=False) / "trusted.json"


def _keep(folders: Iterable[Path]) -> None:
    file = _file()
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, path = tempfile.mkstemp(".json", "trusted-", file.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            json.dump(sorted(str(f) for f in folders), out, indent=1)
        Path(path).replace(file)
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}. Mend its rights.") from error
