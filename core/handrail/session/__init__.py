"""Sessions: runs of one conversation, what is kept of them, and what the person commands."""

from handrail.session.session import Session

__all__ = ["Session"]
