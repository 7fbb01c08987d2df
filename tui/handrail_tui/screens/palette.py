"""The run screen's actions in the command palette."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider

from handrail.policy import Approve
from handrail_tui.controller.choices import another_model
from handrail_tui.controller.commands import take_back

if TYPE_CHECKING:
    from handrail_tui.screens.run import RunScreen

_MODES: Final[dict[Approve, str]] = {
    "ask": "what changes or runs things asks first",
    "edits": "edits run, commands ask",
    "all": "nothing asks",
}


class RunCommands(Provider):
    """What can be done now."""

    def _commands(self) -> Iterator[tuple[str, str, Callable[[], object]]]:
        screen = cast("RunScreen", self.screen)
        session, view = screen.session, screen.view
        if session.running:
            yield "Stop", "end the run; what was said is kept", screen.action_stop
        if screen.returns:
            yield "Sessions", "back to the list", screen.action_sessions
        yield "Changes", "files that the run touched; undo of a turn", screen.action_changes
        yield "Find", "words in the transcript", screen.action_search
        yield "Decisions", "each with its evidence", screen.action_decisions
        yield "Thinking", "open or fold all thoughts", screen.action_thinking
        on = view.meters.recovery
        yield (
            f"Recovery {'off' if on else 'on'}",
            "of broken replies and limits",
            lambda: session.set_recovery(not on),
        )
        yield "Ten more turns", "raise the turn limit", lambda: session.raise_bounds(max_turns=10)
        yield "Compact", "summarise older turns before the next request", session.compact
        for mode, words in (
            ("ask", "everything asks first"),
            ("edits", "edits run, the rest asks"),
            ("all", "nothing asks"),
        ):
            if view.header.approve != mode:
                yield f"Approve {mode}", words, lambda mode=mode: session.set_approve(mode)  # type: ignore[misc]
        if view.steering or view.follow_ups:
            yield "Queue", "edit, reorder, withdraw what waits", screen.action_queue
            yield "Take back", "the newest of the queue, for editing", lambda: take_back(screen)
        if screen.make_provider is not None:
            yield "Model", "another one, from the next request on", lambda: another_model(screen)
        yield "Help", "keys and commands", screen.action_help
        if session.running:
            yield "Suspend and quit", "the run can be resumed", screen.action_quit
        else:
            yield "Quit", "give the terminal back", screen.action_quit

    async def discover(self) -> Hits:
        for name, words, call in self._commands():
            yield DiscoveryHit(name, call, help=words)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for name, words, call in self._commands():
            if (score := matcher.match(name)) > 0:
                yield Hit(score, matcher.highlight(name), call, help=words)
