"""What grep and find share: a program that lists or searches files, ripgrep or our own, read record by
record."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import shutil
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from handrail.tools._folder import Folder
from handrail.tools._globs import Glob
from handrail.tools.base import ToolContext, ToolError
from handrail.tools.environ import child_environment
from handrail.tools.paths import Place, missing
from handrail.tools.stopping import whole

LIMIT_S: Final = 30.0
"""Real seconds that a search may take."""

_RECORD: Final = 8_000_000
"""Bytes of a record; a longer one (a match in an endless line) is passed over."""

_PROC: Final = Path("/proc/self/fd").is_dir()
_START: Final = re.compile(rb'"start":(\d+)')

# Hidden files are searched, .git is not; every .gitignore counts and nothing else does, with or without a
# repository: so both programs see the same files, and the same on every machine.
_RG_FILES: Final = (
    "--no-config",
    "--no-messages",
    "--hidden",
    "--no-require-git",
    "--no-ignore-global",
    "--no-ignore-exclude",
    "--no-ignore-dot",
    "--sort=path",
    "--glob=!.git",
)


@dataclass(frozen=True, slots=True)
class Query:
    """What to do in the folder `root`: search for `pattern` in its files, or list them when that is None.
    `file`, a name in `root`, stands for all files."""

    root: str
    file: str | None = None
    pattern: str | None = None
    literal: bool = False
    ignore_case: bool = False
    context: int = 0
    glob: str = ""


def ripgrep() -> str | None:
    """Where ripgrep is, if it is."""
    return shutil.which("rg")


def glob_of(pattern: str) -> Glob | None:
    """The pattern, None for an empty one. Raises ToolError."""
    try:
        return Glob(pattern) if pattern.strip("!/") else None
    except ValueError as error:
        raise ToolError(f"glob: {error}") from None


def where(place: Place) -> tuple[Path, str | None]:
    """The folder to work in, and the one file in it when `place` is a file. Raises ToolError when it is
    neither."""
    if place.real.is_dir():
        return place.real, None
    if place.real.is_file():
        return place.real.parent, place.real.name
    raise (
        missing(place)
        if not place.real.exists()
        else ToolError(f"{place.shown} is neither a file nor a folder")
    )


async def records(ctx: ToolContext, query: Query, rg: str | None) -> AsyncGenerator[bytes, None]:
    """What the program says, piece by piece: JSON objects of a search, or paths of files. Close it to end the
    program.

    Raises TimeoutError after LIMIT_S, ToolError when the program refuses the pattern.
    """
    with ctx.clock.busy():
        process, cancelled = await whole(_start(ctx, query, rg))
        assert process.stderr is not None
        errors = asyncio.ensure_future(process.stderr.read())
        try:
            if cancelled:
                raise asyncio.CancelledError
            async with asyncio.timeout(LIMIT_S):
                async for record in _split(process, b"\n" if query.pattern is not None else b"\0"):
                    yield record
                _require_success(await process.wait(), (await errors).decode("utf-8", "replace").strip(), rg)
        finally:
            await whole(_end(process, errors))


def _require_success(code: int, said: str, rg: str | None) -> None:
    """Raise ToolError for a program that failed. Ripgrep's 1 is no match, its 2 without words a file it could not
    read."""
    if code == 0 or (rg and (code == 1 or (code == 2 and not said))):
        return
    if rg or code == 2:
        raise ToolError(said.removeprefix("rg: ") or f"the search ended with {code}")
    raise ToolError(f"the search failed: {said.splitlines()[-1] if said else f'exit {code}'}")


async def _start(ctx: ToolContext, query: Query, rg: str | None) -> Process:
    argv = _rg(rg, query) if rg else [sys.executable, "-P", "-m", "handrail.tools._scan"]
    try:
        with Folder(Path(query.root)) as folder:  # a handle: the folder may have become a symlink (rule H7)
            there = f"/proc/self/fd/{folder.handle}" if folder.handle is not None and _PROC else query.root
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=DEVNULL if rg else PIPE,
                stdout=PIPE,
                stderr=PIPE,
                cwd=there if rg else sys.prefix,  # nothing of the searched folder may be imported
                env=child_environment(ctx.env, ctx.call_id),
                pass_fds=() if folder.handle is None else (folder.handle,),
                start_new_session=True,
                limit=_RECORD,
            )
    except OSError as error:
        raise ToolError(f"the search could not be started: {error.strerror or error}") from None
    if process.stdin is not None:
        process.stdin.write(json.dumps(asdict(query)).encode())
        process.stdin.close()
    return process


def _rg(rg: str, query: Query) -> Sequence[str]:
    path = f"./{query.file}" if query.file is not None else "./"
    if query.pattern is None:
        return [rg, *_RG_FILES, "--files", "--null", "--", path]
    options = ["--json", "--crlf", f"--context={query.context}"]
    if query.literal:
        options.append("--fixed-strings")
    options.append("--ignore-case" if query.ignore_case else "--case-sensitive")
    glob = glob_of(query.glob)
    if glob is not None and glob.last:
        # As a type, because a --glob that includes would undo .gitignore.
        options += [f"--type-add=handrail:{glob.last}", "--type=handrail"]
    return [rg, *_RG_FILES, *options, "--regexp", query.pattern, "--", path]


async def _split(process: Process, end: bytes) -> AsyncIterator[bytes]:
    assert process.stdout is not None
    while True:
        try:
            yield (await process.stdout.readuntil(end)).removesuffix(end)
        except asyncio.IncompleteReadError:
            return
        except asyncio.LimitOverrunError as error:
            await process.stdout.readexactly(error.consumed)


async def _end(process: Process, errors: asyncio.Future[bytes]) -> None:
    if process.returncode is None:
        process.kill()
    await process.wait()
    await errors


def parsed(record: bytes) -> dict[str, Any] | None:
    """A record of a search, with the first match of its line only: a line may hold thousands, at a price for
    each.

    None for what is left of a record that was too long.
    """
    head, found, matches = record.partition(b',"submatches":[')
    try:
        event: dict[str, Any] = json.loads(head + b"}}" if found else record)
    except ValueError:
        return None
    first = _START.search(matches)
    event["data"]["start"] = int(first[1]) if first else 0
    return event


def text_of(field: dict[str, Any]) -> str:
    """Text in ripgrep's JSON; what is no UTF-8 stands in it as lone surrogates."""
    if "text" in field:
        return str(field["text"])
    return os.fsdecode(base64.b64decode(field["bytes"]))
