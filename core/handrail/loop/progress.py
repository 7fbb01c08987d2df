"""The guard against going in circles (rule L13)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Literal

NAMED = 3  # times in a row until it is named
ASKED = 5  # times in a row until a person is asked


@dataclass(frozen=True, slots=True)
class Repeat:
    """Something that came `times` in a row."""

    what: Literal["call", "reply"]
    name: str
    times: int


class ProgressGuard:
    """Counts in how many turns in a row the same call had the same result, or the same reply came."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """A person spoke, or asked to go on: count anew."""
        self._calls: dict[tuple[str, str, str], int] = {}
        self._reply: Hashable = None
        self._replies = 0

    def turn(self, calls: Iterable[tuple[str, str, str]], reply: Hashable, *, ran: bool) -> Repeat | None:
        """Note one good turn: its calls as (name, raw arguments, result text) and the reply. A reply only counts when
        no tool ran: a call whose results change is progress. Returns what repeats at least three times, worst first.
        """
        seen = {key: self._calls.get(key, 0) + 1 for key in calls}
        self._calls = seen
        same = reply == self._reply and not ran
        self._replies = self._replies + 1 if same else 1
        self._reply = reply
        repeats = [Repeat("call", key[0], times) for key, times in seen.items()]
        if not ran:
            repeats.append(Repeat("reply", "", self._replies))
        worst = max(repeats, key=lambda r: r.times, default=None)
        return worst if worst is not None and worst.times >= NAMED else None
