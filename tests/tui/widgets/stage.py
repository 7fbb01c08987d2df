"""A small stage for widgets: the composer, the place of the cards, a clock and hands that a test turns."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from textual import on
from textual.app import App, ComposeResult
from textual.message import Message
from textual.widgets import Static

from handrail.clock import ManualClock
from handrail_tui.controller.cards import CardContext, CardTrigger
from handrail_tui.widgets import theming
from handrail_tui.widgets.cards.base import Card
from handrail_tui.widgets.cards.guard import InputGuard
from handrail_tui.widgets.cards.host import CardHost
from handrail_tui.widgets.composer import Composer


class CardApp(App[None]):
    """`hands` is the monotonic time of the person; `got` holds what was chosen, sent or asked for."""

    CSS = """
    Screen { background: $background; }
    #transcript { height: 1fr; padding: 1 2; color: $faint; }
    CardHost { margin-bottom: 1; }
    """

    def __init__(
        self,
        triggers: Iterable[CardTrigger] = (),
        *,
        context: CardContext | None = None,
        root: Path | None = None,
        history: Iterable[str] = (),
        theme: str = theming.DEFAULT,
    ) -> None:
        super().__init__()
        self.themes = theming.install(self)
        self.theme = theme
        self.clock = ManualClock()
        self.hands = 100.0
        self.guard = InputGuard(lambda: self.hands)
        self.host = CardHost(self.clock, self.guard)
        self.composer = Composer(root, self.guard, history=history, lone={"question_mark": "app.helped"})
        self.triggers, self.context = list(triggers), context
        self.got: list[object] = []
        self.told: list[str] = []
        self.opened: list[str] = []
        self.helped = 0
        self.animation_level = "none"

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return theming.defaults()

    def compose(self) -> ComposeResult:
        yield Static("the transcript stands here", id="transcript", markup=False)
        yield self.host
        yield self.composer

    def on_mount(self) -> None:
        self.composer.input.cursor_blink = False
        self.composer.attach(self.host)
        self.composer.input.focus()
        self.host.show(self.triggers, self.context)

    def rest(self, seconds: float = 5.0) -> None:
        """Keep the hands off the keys."""
        self.hands += seconds

    @property
    def card(self) -> Card:
        assert self.host.card is not None
        return self.host.card

    @on(Card.Chose)
    def _chose(self, message: Card.Chose) -> None:
        self.got.append(message.choice)

    @on(Composer.Submitted)
    @on(Composer.Command)
    @on(Composer.Shell)
    def _got(self, message: Message) -> None:
        self.got.append(message)

    def notify(self, message: str, **_: object) -> None:  # type: ignore[override]
        self.told.append(message)

    def open_url(self, url: str, *, new_tab: bool = True) -> None:
        self.opened.append(url)

    def action_helped(self) -> None:
        self.helped += 1
