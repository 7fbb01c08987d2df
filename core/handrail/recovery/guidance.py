"""When to ask again: the moment that a provider names, wherever it names it (rules U1, U2).

Moments are looked for in headers and fields (`named_fields`) and in words (`named_words`). Only a limit that is used
up binds, and of several that bind the latest holds. Nothing is invented: what cannot be read, is stale or is absurd
is no moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo

from handrail.recovery.evidence import Evidence
from handrail.recovery.named_fields import in_fields, in_headers
from handrail.recovery.named_words import in_words
from handrail.recovery.wallclock import Candidate

EXACT_MARGIN_S = 5.0
ROUNDED_MARGIN_S = 30.0


@dataclass(frozen=True, slots=True)
class Guidance:
    """A moment that the provider names.

    `at` is in seconds since the epoch and `wait_s` seconds from the look to it, both before margins. `rounded` says
    that the writer rounded (`~42 min`). `source` is where it was found, in words for people.
    """

    at: float
    wait_s: float
    rounded: bool
    source: str

    def due(self) -> float:
        """The moment to ask again: 30 s later where it is rounded, 5 s elsewhere (rule U1)."""
        return self.at + (ROUNDED_MARGIN_S if self.rounded else EXACT_MARGIN_S)


def find_moments(evidence: Evidence, *, now: float, local: tzinfo | None) -> list[Candidate]:
    """Every moment that the failure names and that may bind. `local` None is the machine's own zone."""
    return [*in_headers(evidence, now), *in_fields(evidence, now), *in_words(evidence, now, local)]


def latest(candidates: Sequence[Candidate], *, now: float, limited: bool) -> Guidance | None:
    """The latest moment that binds (rule U2). Resets of windows bind only where a limit was hit (`limited`)."""
    binding = [candidate for candidate in candidates if limited or not candidate.reset]
    if not binding:
        return None
    last = max(binding, key=lambda candidate: (candidate.at, candidate.rounded))
    return Guidance(last.at, max(0.0, last.at - now), last.rounded, last.source)
