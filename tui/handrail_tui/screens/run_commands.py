"""The slash commands and the palette of the run screen."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider

from handrail.errors import ConfigError
from handrail_tui.port import Mode
from handrail_tui.text import one_line

if TYPE_CHECKING:
    from handrail_tui.screens.run import RunScreen

_MODES: Final[dict[Mode, str]] = {
    "ask": "what changes or runs things asks first",
    "edits": "edits run, commands ask",
    "all": "nothing asks",
}


def run_command(screen: RunScreen, name: str, args: str) -> str:
    """Carry out a slash command; returns what to say about it, if anything."""
    session = screen.session
    match name:
        case "stop":
            screen.action_stop()
        case "help":
            screen.action_help()
        case "quit":
            screen.action_quit()
        case "decisions":
            screen.action_decisions()
        case "compact":
            session.compact()
            return "older turns are summarised before the next request"
        case "recovery":
            session.set_recovery(args != "off" if args else not screen.view.meters.recovery)
        case "approve":
            if not args:
                return f"approval: {screen.view.header.approve}; /approve ask|edits|all changes it"
            session.set_approve(cast("Mode", args))
        case "bounds":
            return _bounds(screen, args)
        case "queue":
            return _take_back(screen)
        case "model":
            return _model(screen, args)
        case "theme":
            return _theme(screen, args)
        case _:
            return f"/{name} works from the command line: handrail {name}"
    return ""


def _bounds(screen: RunScreen, args: str) -> str:
    m = screen.view.meters
    if not args:
        return f"turn {m.turn} of {m.max_turns}; /bounds +10 allows ten more"
    if not re.fullmatch(r"\+\d{1,6}", args) or int(args) == 0:
        return f"/bounds takes +N, as in +10, not {one_line(args, 40)}"
    screen.session.raise_bounds(max_turns=int(args))
    return ""


def _take_back(screen: RunScreen) -> str:
    """The newest message of the queue, back for editing."""
    waiting = [*screen.view.steering, *screen.view.follow_ups]
    message = screen.session.withdraw(waiting[-1].id) if waiting else None
    if message is None:
        return "nothing is queued"
    screen.composer.give_back(message.text)
    return "taken back from the queue; enter sends it again"


def _model(screen: RunScreen, args: str) -> str:
    if not args:
        return f"model: {screen.view.header.model}; /model provider/name changes it"
    if screen.make_provider is None:
        return "the model of this run cannot be changed"
    try:
        screen.session.set_provider(screen.make_provider(args))
    except (ConfigError, ValueError) as error:
        return one_line(str(error), 300)
    return ""


def _theme(screen: RunScreen, args: str) -> str:
    if not args:
        screen.app.search_themes()
        return ""
    if args not in screen.app.available_themes:
        return f"there is no theme {one_line(args, 40)}; there are {', '.join(sorted(screen.app.available_themes))}"
    screen.app.theme = args
    return ""


class RunCommands(Provider):
    """The run screen's actions in the command palette."""

    def _commands(self) -> Iterator[tuple[str, str, Callable[[], object]]]:
        screen = cast("RunScreen", self.screen)
        session, view = screen.session, screen.view
        if session.running:
            yield "Stop", "end the run; what was said is kept", screen.action_stop
            yield "Suspend and quit", "the run can be resumed", screen.action_quit
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
            yield "Take back", "the newest of the queue, for editing", lambda: _take_back(screen)
        yield "Help", "keys and commands", screen.action_help

    async def discover(self) -> Hits:
        for name, words, call in self._commands():
            yield DiscoveryHit(name, call, help=words)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for name, words, call in self._commands():
            if (score := matcher.match(name)) > 0:
                yield Hit(score, matcher.highlight(name), call, help=words)
