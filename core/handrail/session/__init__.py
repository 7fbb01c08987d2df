"""Sessions: runs of one conversation, what is kept of them, and what the person commands.

`Session` is imported when it is first used, so that a list of sessions needs no loop.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from handrail.session.session import Session

__all__ = ["Session"]


def __getattr__(name: str) -> object:
    if name != "Session":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from handrail.session.session import Session

    return Session
