"""The container of the cards, above the composer."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widget import Widget

from handrail.clock import Clock
from handrail_tui.controller.cards import CardContext, CardTrigger, Close, by_urgency
from handrail_tui.widgets.cards import card_for
from handrail_tui.widgets.cards.base import Card
from handrail_tui.widgets.cards.guard import InputGuard


class _Composer(Protocol):
    """What a host needs of the composer."""

    def type_character(self, character: str) -> None: ...


class CardHost(Vertical):
    """Shows the most urgent of the due triggers, and brings keys to its card.

    `show` may be called after every event: a card stays as long as its trigger is the most urgent one, or
    something is being typed in it. The composer calls `offer` with a key that was pressed while it was empty.
    """

    DEFAULT_CSS = Path(__file__).with_suffix(".tcss").read_text(encoding="utf-8")

    def __init__(self, clock: Clock, guard: InputGuard | None = None, *, id: str | None = None) -> None:
        super().__init__(id=id, classes="-empty")
        self._clock = clock
        self.guard = guard or InputGuard()
        self.card: Card | None = None
        self._trigger: CardTrigger | None = None
        self._dismiss_card: CardTrigger | None = None
        self._home: Widget | None = None
        self._composer: _Composer | None = None
        self._bare = True

    def compose(self) -> ComposeResult:
        yield from ()

    def home(self, widget: Widget, composer: _Composer | None = None) -> None:
        """Where the keyboard goes when a card that had it is gone; and who takes letters no card wants."""
        self._home, self._composer = widget, composer

    def show(self, triggers: Iterable[CardTrigger], context: CardContext | None = None) -> Card | None:
        """Bring the card in line with what is due now."""
        waiting = by_urgency(trigger for trigger in triggers if trigger is not self._dismiss_card)
        trigger = waiting[0] if waiting else None
        if self.card is not None and self.card.busy and self._trigger in waiting:
            trigger = self._trigger  # what is being typed comes first
        # Mostly it is the same object: a large value is not compared with itself again and again.
        if trigger is not self._trigger and trigger != self._trigger:
            self._swap(trigger, context)
        if self.card is not None and self.card.behind != len(waiting) - 1:
            self.card.behind = len(waiting) - 1
            if self.card.is_mounted:
                self.card.repaint()
        return self.card

    def _swap(self, trigger: CardTrigger | None, context: CardContext | None) -> None:
        old, focused = self.card, self.app.focused
        self._trigger = trigger
        self.card = card_for(trigger, self._clock, self.guard, context) if trigger is not None else None
        self.set_class(self.card is None, "-empty")
        if self.card is not None:
            self.card.reachable = self._bare
            self.mount(self.card)
        if old is None:
            return
        if focused is not None and old in focused.ancestors_with_self:
            # Whoever was using one card continues with the next.
            next_one = self.card or self._home
            if next_one is not None:
                next_one.focus()
        if old.unsent and self._composer is not None:
            self._composer.type_character(old.unsent)
        old.remove()

    @on(Card.Chose)
    def _chose(self, event: Card.Chose) -> None:
        if isinstance(event.choice, Close):
            event.stop()
            self.dismiss_card()

    def dismiss_card(self) -> None:
        """Remove the card; it does not come back for the same trigger."""
        self._dismiss_card = self._trigger
        self._swap(None, None)

    # Keys ---------------------------------------------------------------------------------------------------

    def wants(self, key: str) -> bool:
        """Whether the card would act on `key`, pressed in an empty composer."""
        return self.card is not None and self.card.is_mounted and self.card.wants(key)

    def offer(self, key: str) -> bool:
        """Give `key` to the card; True when it took it."""
        return self.card is not None and self.card.is_mounted and self.card.press(key)

    def reachable(self, bare: bool) -> None:
        """Say whether bare keys reach the card: not while the composer holds text."""
        self._bare = bare
        if self.card is not None and self.card.reachable != bare:
            self.card.reachable = bare
            if self.card.is_mounted:
                self.card.repaint()

    def take_focus(self) -> bool:
        """Give the keyboard to the card, if there is one."""
        if self.card is None:
            return False
        self.card.focus()
        return True

    def on_key(self, event: events.Key) -> None:
        """A letter that the focused card does not know was meant for the composer: nothing typed is lost."""
        if self.app.focused is not self.card or self._home is None:
            return
        if event.key in ("tab", "shift+tab", "ctrl+down"):
            event.stop()
            event.prevent_default()
            self._home.focus()
        elif event.is_printable and event.character and self._composer is not None:
            event.stop()
            self._home.focus()
            self._composer.type_character(event.character)
