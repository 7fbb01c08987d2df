"""What the composer can complete, and how well it fits: pure functions over text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from handrail_tui.controller.actions import SLASH

Kind: TypeAlias = Literal["command", "argument", "file"]
MOST = 50
"""Completions that are offered at once."""

_FILE = re.compile(r'(?:^|(?<=\s))@(?:"([^"\n]*)|([^\s"]*))\Z')
_COMMAND = re.compile(r"\A/([A-Za-z-]*)\Z")
_ARGUMENT = re.compile(r"\A/([A-Za-z-]+) +(\S*)\Z")


@dataclass(frozen=True, slots=True)
class Trigger:
    """Something before the cursor that asks for completion. From `start` on it is to be replaced."""

    kind: Kind
    start: int
    query: str
    command: str = ""


@dataclass(frozen=True, slots=True)
class Completion:
    """One offer. `insert` takes the place of the text from the trigger's start; `runs`: then it is whole."""

    insert: str
    title: str
    help: str = ""
    runs: bool = False


def find_trigger(before: str) -> Trigger | None:
    """What the text before the cursor asks for, if anything. `/` counts at the very beginning only."""
    if match := _COMMAND.match(before):
        return Trigger("command", 0, match[1])
    if match := _ARGUMENT.match(before):
        return Trigger("argument", match.start(2), match[2], match[1].lower())
    if match := _FILE.search(before):
        return Trigger("file", match.start(), match[1] if match[1] is not None else match[2])
    return None


def complete(
    trigger: Trigger, files: Sequence[str] = (), commands: Sequence[str] = tuple(SLASH)
) -> list[Completion]:
    """The offers for `trigger`, the best first; `commands` are those that work here."""
    if trigger.kind == "command":
        names = rank(trigger.query, commands) if trigger.query else commands
        return [_command(name) for name in names]
    if trigger.kind == "argument":
        command = SLASH.get(trigger.command)
        choices = rank(trigger.query, command.choices) if command else []
        return [Completion(choice, choice, runs=True) for choice in choices if choice != trigger.query]
    return [Completion(_mention(path), path) for path in rank(trigger.query, files)]


def _command(name: str) -> Completion:
    command = SLASH[name]
    title = f"/{name} {command.argument}".rstrip()
    takes = bool(command.argument)
    # What stands in brackets may be left out.
    return Completion(
        f"/{name}{' ' if takes else ''}", title, command.help, runs=not takes or command.argument[0] == "["
    )


def _mention(path: str) -> str:
    return f'@"{path}" ' if " " in path else f"@{path} "


def rank(query: str, candidates: Iterable[str]) -> list[str]:
    """Up to `MOST` candidates that hold the letters of `query` in order, the best first.

    A name that begins with the query goes before one that holds it, a path that holds it before one with the
    letters scattered; among equals the shorter. (Textual's FuzzySearch tries every way to place the letters:
    milliseconds for each long path, and a project has thousands.)
    """
    needle = query.lower()
    if not needle:
        return sorted(candidates, key=lambda path: (path.count("/"), path))[:MOST]
    scattered = re.compile(".*?".join(map(re.escape, needle)), re.DOTALL)
    found = []
    for candidate in candidates:
        path = candidate.lower()
        if needle in path:
            name = path.rsplit("/", 1)[-1]
            tier = 0 if name.startswith(needle) else 1 if needle in name else 2
            found.append((tier, len(path), candidate))
        elif match := scattered.search(path):
            found.append((3 + match.end() - match.start(), len(path), candidate))
    return [candidate for *_, candidate in sorted(found)[:MOST]]
