"""The slash commands of the run screen."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from handrail.errors import ConfigError
from handrail.policy import Approve
from handrail_tui.view.text import one_line
from handrail_tui.widgets import theming

if TYPE_CHECKING:
    from handrail_tui.screens.run import RunScreen


def run_command(screen: RunScreen, name: str, args: str) -> str:
    """Carry out a slash command; returns what to say about it, if anything."""
    session = screen.session
    match name:
        case "stop" if not session.running:
            return "nothing runs"
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
            session.set_approve(cast("Approve", args))
        case "bounds":
            return _bounds(screen, args)
        case "queue":
            screen.action_queue()
        case "changes":
            screen.action_changes()
        case "search":
            screen.action_search()
        case "sessions" if screen.returns:
            screen.action_sessions()
        case "sessions":
            return "handrail, without a command, lists the sessions"
        case "export":
            return _export(screen, "jsonl" if args == "jsonl" else "md")
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


def take_back(screen: RunScreen) -> str:
    """The newest message of the queue, back for editing."""
    waiting = [*screen.view.steering, *screen.view.follow_ups]
    message = screen.session.withdraw(waiting[-1].id) if waiting else None
    if message is None:
        return "nothing is queued"
    screen.composer.give_back(message.text)
    return "taken back from the queue; enter sends it again"


def _export(screen: RunScreen, form: Literal["md", "jsonl"]) -> str:
    from handrail.session.store import Store
    from handrail_tui.controller import home_actions

    header = screen.view.header
    if not screen.journal:
        return "this run is not kept, so there is nothing to write"
    try:
        return home_actions.export(Store(), header.session, form, Path(header.cwd))
    except (ConfigError, OSError) as error:
        return one_line(str(error), 300)


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
    if args not in (names := theming.names(screen.app)):
        return f"there is no theme {one_line(args, 40)}; there are {', '.join(names)}"
    screen.app.theme = args
    return ""
