"""When a card may take a key: never while someone is typing."""

from __future__ import annotations

import time
from collections.abc import Callable

AFTER_APPEARING_S = 0.5
AFTER_TYPING_S = 1.0


class InputGuard:
    """Holds keys back from a card that has just appeared, and from any card while a person types.

    `now` is the machine's monotonic clock, not the session's: what counts is the person's typing. The
    composer calls `typed` for each key; a card asks `allows` with the moment it appeared.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self._typed_at = float("-inf")

    def typed(self) -> None:
        """A key went into the composer."""
        self._typed_at = self.now()

    def forget(self) -> None:
        """The last key was no typing after all: it was meant for the card."""
        self._typed_at = float("-inf")

    def allows(self, appeared_at: float) -> bool:
        """Whether a card that appeared then may take a key now."""
        now = self.now()
        return now - appeared_at >= AFTER_APPEARING_S and now - self._typed_at >= AFTER_TYPING_S
