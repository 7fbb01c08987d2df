"""Puts the events of requests that run side by side in a row: one turn after the other, each live when it is first."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from handrail import events as ev


@dataclass(slots=True, eq=False)
class Turn:
    """The events of one request. They wait here while an earlier turn is not over."""

    number: int
    held: list[ev.Event] = field(default_factory=list)
    over: bool = False


class TurnOrder:
    """Tells `tell` every event of the first turn at once, and those of the others when their turn comes."""

    def __init__(self, tell: ev.Listener) -> None:
        self._tell = tell
        self._turns: deque[Turn] = deque()
        self._number = 0

    def open(self) -> Turn:
        """A new turn, behind those that are open."""
        self._number += 1
        turn = Turn(self._number)
        self._turns.append(turn)
        return turn

    def emit(self, turn: Turn, event: ev.Event) -> None:
        """Something happened in `turn`."""
        if self._turns and self._turns[0] is turn:
            self._tell(event)
        else:
            turn.held.append(event)

    def close(self, turn: Turn) -> None:
        """`turn` is over."""
        turn.over = True
        while self._turns and self._turns[0].over:
            self._turns.popleft()
            if self._turns:
                first = self._turns[0]
                held, first.held = first.held, []
                for event in held:
                    self._tell(event)
