"""An agent that says nothing: noticed, and asked about, so that nobody waits for ever without a sign (rule L10)."""

from __future__ import annotations

import asyncio

from handrail import events as ev
from handrail.agents._updates import UpdateFold
from handrail.clock import Timer
from handrail.loop.context import RunContext
from handrail.loop.people import HumanAbsent, People

STALLED = "stalled"
"""The `tool` of such a question."""


class StallWatch:
    """Watches one prompt at a time. A call that runs, an open question and a wait are no silence."""

    def __init__(self, ctx: RunContext, people: People, name: str, fold: UpdateFold) -> None:
        self._ctx, self._people, self._name, self._fold = ctx, people, name, fold
        self._timer: Timer | None = None
        self._asking: asyncio.Task[None] | None = None
        self._seconds = 0.0
        self._last = 0.0
        self.gave_up = False

    def heard(self) -> None:
        """The agent said something, or bytes of its model passed."""
        self._last = self._ctx.clock.now()

    def start(self, seconds: float) -> None:
        """A prompt begins; `seconds` of silence are too many."""
        self._seconds, self.gave_up = seconds, False
        self.heard()
        self._arm(seconds)

    async def stop(self) -> None:
        """The prompt is over."""
        if self._timer is not None:
            self._timer.cancel()
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)
            self._asking = None

    def _arm(self, seconds: float) -> None:
        self._timer = self._ctx.clock.call_later(seconds, self._ring)

    def _ring(self) -> None:
        silent = self._ctx.clock.now() - self._last
        if self._ctx.state.paused or self._fold.busy:
            self.heard()
            self._arm(self._seconds)
        elif silent < self._seconds:
            self._arm(self._seconds - silent)
        elif self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask(silent))

    async def _ask(self, silent: float) -> None:
        """Wait on, ask again, or stop: the person says. With nobody there it is given up."""
        silence = f"{self._name} has said nothing for {silent:.0f} s."
        needed = f"{silence} Done: wait on. Cannot: give it up and ask again. Or stop."
        try:
            answer = await self._people.question(
                ev.HumanRequested(id="", kind="decision", needed=needed, tool=STALLED)
            )
        except HumanAbsent as absent:
            self._ctx.emit(ev.HumanAnswered(**self._ctx.stamp(), id=absent.question.id, how="nobody"))
            self.gave_up = True
            self._ctx.interrupts.send("cut")
            return
        if answer.how == "declined":
            self._ctx.interrupts.send("retry")
        elif answer.how != "stopped":
            self.heard()
            self._arm(self._seconds)
