"""A card: the one thing above the composer that a person may want to act on.

A card is made from events and a clock, and posts what the person chose (`Card.Chose`); it never touches a
session. Its keys are bindings with ids, so settings remap them and help lists them. They work when the card
has the focus, and with an empty composer too (through `CardHost`), but only as `InputGuard` allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.css.query import NoMatches
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Static

from handrail.clock import Clock
from handrail_tui.controller.cards import Choice
from handrail_tui.view.text import plural
from handrail_tui.widgets.cards._parts import CardInput, Countdown, styled
from handrail_tui.widgets.cards.guard import InputGuard

Accent: TypeAlias = Literal["needs-you", "waiting", "decision", "accepted", "rejected"]

_KEY_NAMES = {"plus": "+", "minus": "-", "question_mark": "?"}
_SCROLLS = {
    "up": "scroll_up",
    "down": "scroll_down",
    "pageup": "scroll_page_up",
    "pagedown": "scroll_page_down",
    "home": "scroll_home",
    "end": "scroll_end",
}


class Card(Vertical, can_focus=True):
    """The base of all cards. A subclass gives `head`, `body`, `countdown` and BINDINGS with their actions."""

    DEFAULT_CSS = Path(__file__).with_name("base.tcss").read_text(encoding="utf-8")
    ACCENT: ClassVar[Accent] = "waiting"
    SHORT: ClassVar[bool] = False
    """Whether countdown and keys fit on one line of a small screen."""
    REPAINT_S: ClassVar[float] = 0.25
    """Seconds of real time between two looks at the clock; durations themselves come from the clock."""

    @dataclass
    class Chose(Message):
        """The person chose something on a card."""

        choice: Choice

    def __init__(self, clock: Clock, guard: InputGuard | None = None) -> None:
        super().__init__(classes=f"-{self.ACCENT}")
        self.clock = clock
        self.guard = guard or InputGuard()
        self.appeared_at = float("inf")
        self.behind = 0
        """How many more cards are due after this one."""
        self.reachable = True
        """Whether a bare key reaches this card now: not while the composer holds text."""
        self._typing: tuple[CardInput, Callable[[CardInput], None]] | None = None
        self._sent_line = False

    # What a subclass gives ----------------------------------------------------------------------------------

    def head(self) -> Content:
        """The first line: what this is about."""
        return self.title("")

    def body(self) -> Iterable[Widget]:
        """What stands between the head and the keys; it scrolls when it is long."""
        return ()

    def countdown(self) -> Countdown | None:
        """A line that changes with time, above the keys."""
        return None

    def label(self, binding: Binding) -> str:
        """The words behind a key."""
        return binding.description

    def hint(self) -> str:
        """A word behind the keys."""
        return ""

    # Drawing ------------------------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        yield Static(self.head(), classes="card--head")
        if body := list(self.body()):
            yield Static("", classes="card--gap")
            yield VerticalScroll(*body, classes="card--body", can_focus=False)
        yield Static("", classes="card--gap")
        countdown = self.countdown()
        with Vertical(classes="card--foot -short" if self.SHORT else "card--foot"):
            if countdown:
                yield countdown
                yield Static("", classes="card--gap")
            yield Static("", classes="card--keys")

    def on_mount(self) -> None:
        self.appeared_at = self.guard.now()
        self.set_interval(self.REPAINT_S, self.repaint)
        self._fit()

    def on_resize(self) -> None:
        self._fit()

    def _fit(self) -> None:
        """Leave at least half of a screen to the transcript; on a low or narrow one, no air."""
        width, rows = self.app.size
        compact = rows < 28 or width < 100
        self.set_class(compact, "-compact")
        self.set_class(width < 60, "-narrow")
        others = (2 if compact else 6) + (1 if compact else 2) * len(self.query(Countdown))
        for body in self.query(".card--body"):
            body.styles.max_height = max(2, rows // 2 - others)
        self.call_after_refresh(self.repaint)

    def repaint(self) -> None:
        """Draw what changes with time."""
        try:
            head, keys = self.query_one(".card--head", Static), self.query_one(".card--keys", Static)
        except NoMatches:
            return  # the timer may fire while the card is being taken away
        words = self.head()
        if not (isinstance(head.content, Content) and words.is_same(head.content)):
            head.update(words, layout=False)
        row = _lines(self.keys(), 1_000 if self._one_line else self.content_size.width)
        if not (isinstance(keys.content, Content) and row.is_same(keys.content)):
            keys.update(row)
        for countdown in self.query(Countdown):
            countdown.look_again()

    def title(self, words: str, detail: str = "") -> Content:
        """A head in the card's own colour, with a quiet detail, and how many more wait."""
        more = f"   {self.behind} more after this" if self.behind else ""
        return Content.assemble(
            styled(words, f"bold ${self.ACCENT}"),
            styled(f"   {detail}" if detail else "", "$dim"),
            styled(more, "$faint"),
        )

    def keys(self) -> list[Content]:
        """The keys and what they do, as far as they can be pressed now."""
        if self._typing:
            return [_key("enter", "send"), _key("esc", "back")]
        shown = self._choices()
        parts = [_key("/".join(keys), self.label(binding), self.reachable) for binding, keys in shown]
        if not self.reachable:
            parts.insert(0, _key("tab", "for the card, then"))
        if hint := self.hint() or self._below():
            parts.append(styled(hint, "$dim"))
        return parts

    def _below(self) -> str:
        """How much of the body lies out of sight, and how to get there."""
        lines = sum(round(body.max_scroll_y - body.scroll_y) for body in self.query(".card--body"))
        if lines <= 0:
            return ""
        return f"{'' if self.has_focus else 'tab, '}↓ {plural(lines, 'more line')}"

    @property
    def _one_line(self) -> bool:
        """Whether the keys stand beside the countdown now."""
        return self.SHORT and self.has_class("-compact") and not self.has_class("-narrow")

    # Keys ---------------------------------------------------------------------------------------------------

    def _choices(self) -> list[tuple[Binding, list[str]]]:
        """Each choice that can be made now, with its keys, the keymap of the settings applied."""
        bindings = self._bindings.copy()
        bindings.apply_keymap(self.app._keymap)  # Textual applies it to what has focus only
        found: dict[str, tuple[Binding, list[str]]] = {}
        for key, binding in bindings:
            if binding.show and self.check_action(binding.action, ()):
                name = _KEY_NAMES.get(key, key)
                found.setdefault(binding.action, (binding, []))[1].append(name)
        return list(found.values())

    @property
    def awake(self) -> bool:
        """Whether a key counts now."""
        return self.guard.allows(self.appeared_at)

    def wants(self, key: str) -> bool:
        """Whether `key` would choose something on this card now."""
        key = _KEY_NAMES.get(key, key)
        return self._typing is None and self.awake and any(key in keys for _, keys in self._choices())

    def press(self, key: str) -> bool:
        """Take a key from outside, if this card wants it."""
        if not self.wants(key):
            return False
        key = _KEY_NAMES.get(key, key)
        binding = next(binding for binding, keys in self._choices() if key in keys)
        getattr(self, f"action_{binding.action}")()
        return True

    def on_key(self, event: events.Key) -> None:
        if self._typing is not None or self.app.focused is not self:
            return  # meant for something inside this card
        if event.key in _SCROLLS:
            for body in self.query(".card--body"):
                getattr(body, _SCROLLS[event.key])(animate=False)
            event.stop()
        elif not self.awake and any(event.key in keys for _, keys in self._choices()):
            event.stop()  # too early: taken, and not obeyed
        elif self.press(event.key):
            event.stop()

    # Typing -------------------------------------------------------------------------------------------------

    def ask(self, placeholder: str, done: Callable[[CardInput], None], secret: bool = False) -> None:
        """Open a line for typing; `done` gets it when enter is pressed."""
        line = CardInput(placeholder=placeholder, password=secret, compact=True)
        self._typing = (line, done)
        self.mount(line)
        line.focus()
        self.repaint()

    def stop_asking(self) -> None:
        """Remove the line for typing and focus the card."""
        if self._typing:
            self._typing[0].remove()
            self._typing = None
            self.focus()
            self.repaint()

    @on(CardInput.GivenUp)
    def _given_up(self, event: CardInput.GivenUp) -> None:
        event.stop()
        self.stop_asking()

    @on(Input.Submitted)
    def _sent(self, event: Input.Submitted) -> None:
        event.stop()
        if self._typing:
            line, done = self._typing
            self._sent_line = True
            done(line)

    @on(Input.Changed)
    def _quiet(self, event: Input.Changed) -> None:
        event.stop()  # what is being typed stays inside the card: it may be a secret
        self._sent_line = False

    @property
    def busy(self) -> bool:
        """Whether something is being typed in here."""
        return self._typing is not None

    @property
    def unsent(self) -> str:
        """What was typed here and not sent; a secret is never kept."""
        if self._typing is None or self._sent_line or self._typing[0].password:
            return ""
        return self._typing[0].value

    def choose(self, choice: Choice) -> None:
        """Say what the person chose."""
        self.post_message(self.Chose(choice))


def _key(key: str, words: str, lit: bool = True) -> Content:
    return styled(key, "bold $accent" if lit else "$dim") + styled(f" {words}", "$dim")


def _lines(parts: list[Content], width: int) -> Content:
    """The parts side by side, on as many lines as they need; none is broken."""
    lines: list[Content] = []
    for part in parts:
        if lines and lines[-1].cell_length + 4 + part.cell_length <= width:
            lines[-1] = lines[-1] + "    " + part
        else:
            lines.append(part)
    return Content("\n").join(lines)
