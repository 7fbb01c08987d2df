"""Reading a slash command out of what was typed."""

from __future__ import annotations

import difflib
import re

from handrail_tui.controller.actions import SLASH, Action

_COMMAND = re.compile(r"/([A-Za-z][A-Za-z-]*)(?:\s+(.*))?\s*\Z", re.DOTALL)


def parse(text: str) -> tuple[Action, str] | None:
    """The command in `text` and its arguments; None when `text` is not a command (`/usr/bin is full` is not).

    Raises ValueError, with words for the person, when it looks like a command and cannot be one.
    """
    match = _COMMAND.match(text)
    if match is None:
        return None
    name, args = match[1].lower(), (match[2] or "").strip()
    command = SLASH.get(name)
    if command is None:
        near = difflib.get_close_matches(name, SLASH, 1)
        hint = f"did you mean /{near[0]}?" if near else "/help lists them."
        raise ValueError(f"There is no command /{name}; {hint} To send it as text, begin with a space.")
    if command.choices and args and args not in command.choices:
        raise ValueError(f"/{name} takes {' or '.join(command.choices)}, not {args!r}.")
    if args and not command.argument:
        raise ValueError(f"/{name} takes no arguments. To send it as text, begin with a space.")
    return command, args
