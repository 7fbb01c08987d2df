"""Reading TOML files, and finding the line of a key for error messages."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, Final

from handrail.errors import ConfigError

_NAME: Final = r"""(?:[\w-]+|"[^"]*"|'[^']*')"""
_KEY: Final = re.compile(rf"\s*({_NAME}(?:\s*\.\s*{_NAME})*)\s*=")
_TABLE: Final = re.compile(r"\s*\[\[?\s*([^\]]+?)\s*\]\]?")
_PLACE: Final = re.compile(r" \(at line (\d+), column \d+\)$")


def read_toml(path: Path) -> tuple[dict[str, Any], str]:
    """The data and the text of `path`. Raises ConfigError that names the file, the line and what to do."""
    name = short_path(path)
    try:
        text = path.read_text("utf-8")
        return tomllib.loads(text), text
    except UnicodeDecodeError as error:
        raise ConfigError(f"{name} is not UTF-8 text (at byte {error.start}). Save it as UTF-8.") from error
    except OSError as error:
        words = error.strerror or str(error)
        raise ConfigError(f"{name} cannot be read: {words}. Check the path and its permissions.") from error
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        line = f":{place[1]}" if place else ""
        raise ConfigError(f"{name}{line}: this is not TOML: {_PLACE.sub('', str(error))}.") from error


def line_of(text: str, path: tuple[str, ...]) -> int | None:
    """The line (from 1) of the key `path` in `text`, or of the nearest table around it."""
    table: tuple[str, ...] = ()
    best: tuple[int, int] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if header := _TABLE.match(line):
            found = table = _parts(header[1])
        elif key := _KEY.match(line):
            found = table + _parts(key[1])
        else:
            continue
        if path[: len(found)] == found and (best is None or len(found) > best[0]):
            best = (len(found), number)
    return best[1] if best else None


def short_path(path: Path) -> str:
    """`path` with `~` for the home folder."""
    try:
        return "~/" + path.relative_to(Path.home()).as_posix()
    except (ValueError, RuntimeError):
        return str(path)


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in re.findall(_NAME, dotted))
