"""Sessions: the runs of one conversation, how they are stored, and the commands a person gives them.

`Session` is imported when it is first used, so that listing sessions does not import the loop.
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
