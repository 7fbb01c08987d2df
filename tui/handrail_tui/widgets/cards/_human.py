"""«Needs you»: the run waits for something that only a person can do (rules H1 to H3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar, Literal
from urllib.parse import urlsplit

from textual import events
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from handrail.clock import Clock
from handrail.events import HumanKind, HumanRequested
from handrail_tui.controller.cards import Answer
from handrail_tui.view.text import clean_for_terminal, countdown, cut_lines, one_line, reveal
from handrail_tui.widgets.bindings import bindings
from handrail_tui.widgets.cards._parts import CardInput, styled
from handrail_tui.widgets.cards.base import Accent, Card
from handrail_tui.widgets.cards.guard import InputGuard

_TITLES: dict[HumanKind, str] = {
    "decision": "Your decision",
    "information": "Only you know this",
    "permission": "Your permission",
}
_SCHEMES = ("http", "https", "mailto")


def link(where: str) -> str | None:
    """`where` if it is an address that may be opened: http, https or mailto, and nothing hidden in it."""
    where = where.strip()
    if not where.isascii() or not where.isprintable() or " " in where:
        return None
    try:
        parts = urlsplit(where)
    except ValueError:
        return None
    whole = parts.netloc if parts.scheme != "mailto" else parts.path
    return where if parts.scheme in _SCHEMES and whole else None


class HumanCard(Card):
    """What is needed, where, what was tried, and how long it has been waiting."""

    ACCENT: ClassVar[Accent] = "needs-you"
    BINDINGS = bindings("human")

    def __init__(self, event: HumanRequested, clock: Clock, guard: InputGuard | None = None) -> None:
        super().__init__(clock, guard)
        self.event = event
        self.link = link(event.where)

    def head(self) -> Content:
        e = self.event
        waited = countdown(self.clock.now() - e.at)
        title = _TITLES.get(e.kind, "Only you can do this")
        asker = f", asked by {one_line(e.tool, 40)}" if e.tool and e.tool != "ask_human" else ""
        kind = "" if e.kind in _TITLES else f"{one_line(e.kind, 20)}, "
        return self.title(title, f"{kind}waiting {waited}{asker}")

    def body(self) -> Iterable[Widget]:
        e = self.event
        yield Static(styled(cut_lines(clean_for_terminal(e.needed))), classes="card--needed")
        if e.where:
            yield _Where(cut_lines(reveal(e.where)), self.link)
        if e.tried:
            yield Static(
                styled(f"tried: {cut_lines(clean_for_terminal(e.tried))}", "$dim"), classes="card--tried"
            )
        if e.secret:
            words = "your answer goes to the tool only: not shown, not stored, not sent to the model"
            yield Static(styled(words, "$waiting"), classes="card--secret")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self.link is not None if action == "open" else True

    def keys(self) -> list[Content]:
        keys = super().keys()
        if self._typing and self._typing[0].has_class("-answer"):
            secret = (
                "secret: hidden, not stored, not sent to the model"
                if self._typing[0].password
                else "make it secret"
            )
            keys.append(styled("ctrl+s", "bold $accent") + styled(f" {secret}", "$dim"))
        return keys

    def action_done(self) -> None:
        self.ask("a note for the model, or just enter", self._say("resolved"))

    def action_answer(self) -> None:
        self.ask("your answer", self._answered, secret=self.event.secret)
        if self._typing:
            self._typing[0].add_class("-answer")
            self.repaint()

    def action_cannot(self) -> None:
        self.ask("why not, or just enter", self._say("declined"))

    def action_stop(self) -> None:
        self.choose(Answer(self.event.id, "stopped"))

    def action_open(self) -> None:
        if self.link:
            self.app.open_url(self.link)
            self.notify("If no browser opens, open the address yourself", markup=False)

    def action_secret(self) -> None:
        """Hide what is typed, and have it treated as a secret; or show it again."""
        if self._typing and self._typing[0].has_class("-answer"):
            self._typing[0].password = not self._typing[0].password
            self.repaint()

    def _say(self, how: Literal["resolved", "declined"]) -> Callable[[CardInput], None]:
        return lambda line: self.choose(Answer(self.event.id, how, line.value.strip()))

    def _answered(self, line: CardInput) -> None:
        # A secret is handed over as it was typed: a space may belong to it.
        secret = line.password
        text = line.value if secret else line.value.strip()
        if text:
            self.choose(Answer(self.event.id, "answered", text, secret))


class _Where(Static):
    """The place: a link that a click opens, or a path."""

    def __init__(self, where: str, link: str | None) -> None:
        style = "underline $accent" if link else "$foreground"
        super().__init__(styled(where, style), classes="card--where")
        self._link = link

    def on_click(self, event: events.Click) -> None:
        if self._link:
            event.stop()
            self.app.open_url(self._link)
