"""A session of the past, as a screen drives it: its commands do nothing."""

from __future__ import annotations

from handrail.events import QueuedMessage, RunEnded


class NothingRuns:
    """A session of the past, as a screen drives it: commands change nothing in what happened."""

    running = False

    async def run(self, prompt: str, *, context: str | None = None) -> RunEnded:
        raise RuntimeError("nothing runs here")

    async def resume(self, *, answer: str | None = None) -> RunEnded:
        raise RuntimeError("nothing runs here")

    def steer(self, text: str, /) -> str:
        return ""

    def follow_up(self, text: str, /) -> str:
        return ""

    def withdraw(self, id: str, /) -> QueuedMessage | None:
        return None

    def answer(self, id: str, how: str, text: str = "", *, secret: bool = False) -> bool:
        return False

    def approve(self, id: str, how: str, text: str = "") -> bool:
        return False

    def _nothing(self, *args: object, **amounts: object) -> None:
        """Said to nobody."""

    edit_queued = move_queued = stop = suspend = skip_wait = retry_now = compact = notice = _nothing
    set_recovery = set_provider = set_approve = raise_bounds = _nothing
