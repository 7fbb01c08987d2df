"""What a person can do to a run: the controller behind the run screen. No widget and no Textual in it.

Events go in, commands to the session come out. Whatever shows the run is a `RunDisplay`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

from handrail.errors import ConfigError
from handrail.events import Event, QueueChanged, RunEnded
from handrail.policy import Approve
from handrail.providers.base import Provider
from handrail.session.protocol import SessionProtocol
from handrail_tui.controller import actions, cards
from handrail_tui.controller._display import RunDisplay
from handrail_tui.controller._shell import ShellLines
from handrail_tui.controller.changes import FileEvents, RunChanges
from handrail_tui.controller.destinations import (
    OpenChanges,
    OpenDecisions,
    OpenHelp,
    OpenModels,
    OpenQueue,
    OpenServers,
    OpenThemes,
)
from handrail_tui.view.state import ViewChange, ViewState
from handrail_tui.view.text import one_line

ComposerMode: TypeAlias = Literal["idle", "running", "waiting"]
SendKind: TypeAlias = Literal["steer", "follow_up", "prompt"]
TWICE_S: Final = 3.0
"""Seconds within which a key that leaves must be pressed again."""


RETURNED: Final = "taken back from the queue; enter sends it again"


@dataclass(frozen=True, slots=True)
class PaletteEntry:
    """One row of the command palette: what is shown, and the action that it performs."""

    title: str
    help: str
    action: str
    args: str = ""


class RunController:
    """A session and its view, and everything that a person can do to them."""

    def __init__(
        self,
        session: SessionProtocol,
        display: RunDisplay,
        *,
        journal: str = "",
        make_provider: Callable[[str], Provider] | None = None,
        returns: bool = False,
        read_only: bool = False,
    ) -> None:
        """`journal` is the path of the session; empty: it is not stored.

        `make_provider` makes the provider of another model by its name. `returns`: there is a list of sessions to
        go back to. `read_only`: this is a past run, and no choice changes it.
        """
        self.session, self.view = session, ViewState()
        self.journal, self.make_provider = journal, make_provider
        self.returns, self.read_only = returns, read_only
        self.last: RunEnded | None = None
        self.stopping = False
        """A stop was asked for and the run has not ended yet: the key is answered at once (rule L9)."""
        self.leaving = False
        self._display = display
        self._files = FileEvents()
        self._shell = ShellLines(session, lambda: self._files.folder, self.note)
        self._going_back, self._asked = False, ""
        self._patient_since: float | None = None

    # Events -------------------------------------------------------------------------------------------------

    def fold(self, event: Event) -> ViewChange:
        """Fold an event of the past: nothing of it is answered, and nothing is given back a second time."""
        self._files.add(event)
        return self.view.apply(event)

    def on_event(self, event: Event) -> ViewChange:
        """Fold an event as it happens. Messages that were not delivered go back to the composer (rule L8)."""
        change = self.fold(event)
        if isinstance(event, QueueChanged) and event.returned:
            words = "\n\n".join(message.text for message in event.returned)
            self._display.give_back(words, "not delivered; edit it or send it again")
        return change

    def clear(self) -> None:
        """Forget the run: it will be told again."""
        self.view.clear()
        self._files.clear()

    def drive(self, run: Coroutine[Any, Any, RunEnded]) -> None:
        """Carry a run in the background."""
        self._display.drive(self._carry(run))

    async def _carry(self, run: Coroutine[Any, Any, RunEnded]) -> None:
        self.last = await run
        self.stopping = False
        if self.leaving:
            self._display.leave(back=self._going_back)
        self._display.refresh_state()

    async def close(self) -> None:
        """End the shell line that still runs."""
        await self._shell.close()

    # What is due --------------------------------------------------------------------------------------------

    def triggers(self) -> list[cards.CardTrigger]:
        """What a card is due for now."""
        return cards.open_triggers(self.view, self.session.clock.now(), self._patient_since)

    def card_context(self) -> cards.CardContext:
        """What cards show beside their trigger."""
        return cards.card_context(self.view, self.journal)

    def needs(self) -> dict[str, str]:
        """What needs a person now, in words, by its id."""
        return cards.needs(self.view)

    @property
    def composer_mode(self) -> ComposerMode:
        """What typing does now: begins a run, steers it, or is queued."""
        if not self.session.running:
            return "idle"
        return "waiting" if self.view.phase in ("waiting", "needs-you", "approval") else "running"

    # What a person says -------------------------------------------------------------------------------------

    def submit(self, text: str, kind: SendKind) -> None:
        """Text was sent: a prompt when nothing runs, else steering or a follow-up (rule L8)."""
        if not self.session.running:
            self.drive(self.session.run(text))
        elif kind == "follow_up":
            self.session.follow_up(text)
        else:
            self.session.steer(text)

    def run_shell(self, line: str) -> None:
        """Run a shell line of the person."""
        if not self._shell.run(line):
            self._display.give_back("!" + line, "one shell line at a time; the last one still runs")

    def command(self, name: str, args: str) -> None:
        """Carry out a slash command."""
        self.note(self.perform(actions.SLASH[name].name, args))

    def choose(self, choice: cards.Choice) -> None:
        """Carry out what was chosen on a card."""
        if not self.read_only:
            cards.apply(choice, self)

    def note(self, words: str) -> None:
        """A line below the composer; empty takes it away."""
        self._display.note(words)

    def wait_patiently(self) -> None:
        """Show no card for the stall that there is now."""
        self._patient_since = self.view.last_data_at

    def close_card(self) -> None:
        """Take the card away."""
        self._display.close_card()

    # Actions: `act_NAME` carries out `run.NAME` of the registry ----------------------------------------------

    def perform(self, name: str, args: str = "") -> str:
        """Carry out the action `run.NAME`; returns what to say about it, if anything."""
        act: Callable[[str], str | None] = getattr(self, f"act_{name}")
        return act(args) or ""

    def enabled(self, name: str) -> bool:
        """Whether the key of `run.NAME` does something now."""
        match name:
            case "stop":
                return self.session.running and not self.stopping and not self.read_only
            case "sessions":
                return self.returns and not self.read_only
        return True

    def palette(self) -> Iterator[PaletteEntry]:
        """What the command palette lists now."""
        for action in actions.palette():
            if not self._listed(action.name):
                continue
            if action.each:
                current = self._current(action.name)
                for choice, words in action.choices.items():
                    if choice != current:
                        yield PaletteEntry(f"{action.title} {choice}", words, action.name, choice)
                continue
            title = action.title
            if action.name == "quit" and self.session.running:
                title = "Suspend and quit"
            yield PaletteEntry(title, action.help, action.name, action.palette_args)

    def _listed(self, name: str) -> bool:
        match name:
            case "queue" | "take_back":
                return bool(self.view.steering or self.view.follow_ups)
            case "mcp":
                return self.session.tool_source is not None
            case "another_model":
                return self.make_provider is not None
        return self.enabled(name)

    def _current(self, name: str) -> str:
        if name == "approve":
            return self.view.header.approve
        return "on" if self.view.meters.recovery else "off"

    def act_stop(self, args: str) -> str | None:
        """Stop the run; what was said stays, so does what is in the composer."""
        if not self.session.running:
            return "nothing runs"
        self.stopping = True
        self.session.stop()
        self._display.refresh_state()
        return None

    def act_interrupt(self, args: str) -> None:
        """Copy what is selected; else stop a run; when there is none, or it is stopping, quit.

        Unsent words need a second press.
        """
        if self._display.copy_selection():
            return
        running = self.session.running
        if running and not self.stopping:
            self.act_stop("")
        elif self._display.draft.strip() and not running and self._asked != "quit":
            self._ask_twice("quit", "press ctrl+c again to quit; your text was not sent")
        else:
            self.act_quit("")

    def act_quit(self, args: str) -> None:
        """Leave. A run is suspended and can be resumed (rule J7)."""
        self._going_back = False
        self.suspend_and_leave(None)

    def act_sessions(self, args: str) -> str | None:
        """Back to the list of sessions. A run is suspended for that."""
        if not self.returns:
            return "run handrail without a command to list the sessions"
        if self.session.running and self._asked != "sessions":
            after = "is suspended and can be resumed" if self.journal else "ends"
            words = f"press again to go back; this run {after}"
            self._ask_twice("sessions", words)
            return words
        self._going_back = True
        self.suspend_and_leave(None)
        return None

    def suspend_and_leave(self, signal: str | None) -> None:
        """Suspend a run and leave as soon as it has ended; the second time, at once. A signal ends the program."""
        self._going_back = self._going_back and signal is None
        if not self.session.running or self.leaving:
            self._display.leave(back=self._going_back)
            return
        self.leaving = True
        self.note("suspending …")
        self.session.suspend(signal)

    def leave_now(self) -> None:
        """Leave, whatever still runs."""
        self._display.leave(back=self._going_back)

    def _ask_twice(self, what: str, words: str) -> None:
        """A slip of the finger must not do this: the same key within a few seconds does."""
        self._asked = what
        self.note(words)
        self._display.after(TWICE_S, self._stay)

    def _stay(self) -> None:
        self._asked = ""

    def act_another_model(self, args: str) -> None:
        """Show the models that can be used, to choose one from the next request on."""
        self._display.navigate(OpenModels(self.view.header.model, self._use_model))

    def _use_model(self, name: str) -> str:
        said = self.act_model(name) or f"{one_line(name, 80)} from the next request on"
        self.note(said)
        return said

    def act_model(self, args: str) -> str | None:
        """Show or change the model."""
        if not args:
            self.act_another_model(args)
            return None
        if self.make_provider is None:
            return "the model of this run cannot be changed"
        try:
            self.session.set_provider(self.make_provider(args))
        except (ConfigError, ValueError) as error:
            return one_line(str(error), 300)
        return None

    def act_bounds(self, args: str) -> str | None:
        """Show or raise the turn limit."""
        m = self.view.meters
        if not args:
            return f"turn {m.turn} of {m.max_turns}; /bounds +10 allows ten more"
        if not re.fullmatch(r"\+\d{1,6}", args) or int(args) == 0:
            return f"/bounds takes +N, as in +10, not {one_line(args, 40)}"
        self.session.raise_bounds(max_turns=int(args))
        return None

    def act_approve(self, args: str) -> str | None:
        """Show or change which calls ask first."""
        if not args:
            return f"approval: {self.view.header.approve}; /approve ask|edits|all changes it"
        self.session.set_approve(cast("Approve", args))
        return None

    def act_recovery(self, args: str) -> None:
        """Turn recovery on or off; without a word, the other way round."""
        self.session.set_recovery(args != "off" if args else not self.view.meters.recovery)

    def act_compact(self, args: str) -> str:
        """Summarise older turns."""
        self.session.compact()
        return "older turns are summarised before the next request"

    def act_mcp(self, args: str) -> str | None:
        """Show the MCP servers, or switch one on or off."""
        source = self.session.tool_source
        if source is None:
            return "no MCP server is used here; handrail mcp add sets one up"
        if not args:
            self._display.navigate(OpenServers(source))
            return None
        word, _, name = args.partition(" ")
        if word not in ("on", "off") or not name.strip():
            return f"/mcp takes on NAME or off NAME, not {one_line(args, 40)}"
        try:
            source.switch(name.strip(), word == "on")
        except KeyError:
            known = ", ".join(status.name for status in source.statuses())
            return f"there is no server {one_line(name, 40)}; there are {known}"
        return f"{one_line(name, 40)} is switched {word}, from the next request on"

    def act_queue(self, args: str) -> None:
        """Show the queued messages."""
        self._display.navigate(OpenQueue(self.session, self.view))

    def act_take_back(self, args: str) -> str:
        """The newest queued message, back for editing."""
        queued = [*self.view.steering, *self.view.follow_ups]
        message = self.session.withdraw(queued[-1].id) if queued else None
        if message is None:
            return "nothing is queued"
        self.returned(message.text)
        return RETURNED

    def returned(self, words: str) -> None:
        """Words came back from the queue."""
        self._display.give_back(words, RETURNED)

    def act_changes(self, args: str) -> None:
        """Show the files that the run changed."""
        if self.read_only:
            why_not = "This run is only shown. To undo a turn: handrail changes --undo."
        else:
            why_not = "Stop the run first: a tool may be writing these files." if self.session.running else ""
        found = RunChanges(self.session, self._files.folder, self._files.changes(), why_not)
        self._display.navigate(OpenChanges(found))

    def act_decisions(self, args: str) -> None:
        """Show each decision and its evidence."""
        self._display.navigate(OpenDecisions(self.view))

    def act_help(self, args: str) -> None:
        """Show the keys of what has focus, and the commands."""
        self._display.navigate(OpenHelp(tuple(actions.SLASH)))

    def act_theme(self, args: str) -> str | None:
        """Choose the colours."""
        if args:
            return self._display.use_theme(args)
        self._display.navigate(OpenThemes())
        return None

    def act_export(self, args: str) -> str:
        """Write the session to a file in its folder."""
        from handrail.session.store import Store
        from handrail_tui.controller import stored_sessions

        header = self.view.header
        if not self.journal:
            return "this session is not stored, so it cannot be exported"
        form: Literal["md", "jsonl"] = "jsonl" if args == "jsonl" else "md"
        try:
            return stored_sessions.export(Store(), header.session, form, Path(header.cwd))
        except (ConfigError, OSError) as error:
            return one_line(str(error), 300)

    def act_search(self, args: str) -> None:
        """Search the transcript."""
        self._display.show_search()

    def act_thinking(self, args: str) -> None:
        """Open or fold all thinking."""
        self._display.toggle_thinking()

    def act_palette(self, args: str) -> None:
        """Open the command palette."""
        self._display.show_palette()
