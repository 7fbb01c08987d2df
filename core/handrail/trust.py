"""Which folders a person trusts. Only there are a project's instructions and sensitive settings used.

The list is stored in the platform's state folder, never in the project: a project cannot trust itself.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import platformdirs

from handrail.errors import ConfigError

_LISTS: Final = ("trusted", "refused")


def up_to_root(folder: Path) -> Iterator[Path]:
    """`folder` and its parents, up to the root of its git repository; outside a repository only `folder`."""
    folder = folder.resolve()
    chain = [folder, *folder.parents]
    root = next((i for i, d in enumerate(chain) if (d / ".git").exists()), 0)
    yield from chain[: root + 1]


def project_root(folder: Path) -> Path:
    """The root of the git repository that holds `folder`, else `folder` itself."""
    return list(up_to_root(folder))[-1]


def is_trusted(folder: Path, *, also: Iterable[str] = ()) -> bool:
    """Whether `folder` or one of its parents is trusted. `also`: folders that the person's own settings name."""
    known = {Path(p).expanduser().resolve() for p in also} | _read()["trusted"]
    folder = folder.resolve()
    return any(place in known for place in (folder, *folder.parents))


def is_refused(folder: Path) -> bool:
    """Whether a person has refused to trust `folder`. They are not asked again."""
    return folder.resolve() in _read()["refused"]


def trust(folder: Path) -> None:
    """Trust `folder` and everything in it. Raises ConfigError when that cannot be saved."""
    _save(folder, "trusted")


def distrust(folder: Path) -> None:
    """Withdraw or refuse trust in `folder`. Raises ConfigError when that cannot be saved."""
    _save(folder, "refused")


def _file() -> Path:
    return platformdirs.user_state_path("handrail", appauthor=False) / "trusted.json"


def _read() -> dict[str, set[Path]]:
    try:
        data = json.loads(_file().read_text("utf-8"))
    except (OSError, ValueError):
        data = {}
    lists = data if isinstance(data, dict) else {}
    return {name: {Path(p) for p in lists.get(name, []) if isinstance(p, str)} for name in _LISTS}


def _save(folder: Path, where: str) -> None:
    """Move `folder` to the list `where`. The file is replaced as a whole."""
    folder, file = folder.resolve(), _file()
    lists = {name: paths - {folder} for name, paths in _read().items()}
    lists[where].add(folder)
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, path = tempfile.mkstemp(".json", "trusted-", file.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            json.dump({name: sorted(map(str, paths)) for name, paths in lists.items()}, out, indent=1)
        Path(path).replace(file)
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}. Check its permissions.") from error
