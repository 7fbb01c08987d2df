"""Home: the stored sessions, those that need a person first, and a composer that starts a new run.

Nothing is resumed by itself (rule U7): enter does it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from textual import events, on, work
from textual.app import ComposeResult
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Input, OptionList, Static

from handrail.clock import Clock
from handrail.errors import ConfigError
from handrail.session.store import Store
from handrail.session.summary import SessionSummary
from handrail.toml import short_path
from handrail_tui.controller import stored_sessions
from handrail_tui.controller.actions import HOME_SLASH
from handrail_tui.controller.destinations import (
    Destination,
    OpenDemos,
    OpenHelp,
    OpenReplay,
    OpenRun,
    OpenStored,
    OpenThemes,
    OpenToRead,
)
from handrail_tui.screens.navigate import Navigate
from handrail_tui.sessions.model import NO_MODEL
from handrail_tui.view import listing
from handrail_tui.view.text import clean_for_terminal, local_time, money, one_line, plural
from handrail_tui.widgets import theming
from handrail_tui.widgets.bindings import bindings
from handrail_tui.widgets.composer import Composer
from handrail_tui.widgets.footer import KeyLine
from handrail_tui.widgets.question import Question
from handrail_tui.widgets.session_list import SessionList
from handrail_tui.widgets.transcript_rows import beside, styled

_LOOK_AGAIN_S: Final = 10.0


class HomeScreen(Screen[None]):
    """Where a person starts."""

    DEFAULT_CSS = Path(__file__).with_suffix(".tcss").read_text(encoding="utf-8")
    BINDINGS = bindings("home")

    def __init__(
        self,
        store: Store,
        folder: Path,
        clock: Clock,
        *,
        model: Callable[[], str | None] = lambda: None,
        demos: Callable[[], dict[str, Path]] = dict,
    ) -> None:
        """`folder` is where a new run works. `model` names the one that it would ask, None when none is set up."""
        super().__init__()
        self._store, self._folder, self._clock = store, folder, clock
        self._find_model, self._demos = model, demos
        self.model: str | None = None
        self._ready = False
        self._arrived = True
        self._sessions: Sequence[SessionSummary] = ()

    def compose(self) -> ComposeResult:
        yield Static(id="home--head")
        yield Static(id="home--empty")
        yield Input(placeholder="filter: title, folder, state or id", id="home--filter")
        yield SessionList()
        yield Static(id="home--detail")
        yield Question()
        yield Static(id="home--note")
        yield Composer(self._folder, lone={"question_mark": "screen.help"}, commands=HOME_SLASH)
        yield KeyLine(self)

    def on_mount(self) -> None:
        self.query_one("#home--filter").display = False
        self.tell("")
        self.sessions.focus()
        self.look()
        self.set_interval(_LOOK_AGAIN_S, self._look_again)

    def on_screen_resume(self) -> None:
        if self._ready:
            self._arrived = True
            self.look()

    @property
    def sessions(self) -> SessionList:
        return self.query_one(SessionList)

    @property
    def composer(self) -> Composer:
        return self.query_one(Composer)

    # What is kept -------------------------------------------------------------------------------------------

    @work(thread=True, exclusive=True, group="home-look")
    def look(self) -> None:
        """Read the list anew, in a thread."""
        found = listing.ordered(self._store.list())
        model = self.model or self._find_model()
        self.app.call_from_thread(self.show, found, model)

    def _look_again(self) -> None:
        if self.is_current:
            self.look()

    def show(self, found: Sequence[SessionSummary], model: str | None) -> None:
        """Show what was found."""
        self._ready = True
        self._sessions, self.model = found, model
        self.sessions.show(found, self._clock.now())
        self._refresh()
        if self._arrived:
            # Focus what is used next: the list, or the text that is being typed.
            types = not found or bool(self.composer.text)
            (self.composer.input if types else self.sessions).focus()
            self._arrived = False

    def _refresh(self) -> None:
        empty = self._ready and not self._sessions
        if empty:
            self.composer.lone["d"] = "screen.demos"
        else:
            self.composer.lone.pop("d", None)
        self.set_class(empty, "-empty")
        self.set_class(self._ready and self.model is None, "-no-model")
        self.query_one("#home--empty", Static).update(_begin(self.model) if empty else "")
        self._head()
        self._detail()

    def _head(self) -> None:
        width = max(20, self.app.size.width - 4)
        model = "" if not self._ready else one_line(self.model or "no model is set up", 60)
        folder = one_line(short_path(self._folder), 60)
        left = styled(("handrail", "bold $accent"), (f"  folder {folder}", "$dim"))
        self.query_one("#home--head", Static).update(beside(left, styled((model, "$foreground")), width))

    @on(OptionList.OptionHighlighted)
    def _marked(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        self._detail()

    def _detail(self) -> None:
        detail = self.query_one("#home--detail", Static)
        marked = self.sessions.marked
        if marked is None:
            words = "no match" if self._sessions else ""
            detail.update(styled((words, "$dim")))
            return
        detail.update(_told(marked, self._clock.now()))

    def on_resize(self) -> None:
        self.set_class(self.app.size.width < 60, "-narrow")
        self.set_class(self.app.size.height < 24, "-low")
        self._head()

    def tell(self, words: str) -> None:
        """What came of something; empty takes it away."""
        note = self.query_one("#home--note", Static)
        note.display = bool(words)
        note.update(Content(clean_for_terminal(words)))

    # Opening ------------------------------------------------------------------------------------------------

    def _open(self, destination: Destination, refused: Callable[[str], None] | None = None) -> None:
        self.tell("")
        self.post_message(Navigate(destination, refused or self.tell, self._take_back))

    def _take_back(self, text: str) -> None:
        """What was typed in a run and not sent there."""
        self.composer.give_back(text, "not sent in the run; enter starts a new run with it")

    @on(OptionList.OptionSelected)
    def _go_on(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if (marked := self.sessions.marked) is None:
            return
        if marked.running:
            note = f"Running in another terminal; shown as far as it is. To control it: {listing.next_step(marked)}"
            self._open(OpenToRead(marked.id, note))
        elif marked.outcome in ("completed", "submitted"):
            self._open(OpenStored(marked.id, or_read=True))
        else:
            self._open(OpenStored(marked.id))

    @on(Composer.Submitted)
    def _submitted(self, event: Composer.Submitted) -> None:
        event.stop()
        self._open(OpenRun(event.text, self._folder, self.model), event.refuse)

    @on(Composer.Shell)
    def _shell(self, event: Composer.Shell) -> None:
        event.stop()
        self.composer.give_back("!" + event.command, "Shell commands need a run; start one first.")

    @on(Composer.Command)
    def _command(self, event: Composer.Command) -> None:
        event.stop()
        match event.name:
            case "help":
                self.action_help()
            case "quit":
                self.action_quit()
            case "theme" if event.args:
                self.composer.note(theming.use(self.app, event.args))
            case "theme":
                self.post_message(Navigate(OpenThemes()))
            case "model" if event.args:
                self.model = event.args
                self._refresh()
            case "model":
                self.composer.note("/model provider/name: use this model for the next run")
            case name:
                self.composer.note(f"/{name} needs a run; start or open one first.")

    # Actions ------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action != "back":
            return True
        away = self.focused is not self.sessions or self.query_one("#home--filter").display
        return bool(self._sessions) and away

    def action_new(self) -> None:
        """Type what a new run is to do."""
        self.composer.input.focus()

    def action_demos(self) -> None:
        """The demo gallery."""
        self.post_message(Navigate(OpenDemos(self._demos())))

    def action_filter(self) -> None:
        """Narrow the list as one types."""
        field = self.query_one("#home--filter", Input)
        field.display = True
        field.focus()

    @on(Input.Changed, "#home--filter")
    def _narrow(self, event: Input.Changed) -> None:
        event.stop()
        self.sessions.narrow(event.value)
        self._detail()

    @on(Input.Submitted, "#home--filter")
    def _found(self, event: Input.Submitted) -> None:
        event.stop()
        self.sessions.action_select()

    def on_key(self, event: events.Key) -> None:
        """The arrows move in the list while the filter is being typed."""
        if self.focused is self.query_one("#home--filter") and event.key in ("up", "down"):
            event.stop()
            getattr(self.sessions, f"action_cursor_{event.key}")()

    def action_back(self) -> None:
        """Back to the whole list."""
        field = self.query_one("#home--filter", Input)
        field.value, field.display = "", False
        self.tell("")
        if self._sessions:
            self.sessions.focus()

    def action_replay(self) -> None:
        """Watch again what happened in the marked one."""
        if marked := self.sessions.marked:
            self._open(OpenReplay(marked.id))

    def action_fork(self) -> None:
        """A new session that begins as the marked one did."""
        if marked := self.sessions.marked:
            self._carry_out(lambda: stored_sessions.fork(self._store, marked, self._clock))

    def action_export(self) -> None:
        """Write the marked one to a file in the folder."""
        if marked := self.sessions.marked:
            words = f"Write {_named(marked)} to a file in {short_path(self._folder)}?"
            answers = {"m": "Markdown, to read", "j": "JSON lines, its events"}
            self.query_one(Question).ask(
                words,
                answers,
                lambda key: self._carry_out(
                    lambda: stored_sessions.export(
                        self._store, marked.id, "md" if key == "m" else "jsonl", self._folder
                    )
                ),
            )

    def action_delete(self) -> None:
        """Delete the marked session, after a question."""
        if marked := self.sessions.marked:
            words = f"Delete {_named(marked)}? Files that it changed stay."
            self.query_one(Question).ask(
                words,
                {"y": "delete"},
                lambda key: self._carry_out(lambda: stored_sessions.delete(self._store, marked)),
            )

    @work(thread=True, group="home-act")
    def _carry_out(self, act: Callable[[], str]) -> None:
        """Do something to a session in a thread, and say what came of it."""
        try:
            words = act()
        except (ConfigError, OSError) as error:
            words = str(error)
        self.app.call_from_thread(self.tell, words)
        self.app.call_from_thread(self.look)

    def action_palette(self) -> None:
        self.app.action_command_palette()

    def action_help(self) -> None:
        """The keys of what has focus, and the commands."""
        self.post_message(Navigate(OpenHelp(HOME_SLASH)))

    def action_quit(self) -> None:
        """Leave."""
        self.app.exit()


def _begin(model: str | None) -> Content:
    """What to do where nothing is kept yet."""
    lines = [
        styled(("No sessions yet.", "bold $foreground")),
        Content(""),
        styled("Describe a task; enter starts a run."),
        styled(("d", "bold $accent"), " plays a demo; no key or network needed."),
    ]
    if model is None:
        lines += [Content(""), styled((NO_MODEL[0].upper() + NO_MODEL[1:], "$waiting"))]
    return Content("\n").join(lines)


def _named(summary: SessionSummary) -> str:
    return f"“{title}”" if (title := one_line(summary.title, 40)) else summary.id


def _told(summary: SessionSummary, now: float) -> Content:
    """All that the list knows of a session."""
    details = [
        summary.id,
        one_line(summary.model, 60),
        one_line(short_path(Path(summary.cwd)), 60) if summary.cwd else "",
        f"started {local_time(summary.started, now, seconds=False)}",
        plural(summary.turns, "turn") if summary.turns else "",
        money(summary.cost) if summary.cost else "",
    ]
    first = styled((one_line(summary.title, 200) or "(no prompt)", "bold $foreground"))
    if summary.needs:
        first = styled(("asks: ", "$needs-you"), (one_line(summary.needs, 300), "$foreground"))
    return first + "\n" + styled(("  ·  ".join(detail for detail in details if detail), "$dim"))
