"""The run screen: a session on a terminal.

Widgets, and a thin binding to the controller: events in, drawing out, keys and messages on to `RunController`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any, ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.screen import Screen
from textual.widgets import Static

from handrail.events import Event, RunEnded, RunStarted
from handrail.providers.base import Provider
from handrail.session.protocol import SessionProtocol
from handrail_tui.controller.attention import Attention
from handrail_tui.controller.destinations import Destination
from handrail_tui.controller.run import RunController
from handrail_tui.screens._terminal import attention_of
from handrail_tui.screens.navigate import Navigate
from handrail_tui.view.items import TranscriptItem
from handrail_tui.view.state import ViewChange, ViewState
from handrail_tui.widgets import theming
from handrail_tui.widgets.bindings import bindings
from handrail_tui.widgets.cards.base import Card
from handrail_tui.widgets.cards.guard import InputGuard
from handrail_tui.widgets.cards.host import CardHost
from handrail_tui.widgets.composer import Composer
from handrail_tui.widgets.drawn import Drawn
from handrail_tui.widgets.footer import FooterKey, RunFooter, shown_key
from handrail_tui.widgets.header import RunHeader
from handrail_tui.widgets.reply import warm_up
from handrail_tui.widgets.search_bar import SearchBar
from handrail_tui.widgets.status import StatusColumn, StatusLine
from handrail_tui.widgets.throttle import Throttle
from handrail_tui.widgets.transcript import Transcript
from handrail_tui.widgets.transcript_rows import styled

_TICK_S: Final = 0.25
_WARM_UP_S: Final = 0.5
_WIDE: Final = 100
_NARROW: Final = 60


class RunScreen(Screen[None]):
    """A run, from its prompt to its outcome, and the next one after it. It is the `RunDisplay` of its controller."""

    DEFAULT_CSS = Path(__file__).with_suffix(".tcss").read_text(encoding="utf-8")
    BINDINGS = bindings("run")

    READ_ONLY: ClassVar[bool] = False
    """Whether this shows a past run, and no choice changes it."""

    FIRST_KEYS: ClassVar[str] = "run."
    """The prefix of the ids whose keys the footer shows first."""

    def __init__(
        self,
        session: SessionProtocol,
        *,
        begin: Callable[[], Coroutine[Any, Any, RunEnded]] | None = None,
        past: Iterable[Event] = (),
        home: str = "",
        journal: str = "",
        make_provider: Callable[[str], Provider] | None = None,
        guard: InputGuard | None = None,
        returns: bool = False,
    ) -> None:
        """`begin` starts the first run; without it the screen waits for a prompt. `past` stands above it.

        `home` is shown as `~`. The others are the controller's.
        """
        super().__init__()
        self.controller = RunController(
            session,
            self,
            journal=journal,
            make_provider=make_provider,
            returns=returns,
            read_only=self.READ_ONLY,
        )
        self.unsent = ""
        self._begin, self._past, self._home = begin, past, home
        self._guard = guard or InputGuard()
        self._touched: dict[TranscriptItem, None] = {}
        self._throttle: Throttle | None = None
        self._attention: Attention | None = None
        self._unlisten: Callable[[], None] = lambda: None
        self._enabled: tuple[bool, ...] | None = None

    def compose(self) -> ComposeResult:
        clock, view = self.session.clock, self.view
        yield RunHeader(view, self._home)
        transcript = Transcript()
        with Horizontal(id="run--body"):
            yield transcript
            yield StatusColumn(view, clock)
        yield Static(id="run--more")
        yield SearchBar(transcript)
        yield CardHost(clock, self._guard)
        yield StatusLine(view, clock)
        yield Composer(Path.cwd(), self._guard, lone={"question_mark": "screen.perform('help')"})
        yield RunFooter(view, self.footer_keys)

    def on_mount(self) -> None:
        self.composer.attach(self.query_one(CardHost))
        self.composer.input.focus()
        self._throttle = Throttle(self.paint)
        self._attention = attention_of(self.app)
        self._unlisten = self.session.listen(self.on_session_event)
        self.set_interval(_TICK_S, self.tick)
        self.set_timer(_WARM_UP_S, warm_up)
        self.recall(self._past)
        self.session.start_servers()
        if self._begin is not None:
            self.controller.drive(self._begin())

    async def on_unmount(self) -> None:
        self._unlisten()
        await self.controller.close()
        await self.session.end_servers()
        if self._throttle is not None:
            self._throttle.close()
        if self._attention is not None:
            self._attention.close()

    @property
    def session(self) -> SessionProtocol:
        return self.controller.session

    @property
    def view(self) -> ViewState:
        return self.controller.view

    @property
    def composer(self) -> Composer:
        return self.query_one(Composer)

    @property
    def transcript(self) -> Transcript:
        return self.query_one(Transcript)

    # Events in ----------------------------------------------------------------------------------------------

    def on_session_event(self, event: Event) -> None:
        """Fold one event. Drawing comes later: a thousand deltas cost a thousand folds and a few paints."""
        change = self.controller.on_event(event)
        self._touch(change)
        if change.card:
            self.show_cards()
        if isinstance(event, RunStarted):
            self.transcript.has_output = self.view.header.has_output
            if event.cwd:
                self.composer.look_in(Path(event.cwd))
        self._ask_to_paint()

    def recall(self, past: Iterable[Event]) -> None:
        """Fold what happened before this screen."""
        for event in past:
            self._touch(self.controller.fold(event))
        self.transcript.has_output = self.view.header.has_output
        self._ask_to_paint()

    def _touch(self, change: ViewChange) -> None:
        if change.item is not None:
            self._touched[change.item] = None

    def _ask_to_paint(self) -> None:
        if self._throttle is not None:
            self._throttle.ask()

    def forget(self) -> None:
        """Empty the screen: the run will be told again."""
        self.controller.clear()
        self._touched.clear()
        self.transcript.clear()

    # Drawing ------------------------------------------------------------------------------------------------

    def paint(self) -> None:
        """Bring the widgets in line with the view."""
        if not self.is_attached:
            return
        for item in self._touched:
            self.transcript.touch(item)
        self._touched.clear()
        self.transcript.paint(self.session.clock.now())
        self.refresh_around()

    def refresh_around(self) -> None:
        """Draw again what stands around the transcript, as far as it has changed."""
        for widget in self.query(Drawn):
            widget.look_again()

    def tick(self) -> None:
        """What changes with time alone: durations, a stall. Nothing does once the run is over."""
        if not self.is_attached or (self.view.over and not self._touched and self.transcript.settled):
            return
        attempt = self.view.turns.attempt
        if attempt is not None and self.view.turns.current is not None:
            live = attempt.batch is not None and attempt.batch.seconds is None
            if live or attempt.streaming:
                self._touched[self.view.turns.current] = None
        self.show_cards()
        self.paint()

    def show_cards(self) -> None:
        """Bring the card above the composer in line with what is due."""
        self.query_one(CardHost).show(self.controller.triggers(), self.controller.card_context())
        if self._attention is not None:
            self._attention.show(self.controller.needs())
        self.composer.mode = self.controller.composer_mode
        enabled = tuple(self.controller.enabled(name) for name in ("stop", "sessions"))
        if enabled != self._enabled:
            self._enabled = enabled
            self.refresh_bindings()

    def footer_keys(self) -> list[FooterKey]:
        """The keys that the footer shows, in the order of the registry."""
        found: dict[str | None, FooterKey] = {}
        idle = not self.READ_ONLY and not self.session.running
        needed = {"run.help", "run.quit" if idle else "run.stop"}
        for active in self.active_bindings.values():
            binding = active.binding
            if active.node is self and binding.show and active.enabled:
                key = FooterKey(shown_key(binding), binding.description, binding.id in needed)
                found.setdefault(binding.id, key)
        first = [keys for id, keys in found.items() if (id or "").startswith(self.FIRST_KEYS)]
        return first + [keys for keys in found.values() if keys not in first]

    def on_resize(self, event: events.Resize) -> None:
        folded = event.size.width < _WIDE
        self.set_class(folded, "-folded")
        self.set_class(event.size.width < _NARROW, "-narrow")
        self.set_class(event.size.height < 30, "-low")
        column = self.query_one(StatusColumn)
        width = min(52, max(40, event.size.width * 36 // 100))
        column.styles.width = width
        self.query_one(RunHeader).column = 0 if folded else width

    # What a person does -------------------------------------------------------------------------------------

    def action_perform(self, name: str) -> None:
        """Carry out `run.NAME` of the registry."""
        if words := self.controller.perform(name):
            self.note(words)

    def action_transcript(self, what: str, by: int = 0) -> None:
        """Scroll the transcript, wherever the keyboard is."""
        action = getattr(self.transcript, f"action_{what}")
        action(by) if by else action()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "perform" or self.controller.enabled(str(parameters[0]))

    @on(Card.Chose)
    def _chose(self, event: Card.Chose) -> None:
        event.stop()
        self.controller.choose(event.choice)
        self.show_cards()

    @on(Composer.Submitted)
    def _submitted(self, event: Composer.Submitted) -> None:
        event.stop()
        self.controller.submit(event.text, event.kind)
        self.transcript.action_follow()

    @on(Composer.Command)
    def _command(self, event: Composer.Command) -> None:
        event.stop()
        self.controller.command(event.name, event.args)

    @on(Composer.Shell)
    def _shell(self, event: Composer.Shell) -> None:
        event.stop()
        self.controller.run_shell(event.command)

    def on_key(self, event: events.Key) -> None:
        """A letter typed while the transcript has the focus is meant for the composer."""
        if self.focused is not self.transcript or self.composer.disabled:
            return
        if event.is_printable and event.character:
            event.stop()
            self.composer.input.focus()
            self.composer.input.type_character(event.character)

    @on(Transcript.Moved)
    def _moved(self, event: Transcript.Moved) -> None:
        event.stop()
        more = self.query_one("#run--more", Static)
        words = f"↓ {event.below} new" if event.below else "↓"
        more.update(styled(words, ("   End: newest", "$dim")))
        more.set_class(not event.following, "-shown")

    @on(events.Click, "#run--more")
    def _clicked_more(self) -> None:
        self.transcript.action_follow()

    # What the controller asks for (`RunDisplay`) ------------------------------------------------------------

    @property
    def draft(self) -> str:
        return self.composer.text

    def note(self, words: str) -> None:
        if self.is_attached:
            self.composer.note(words)

    def give_back(self, text: str, why: str = "") -> None:
        self.composer.give_back(text, why)

    def focus_composer(self) -> None:
        self.composer.input.focus()

    def navigate(self, destination: Destination) -> None:
        self.post_message(Navigate(destination, self.note, self.controller.returned))

    def drive(self, run: Coroutine[Any, Any, None]) -> None:
        self.run_worker(run, name="run")

    def after(self, seconds: float, call: Callable[[], None]) -> None:
        self.set_timer(seconds, call)

    def refresh_state(self) -> None:
        for column in self.query(StatusColumn):
            column.stopping = self.controller.stopping
        for line in self.query(StatusLine):
            line.stopping = self.controller.stopping
        self.show_cards()
        self.paint()

    def close_card(self) -> None:
        self.query_one(CardHost).dismiss_card()

    def copy_selection(self) -> bool:
        try:
            selected = self.get_selected_text()
        except IndexError:  # Textual fails on some selections (its issue 6708)
            selected = None
        if selected:
            self.app.copy_to_clipboard(selected)
            self.clear_selection()
        return bool(selected)

    def show_palette(self) -> None:
        self.app.action_command_palette()

    def show_search(self) -> None:
        self.query_one(SearchBar).open()

    def toggle_thinking(self) -> None:
        self.transcript.show_thinking(not self.transcript.thinking)

    def use_theme(self, name: str) -> str:
        return theming.use(self.app, name)

    def leave(self, *, back: bool) -> None:
        """What was typed and not sent is kept for the last line."""
        if self.is_attached:
            self.unsent = self.composer.text
        if back:
            self.dismiss(None)
        else:
            self.app.exit(self.controller.last)
