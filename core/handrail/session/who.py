"""Who is at this terminal, as the record of a session names them (rule H6)."""

from __future__ import annotations

import getpass
import os
import sys

from handrail.messages import clean


def user_of(uid: int | None = None) -> str:
    """The name of a user; the user of this process by default. Variables of the environment do not count."""
    if sys.platform == "win32":
        return getpass.getuser()
    import pwd

    number = os.getuid() if uid is None else uid
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


def this_terminal() -> str:
    """The terminal of this process, such as `pts/3`; empty when it has none."""
    for fd in (0, 2, 1):
        try:
            return clean(os.ttyname(fd)).removeprefix("/dev/")
        except (OSError, AttributeError):
            continue
    return ""


def this_person() -> str:
    """User and terminal of this process: `ada, pts/3`."""
    return named(user_of(), this_terminal())


def named(user: str, terminal: str) -> str:
    """A user and a terminal in the words of the record."""
    return f"{user}, {terminal}" if terminal else user
