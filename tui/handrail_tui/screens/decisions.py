"""The decision inspector: each decision with its evidence, the ledger before and after, the checkpoint."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from handrail.events import Ledger
from handrail_tui.view.items import DecisionItem
from handrail_tui.view.state import ViewState
from handrail_tui.view.text import clock_time
from handrail_tui.widgets.bindings import bindings
from handrail_tui.widgets.decisions import head
from handrail_tui.widgets.transcript_items import TONES
from handrail_tui.widgets.transcript_rows import styled


class DecisionsScreen(ModalScreen[None]):
    """A list of decisions, and all that is known of the one that is marked."""

    DEFAULT_CSS = Path(__file__).with_suffix(".tcss").read_text(encoding="utf-8")
    BINDINGS = bindings("decisions")

    def __init__(self, view: ViewState) -> None:
        super().__init__()
        self._entries = list(view.decisions)

    def compose(self) -> ComposeResult:
        yield Static(
            styled(("Decisions", "bold $accent"), ("   esc: back", "$dim")), classes="decisions--head"
        )
        if not self._entries:
            yield Static(styled(("No decisions yet.", "$dim")), classes="decisions--none")
            return
        with Horizontal(classes="decisions--body"):
            yield OptionList(*(Option(head(entry)) for entry in self._entries), classes="decisions--list")
            with VerticalScroll(classes="decisions--detail"):
                yield Static()

    def on_mount(self) -> None:
        if self._entries:
            self.query_one(OptionList).highlighted = len(self._entries) - 1

    def on_resize(self) -> None:
        self.set_class(self.app.size.width < 90, "-narrow")

    @on(OptionList.OptionHighlighted)
    def _marked(self, event: OptionList.OptionHighlighted) -> None:
        detail = self.query_one(VerticalScroll)
        detail.query_one(Static).update(detail_of(self._entries[event.option_index]))
        detail.scroll_home(animate=False)

    def action_detail(self, what: str) -> None:
        """Scroll the detail while the list has the keyboard."""
        getattr(self.query_one(VerticalScroll), f"scroll_{what}")(animate=False)


def detail_of(entry: DecisionItem) -> Content:
    """All that is known of one decision."""
    turn = f"turn {entry.turn}   " if entry.turn else ""
    parts = [
        styled((entry.word, f"bold {TONES[entry.tone]}"), f" {entry.rest}"),
        styled((f"{turn}{clock_time(entry.at)}", "$dim")),
    ]
    if entry.why:
        parts += [_title("why"), Content(entry.why)]
    if entry.failure:
        parts += [_title("what the provider said"), Content(entry.failure)]
    if entry.evidence:
        width = max(len(name) for name, _ in entry.evidence)
        parts.append(_title("evidence"))
        parts += [styled((name.ljust(width), "$dim"), f"  {value}") for name, value in entry.evidence]
    if entry.before is not None and entry.after is not None:
        parts += [_title("allowance used, before and after"), *_ledger(entry.before, entry.after)]
    if entry.checkpoint:
        parts += [_title("checkpoint, as the model sees it"), Content.styled(entry.checkpoint, "$dim")]
    return Content("\n").join(parts)


def _title(words: str) -> Content:
    return styled("\n", (words.upper(), "bold $faint"))


def _ledger(before: Ledger, after: Ledger) -> list[Content]:
    lines = []
    for field in fields(Ledger):
        was, now = getattr(before, field.name), getattr(after, field.name)
        if isinstance(now, int) and not isinstance(now, bool) and (was or now):
            name = field.name.replace("_", " ").ljust(14)
            lines.append(
                styled(
                    (name, "$dim"),
                    f"{was}",
                    ("  →  ", "$faint"),
                    (f"{now}", "bold" if was != now else "$dim"),
                )
            )
    return lines or [styled(("nothing used", "$dim"))]
