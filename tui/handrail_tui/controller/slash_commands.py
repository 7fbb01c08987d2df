"""The slash commands of the composer, as data: what they are called, what they do, what they take."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

_COMMAND = re.compile(r"/([A-Za-z][A-Za-z-]*)(?:\s+(.*))?\s*\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Command:
    """A command. `argument` hints at what it takes, `choices` are all it may be."""

    name: str
    help: str
    argument: str = ""
    choices: tuple[str, ...] = ()


COMMANDS = (
    Command("stop", "stop the run; what was said is kept"),
    Command("model", "choose the model, also in mid-run", "[provider/name]"),
    Command("bounds", "how far the run may go; +10 raises the turn limit", "[+N]"),
    Command(
        "approve",
        "what asks first: everything, all but edits, nothing",
        "ask|edits|all",
        ("ask", "edits", "all"),
    ),
    Command("recovery", "recovery of broken replies and limits", "on|off", ("on", "off")),
    Command("compact", "summarise older turns now"),
    Command("queue", "edit, reorder or withdraw what waits to be delivered"),
    Command("changes", "files that the run touched, the whole diff, undo of a turn"),
    Command("search", "look for words in the transcript"),
    Command("sessions", "back to the list of sessions"),
    Command("decisions", "each decision with its evidence"),
    Command("theme", "choose the colours", "[name]"),
    Command("export", "write the session to a file", "md|jsonl", ("md", "jsonl")),
    Command("help", "keys and commands"),
    Command("quit", "leave; a run can be resumed"),
)
BY_NAME = {command.name: command for command in COMMANDS}


def parse(text: str) -> tuple[Command, str] | None:
    """The command in `text` and its arguments; None when `text` is no command (`/usr/bin is full` is none).

    Raises ValueError, in words for the person, when it looks like a command and cannot be one.
    """
    match = _COMMAND.match(text)
    if match is None:
        return None
    name, args = match[1].lower(), (match[2] or "").strip()
    command = BY_NAME.get(name)
    if command is None:
        near = difflib.get_close_matches(name, BY_NAME, 1)
        hint = f"did you mean /{near[0]}?" if near else "/help lists them."
        raise ValueError(f"There is no command /{name}; {hint} To send it as text, begin with a space.")
    if command.choices and args and args not in command.choices:
        raise ValueError(f"/{name} takes {' or '.join(command.choices)}, not {args!r}.")
    if args and not command.argument:
        raise ValueError(f"/{name} takes nothing behind it. To send it as text, begin with a space.")
    return command, args
