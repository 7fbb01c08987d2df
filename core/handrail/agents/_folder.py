"""What a prompt really changed in the folder, on record beside what the agent told (see `session.changes`)."""

from __future__ import annotations

from pathlib import Path

from handrail import events as ev
from handrail.agents._snapshots import NoSnapshot, Snapshots
from handrail.agents._updates import UpdateFold
from handrail.loop.context import RunContext
from handrail.session.changes import SNAPSHOT


class FolderWatch:
    """Looks at `cwd` before and after each prompt. Without a session's folder to keep things in it does nothing."""

    def __init__(self, ctx: RunContext, cwd: Path, folder: Path | None, name: str) -> None:
        self._ctx, self._name = ctx, name
        self._snapshots = Snapshots(cwd, folder, ctx.clock) if folder is not None else None
        self._before: str | None = None
        self._first_turn = 0

    async def before(self, fold: UpdateFold) -> None:
        """A prompt begins. A stop ends the look."""
        self._before, self._first_turn, fold.diffs = None, fold.turns + 1, []
        if self._snapshots is None:
            return
        try:
            with self._ctx.interrupts.scope():
                self._before = await self._snapshots.take()
        except NoSnapshot as error:
            self._notice(f"changes of files are known only as far as {self._name} tells them: {error}")
            self._snapshots = None

    async def after(self, fold: UpdateFold) -> None:
        """The prompt is over: what changed and was not told exactly so goes on record."""
        if self._snapshots is None or self._before is None:
            return
        try:
            found = await self._snapshots.since(self._before)
        except NoSnapshot as error:
            self._notice(f"what changed cannot be said: {error}")
            return
        untold = [change for change in found if fold.diffs.count(change.diff) != 1]
        for number, change in enumerate(c for c in untold if c.diff):
            self._ctx.emit(
                ev.ToolFinished(
                    **self._ctx.stamp(),
                    call_id=f"{SNAPSHOT}:{self._first_turn}:{number}",
                    name=SNAPSHOT,
                    diff=change.diff,
                    summary=f"{change.path} {change.summary}",
                )
            )
        if words := ", ".join(f"{c.path} ({c.summary})" for c in untold if not c.diff):
            self._notice(f"also changed, and not to be undone here: {words}")

    def _notice(self, text: str) -> None:
        self._ctx.emit(ev.Notice(**self._ctx.stamp(), text=text, level="warning"))
