"""The run screen: a session on a terminal.

It folds the session's events into a view, lets widgets draw from it, and turns what a person does into commands
to the session. It holds no truth of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any, ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.reactive import reactive
from textual.widgets import Static

from handrail.events import Event, QueueChanged, RunStarted, ToolFinished
from handrail.providers.base import Provider
from handrail_tui.controller.actions import RunActions
from handrail_tui.controller.attention import Attention, attention_of
from handrail_tui.controller.choices import apply_choice
from handrail_tui.controller.commands import run_command
from handrail_tui.controller.shell import ShellLines
from handrail_tui.controller.subjects import facts, needs, subjects
from handrail_tui.sessions.session_protocol import Last, SessionPort
from handrail_tui.view.items import TranscriptItem
from handrail_tui.view.state import ViewChange, ViewState
from handrail_tui.widgets.cards.chosen import Choice
from handrail_tui.widgets.cards.guard import InputGuard
from handrail_tui.widgets.cards.host import CardHost
from handrail_tui.widgets.composer import Composer
from handrail_tui.widgets.footer import FooterKey, RunFooter, shown_key
from handrail_tui.widgets.header import RunHeader
from handrail_tui.widgets.reply import warm_up
from handrail_tui.widgets.search_bar import SearchBar
from handrail_tui.widgets.status import StatusColumn, StatusLine
from handrail_tui.widgets.throttle import Painter
from handrail_tui.widgets.transcript import Transcript
from handrail_tui.widgets.transcript_rows import styled

_TICK_S: Final = 0.25
_TWICE_S: Final = 3.0
_WARM_UP_S: Final = 0.5
_WIDE: Final = 100
_NARROW: Final = 60


class RunScreen(RunActions):
    """A run, from its prompt to its outcome, and the next one after it."""

    DEFAULT_CSS = Path(__file__).with_suffix(".tcss").read_text(encoding="utf-8")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "stop", "stop", id="run.stop"),
        Binding("ctrl+p", "palette", "palette", id="run.palette"),
        Binding("ctrl+r", "decisions", "decisions", id="run.decisions"),
        Binding("ctrl+t", "thinking", "thinking", id="run.thinking"),
        Binding("f1", "help", "help", id="run.help", key_display="?"),
        Binding("ctrl+q", "quit", "quit", id="run.quit"),
        Binding("ctrl+o", "sessions", "back", id="run.sessions"),
        Binding("ctrl+g", "changes", "changes", id="run.changes"),
        Binding("ctrl+f", "search", "find", id="run.search", priority=True),
        Binding("ctrl+c", "interrupt", "stop, then quit", show=False, id="run.interrupt"),
        Binding("pageup", "transcript('page', -1)", "page up", show=False, id="run.page_up"),
        Binding("pagedown", "transcript('page', 1)", "page down", show=False, id="run.page_down"),
        Binding("home,ctrl+home", "transcript('top')", "beginning", show=False, id="run.top"),
        Binding("end,ctrl+end", "transcript('follow')", "end, and follow it", show=False, id="run.follow"),
    ]

    acts: ClassVar[bool] = True
    """Whether this is a session that goes on, and no tale of one."""

    FIRST_KEYS: ClassVar[str] = "run."
    """How the ids of those keys begin that the last line shows first."""

    stopping: reactive[bool] = reactive(False)
    """A stop was asked for and the run has not ended yet: the key is answered at once (rule L9)."""

    def __init__(
        self,
        session: SessionPort,
        *,
        begin: Callable[[], Coroutine[Any, Any, Last]] | None = None,
        past: Iterable[Event] = (),
        home: str = "",
        journal: str = "",
        make_provider: Callable[[str], Provider] | None = None,
        guard: InputGuard | None = None,
        returns: bool = False,
    ) -> None:
        """`begin` starts the first run; without it the screen waits for a prompt. `past` stands above it.

        `home` is shown as `~`, `journal` is where the session is kept, `make_provider` makes another model's
        provider by its name. `returns`: there is a list of sessions to go back to.
        """
        super().__init__()
        self.session, self.view = session, ViewState()
        self.make_provider = make_provider
        self.last: Last | None = None
        self.leaving = False
        self.unsent = ""
        self.patient_since: float | None = None
        self.on_files: list[Event] = []
        """What of the story is about files: where they lie, and each diff."""
        self.journal, self.returns = journal, returns
        self._begin, self._past, self._home = begin, past, home
        self._going_back, self._asked = False, ""
        self._guard = guard or InputGuard()
        self._touched: dict[TranscriptItem, None] = {}
        self._painter: Painter | None = None
        self._attention: Attention | None = None
        self._shell_lines = ShellLines(self)
        self._unlisten: Callable[[], None] = lambda: None

    def compose(self) -> ComposeResult:
        clock = self.session.clock
        yield RunHeader(self.view, self._home)
        transcript = Transcript()
        with Horizontal(id="run--body"):
            yield transcript
            yield StatusColumn(self.view, clock)
        yield Static(id="run--more")
        yield SearchBar(transcript)
        yield CardHost(clock, self._guard)
        yield StatusLine(self.view, clock)
        yield Composer(Path.cwd(), self._guard, lone={"question_mark": "screen.help"})
        yield RunFooter(self.view, self.footer_keys)

    def on_mount(self) -> None:
        self.composer.attach(self.query_one(CardHost))
        self.composer.input.focus()
        self._painter = Painter(self.paint)
        self._attention = attention_of(self.app)
        self._unlisten = self.session.listen(self.on_session_event)
        self.set_interval(_TICK_S, self.tick)
        self.set_timer(_WARM_UP_S, warm_up)
        self.recall(self._past)
        if self._begin is not None:
            self.drive(self._begin())

    async def on_unmount(self) -> None:
        self._unlisten()
        await self._shell_lines.close()
        if self._painter is not None:
            self._painter.close()
        if self._attention is not None:
            self._attention.close()

    @property
    def composer(self) -> Composer:
        return self.query_one(Composer)

    @property
    def transcript(self) -> Transcript:
        return self.query_one(Transcript)

    # Runs ---------------------------------------------------------------------------------------------------

    def drive(self, run: Coroutine[Any, Any, Last]) -> None:
        """Carry a run in the background."""
        self.run_worker(self._carry(run), name="run")

    async def _carry(self, run: Coroutine[Any, Any, Last]) -> None:
        self.last = await run
        self.stopping = False
        if self.leaving:
            self.leave()
        self.tick()

    def leave(self) -> None:
        """Give the terminal back. What was typed and not sent is kept for the last line."""
        if self.is_attached:
            self.unsent = self.composer.text
        if self._going_back:
            self.dismiss(None)
        else:
            self.app.exit(self.last)

    # Events in ----------------------------------------------------------------------------------------------

    def on_session_event(self, event: Event) -> None:
        """Fold one event. Drawing comes later: a thousand deltas cost a thousand folds and a few paints."""
        if self._fold(event).card:
            self.show_cards()
        if isinstance(event, QueueChanged) and event.returned:
            words = "\n\n".join(message.text for message in event.returned)
            self.composer.give_back(words, "not delivered: it is yours again")
        if isinstance(event, RunStarted):
            self.transcript.has_output = self.view.header.has_output
            if event.cwd:
                self.composer.look_in(Path(event.cwd))
        if self._painter is not None:
            self._painter.ask()

    def _fold(self, event: Event) -> ViewChange:
        change = self.view.apply(event)
        if change.item is not None:
            self._touched[change.item] = None
        if isinstance(event, RunStarted) or (isinstance(event, ToolFinished) and event.diff):
            self.on_files.append(event)
        return change

    def recall(self, past: Iterable[Event]) -> None:
        """Fold what happened before. Nothing of it is answered, and nothing is given back a second time."""
        for event in past:
            self._fold(event)
        self.transcript.has_output = self.view.header.has_output
        if self._painter is not None:
            self._painter.ask()

    def forget(self) -> None:
        """Empty the screen: the story is told again."""
        self.view.clear()
        self.on_files.clear()
        self._touched.clear()
        self.transcript.clear()

    def paint(self) -> None:
        """Bring the widgets in line with the view."""
        if not self.is_attached:
            return
        for item in self._touched:
            self.transcript.touch(item)
        self._touched.clear()
        self.transcript.paint(self.session.clock.now())
        self.refresh_facts()

    def refresh_facts(self) -> None:
        """Draw again what stands around the transcript."""
        for widget in (RunHeader, StatusColumn, StatusLine, RunFooter):
            self.query_one(widget).refresh()

    def tick(self) -> None:
        """What changes with time alone: durations, a stall."""
        if not self.is_attached:
            return
        attempt = self.view.turns.attempt
        if attempt is not None and self.view.turns.current is not None:
            live = attempt.batch is not None and attempt.batch.seconds is None
            if live or attempt.streaming:
                self._touched[self.view.turns.current] = None
        self.show_cards()
        self.paint()

    def watch_stopping(self, stopping: bool) -> None:
        for widget in self.query(StatusColumn):
            widget.stopping = stopping
        for line in self.query(StatusLine):
            line.stopping = stopping
        if self.is_attached:
            self.refresh_facts()
            self.refresh_bindings()

    # Cards --------------------------------------------------------------------------------------------------

    def show_cards(self) -> None:
        """Bring the card above the composer in line with what is open."""
        now = self.session.clock.now()
        open_now = subjects(self.view, now, self.patient_since)
        self.query_one(CardHost).show(open_now, facts(self.view, self.journal))
        if self._attention is not None:
            self._attention.show(needs(self.view))
        waiting = self.view.phase in ("waiting", "needs-you", "approval")
        self.composer.mode = "idle" if not self.session.running else "waiting" if waiting else "running"
        self.refresh_bindings()

    @on(Choice)
    def _chosen(self, event: Choice) -> None:
        event.stop()
        apply_choice(self, event)
        self.show_cards()

    # Composer -----------------------------------------------------------------------------------------------

    @on(Composer.Submitted)
    def _submitted(self, event: Composer.Submitted) -> None:
        event.stop()
        if not self.session.running:
            self.drive(self.session.run(event.text))
        elif event.kind == "follow_up":
            self.session.follow_up(event.text)
        else:
            self.session.steer(event.text)
        self.transcript.action_follow()

    @on(Composer.Command)
    def _command(self, event: Composer.Command) -> None:
        event.stop()
        self.composer.note(run_command(self, event.name, event.args))

    @on(Composer.Shell)
    def _shell(self, event: Composer.Shell) -> None:
        event.stop()
        if not self._shell_lines.run(event.command):
            self.composer.give_back("!" + event.command, "one shell line at a time; the last one still runs")

    def on_key(self, event: events.Key) -> None:
        """A letter typed while the transcript has the focus is meant for the composer."""
        if self.focused is not self.transcript or self.composer.disabled:
            return
        if event.is_printable and event.character:
            event.stop()
            self.composer.input.focus()
            self.composer.input.type_character(event.character)

    # Actions ------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "stop":
            return self.session.running and not self.stopping
        return self.returns if action == "sessions" else True

    def action_stop(self) -> None:
        """Stop the run; what was said is kept, so is what stands in the composer."""
        if self.session.running:
            self.stopping = True
            self.session.stop()

    def action_interrupt(self) -> None:
        """Copy what is selected; else stop a run; when there is none, or it is stopping, quit.

        Unsent words are not thrown away at once.
        """
        if selected := self._selected():
            self.app.copy_to_clipboard(selected)
            self.clear_selection()
        elif self.session.running and not self.stopping:
            self.action_stop()
        elif self.composer.text.strip() and not self.session.running and self._asked != "quit":
            self._ask_twice("quit", "ctrl+c again quits; this was not sent yet")
        else:
            self.action_quit()

    def _selected(self) -> str | None:
        """The text that is marked with the mouse; Textual trips over some marks (its issue 6708)."""
        try:
            return self.get_selected_text()
        except IndexError:
            return None

    def _ask_twice(self, what: str, words: str) -> None:
        """Something that a slip of the finger should not do: the same key within a few seconds does it."""
        self._asked = what
        self.composer.note(words)
        self.set_timer(_TWICE_S, self._stay)

    def _stay(self) -> None:
        self._asked = ""

    def action_quit(self) -> None:
        """Leave. A run is suspended and can be resumed (rule J7)."""
        self._going_back = False
        self.suspend_and_leave(None)

    def action_sessions(self) -> None:
        """Back to the list. A run is suspended for that."""
        if self.session.running and self._asked != "sessions":
            after = "is suspended and can be resumed" if self.journal else "ends"
            self._ask_twice("sessions", f"again goes back; this run {after}")
            return
        self._going_back = True
        self.suspend_and_leave(None)

    def suspend_and_leave(self, signal: str | None) -> None:
        """Suspend a run and leave as soon as it has ended; the second time, at once. A signal ends the program."""
        self._going_back = self._going_back and signal is None
        if not self.session.running or self.leaving:
            self.leave()
            return
        self.leaving = True
        self.composer.note("suspending …")
        self.session.suspend(signal)

    def footer_keys(self) -> list[FooterKey]:
        """The bindings that are shown, in the order in which they were declared."""
        found: dict[str | None, FooterKey] = {}
        idle = self.acts and not self.session.running
        needed = {"run.help", "run.quit" if idle else "run.stop"}
        for active in self.active_bindings.values():
            binding = active.binding
            if active.node is self and binding.show and active.enabled:
                key = FooterKey(shown_key(binding), binding.description, binding.id in needed)
                found.setdefault(binding.id, key)
        first = [keys for id, keys in found.items() if (id or "").startswith(self.FIRST_KEYS)]
        return first + [keys for keys in found.values() if keys not in first]

    # Layout -------------------------------------------------------------------------------------------------

    def on_resize(self, event: events.Resize) -> None:
        folded = event.size.width < _WIDE
        self.set_class(folded, "-folded")
        self.set_class(event.size.width < _NARROW, "-narrow")
        self.set_class(event.size.height < 30, "-low")
        column = self.query_one(StatusColumn)
        width = min(52, max(40, event.size.width * 36 // 100))
        column.styles.width = width
        self.query_one(RunHeader).column = 0 if folded else width

    @on(Transcript.Moved)
    def _moved(self, event: Transcript.Moved) -> None:
        event.stop()
        more = self.query_one("#run--more", Static)
        words = f"↓ {event.below} new" if event.below else "↓"
        more.update(styled(words, ("   end follows", "$dim")))
        more.set_class(not event.following, "-shown")

    @on(events.Click, "#run--more")
    def _clicked_more(self) -> None:
        self.transcript.action_follow()
