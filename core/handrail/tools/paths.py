"""Paths as a model writes them: resolved, shown, and compared with the working folder (rule H5)."""

from __future__ import annotations

import difflib
import os
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from handrail.messages import clean
from handrail.tools.base import ToolContext, ToolError
from handrail.tools.kept import kept_output
from handrail.tools.output import one_line


@dataclass(frozen=True, slots=True)
class Place:
    """One path. `path` is absolute, as written; `real` has its symlinks resolved; `inside` says that it
    is in the working folder. `note` says that the name on disk is spelled differently."""

    path: Path
    real: Path
    root: Path
    inside: bool
    note: str = ""

    @property
    def shown(self) -> str:
        """For people and the model: relative to the working folder where it lies in it, one line."""
        return one_line(
            name_of(_relative(self.path, self.root) or _relative(self.real, self.root) or str(self.path))
        )

    @property
    def shows(self) -> str:
        """The fingerprint of a call that only reads here (rule H7)."""
        return str(self.real)

    @property
    def exact(self) -> str:
        """For an approval that is to hold for this very file, whatever name it is reached by."""
        return name_of(_relative(self.real, self.root) or str(self.real))

    @property
    def outside(self) -> tuple[str, ...]:
        """What a preview says of it: the real path when it lies outside the working folder."""
        return () if self.inside else (name_of(str(self.real)),)


def locate(text: str, ctx: ToolContext) -> Place:
    """The path that `text` names. Relative to `ctx.cwd`; `~` is expanded, a leading `@` (a mention) dropped.

    Reads the disk (symlinks, names that were cleaned for the model) and never raises: errors of a path
    appear where it is used.
    """
    root = Path(os.path.realpath(ctx.cwd))
    written = Path(os.path.normpath(ctx.cwd / _written(text, ctx.cwd)))
    if within := _relative(written, ctx.cwd):
        written = root / within
    path = _existing(written)
    real = Path(os.path.realpath(path))
    note = ""
    if path != written and "\ufffd" not in str(written):
        note = f"[found as {_relative(path, root) or str(path)!a}: other Unicode forms or spaces]"
    return Place(path, real, root, real.is_relative_to(root) or kept_output(ctx).has(real), note)


def require_folder(place: Place) -> None:
    """Raise ToolError when the working folder no longer exists."""
    if not place.root.is_dir():
        raise ToolError(
            f"the working folder {name_of(str(place.root))} no longer exists. Nothing was changed"
        )


def name_of(entry: str) -> str:
    """A file name in a listing: one line, non-text characters replaced."""
    return clean(entry).replace("\n", "\\n").replace("\r", "\\r")


def missing(place: Place) -> ToolError:
    """The error for a missing path, with the most similar names; or for a missing working folder."""
    require_folder(place)
    parent, name = place.path.parent, place.path.name
    while not parent.is_dir() and parent != parent.parent:
        parent, name = parent.parent, parent.name
    try:
        names = {name_of(each.name): each.name for each in sorted(parent.iterdir())}
    except OSError:
        names = {}
    lower = {each.lower(): each for each in names}
    near = difflib.get_close_matches(clean(name).lower(), lower, n=3, cutoff=0.6)
    found = [parent / names[lower[each]] for each in near]
    hint = ", ".join(name_of(_relative(p, place.root) or str(p)) + ("/" if p.is_dir() else "") for p in found)
    return ToolError(f"{place.shown}: no such file or folder" + (f". Near it: {hint}" if hint else ""))


def explain(error: OSError, shown: str) -> ToolError:
    """An error of the operating system in one line."""
    return ToolError(f"{shown}: {error.strerror or error}")


def _relative(path: Path, root: Path) -> str | None:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else None


def _written(text: str, cwd: Path) -> str:
    text = text.strip() or "."
    if text.startswith("@") and not os.path.lexists(cwd / text.split("/", 1)[0]):
        text = text[1:] or "."
    return os.path.expanduser(text)  # noqa: PTH111 - an unknown `~user` stays as it is instead of raising


def _existing(path: Path) -> Path:
    """The path on disk that `path` names, where there is exactly one.

    File names need not be UTF-8, and a listing shows U+FFFD for what is none; and a model spells a name with composed
    letters and plain spaces where the name on disk may have others.
    """
    if os.path.lexists(path):
        return path
    found = Path(path.anchor)
    for number, part in enumerate(path.parts[1:], 1):
        names = [part] if os.path.lexists(found / part) else list(_named(found, part))
        if not names and "\ufffd" not in str(path):
            return found.joinpath(*path.parts[number:])  # a new file in a folder that was found
        if len(names) != 1:
            return path
        found /= names[0]
    return found


def _named(folder: Path, wanted: str) -> Iterator[str]:
    try:
        names = [each.name for each in folder.iterdir()]
    except OSError:
        return
    spelled = _spelling(wanted)
    yield from (name for name in names if clean(name) == wanted or _spelling(name) == spelled)


def _spelling(name: str) -> str:
    """A name with letters composed and every kind of space a plain one."""
    composed = unicodedata.normalize("NFC", name)
    return "".join(" " if unicodedata.category(char) == "Zs" else char for char in composed)
