"""The working time of a run, as moments: nothing here reads a clock."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Stopwatch:
    """Working time, without waits for limits and people (rule L3). All values are seconds."""

    started_at: float | None = None
    ended_at: float | None = None
    held: float = 0.0
    held_since: float | None = None

    def start(self, at: float) -> None:
        self.started_at, self.ended_at, self.held, self.held_since = at, None, 0.0, None

    def resume(self, at: float) -> None:
        """Continue after an end; the time between is not working time."""
        self.held += at - self.ended_at if self.ended_at is not None else 0.0
        self.ended_at = self.held_since = None

    def hold(self, at: float) -> None:
        if self.held_since is None:
            self.held_since = at

    def release(self, at: float) -> None:
        if self.held_since is not None:
            self.held += at - self.held_since
            self.held_since = None

    def read(self, now: float) -> float:
        """Seconds of work so far."""
        if self.started_at is None:
            return 0.0
        end = self.ended_at if self.ended_at is not None else now
        held = self.held + (end - self.held_since if self.held_since is not None else 0.0)
        return max(0.0, end - self.started_at - held)
