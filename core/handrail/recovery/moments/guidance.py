"""The moment at which a provider says to ask again, and what is added to it (rules U1, U2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Final

from handrail.recovery.moments.wallclock import Precision

MARGINS_S: Final[dict[Precision, float]] = {"second": 5.0, "minute": 65.0, "rounded": 30.0}
"""Added to a moment. A clock time without seconds is over at the end of its minute."""


@dataclass(frozen=True, slots=True)
class When:
    """What times in a failure are read against, in seconds since the epoch.

    Lengths count from `now`. Clock times are past or still to come as seen from `since`, which is `now`, or the moment
    that was waited for already: named again, it is the same moment and not tomorrow's. `local` is the zone of times
    that name none; None is the machine's.
    """

    now: float
    since: float
    local: tzinfo | None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A moment found somewhere in a failure, and where. `reset` tells the reset of a rate limit's window from an
    order to come back: it counts only where a limit was hit."""

    at: float
    precision: Precision
    source: str
    reset: bool = False


@dataclass(frozen=True, slots=True)
class Guidance:
    """A moment that the provider names.

    `at` is in seconds since the epoch and `wait_s` seconds from the look to it, both before margins. `precision` says
    how exactly it was named. `source` is where it was found, in words for people.
    """

    at: float
    wait_s: float
    precision: Precision
    source: str

    @property
    def rounded(self) -> bool:
        """Whether the writer rounded it (`~42 min`)."""
        return self.precision == "rounded"

    def due(self) -> float:
        """The moment to ask again: the margin of its precision later (rule U1)."""
        return self.at + MARGINS_S[self.precision]


def latest(candidates: Sequence[Candidate], *, now: float, limited: bool) -> Guidance | None:
    """The latest moment that binds (rule U2). Resets of windows bind only where a limit was hit (`limited`)."""
    binding = [candidate for candidate in candidates if limited or not candidate.reset]
    if not binding:
        return None
    last = max(binding, key=lambda candidate: (candidate.at, MARGINS_S[candidate.precision]))
    return Guidance(last.at, max(0.0, last.at - now), last.precision, last.source)
