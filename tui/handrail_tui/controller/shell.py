"""Shell lines of the person: run in the folder of the run, shown in its transcript, never sent to the model."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Final

from handrail.events import RunStarted
from handrail_tui.view.text import one_line

if TYPE_CHECKING:
    from handrail_tui.screens.run import RunScreen

_LIMIT_S: Final = 600.0


class ShellLines:
    """Runs one line at a time. What it wrote becomes a note of the session, so that a resume shows it, too."""

    def __init__(self, screen: RunScreen) -> None:
        self._screen = screen
        self._task: asyncio.Task[None] | None = None

    def run(self, line: str) -> bool:
        """Begin to run `line`. False: another one still runs."""
        if self._task is not None and not self._task.done():
            return False
        self._task = asyncio.create_task(self._run(line))
        return True

    async def close(self) -> None:
        """End what still runs, with everything that it started."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self, line: str) -> None:
        from handrail.tools.base import ToolContext, ToolError
        from handrail.tools.bash import BashArguments, BashTool

        screen = self._screen
        folders = [event.cwd for event in screen.on_files if isinstance(event, RunStarted)]
        context = ToolContext(Path(folders[-1]) if folders else Path.cwd(), screen.session.clock)
        screen.composer.note(f"runs: {one_line(line, 80)}")
        try:
            arguments = BashArguments.model_validate({"command": line, "timeout": _LIMIT_S})
            result = await BashTool().run(arguments, context)
            output = "".join(block.text for block in result.blocks if block.type == "text")
            failed = result.is_error
        except ToolError as error:
            output, failed = str(error), True
        screen.composer.note("")
        words = f"you ran: {line}   (yours alone: the model does not see it)\n{output}"
        screen.session.notice(words, level="warning" if failed else "info")
