"""Shell lines of the person: run in the folder of the run, shown in its transcript, never sent to the model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

from handrail.session.protocol import SessionProtocol
from handrail_tui.view.text import one_line

_LIMIT_S: Final = 600.0


class ShellLines:
    """Runs one line at a time. Its output becomes a notice of the session, so a resume shows it too."""

    def __init__(
        self, session: SessionProtocol, folder: Callable[[], Path], note: Callable[[str], object]
    ) -> None:
        """`folder` is where a line runs, `note` shows what runs now; empty takes it away."""
        self._session, self._folder, self._note = session, folder, note
        self._task: asyncio.Task[None] | None = None

    def run(self, line: str) -> bool:
        """Start `line`. False: another one still runs."""
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

        context = ToolContext(self._folder(), self._session.clock)
        self._note(f"running: {one_line(line, 80)}")
        try:
            arguments = BashArguments.model_validate({"command": line, "timeout": _LIMIT_S})
            result = await BashTool().run(arguments, context)
            output = "".join(block.text for block in result.blocks if block.type == "text")
            failed = result.is_error
        except ToolError as error:
            output, failed = str(error), True
        self._note("")
        words = f"you ran: {line}   (the model does not see it)\n{output}"
        self._session.notice(words, level="warning" if failed else "info")
