"""«Needs you», as a form: a question with typed fields, filled in one after the other (rule H3)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from handrail.clock import Clock
from handrail.events import FormField, HumanRequested
from handrail.forms import FormError, check_values, expected, shown
from handrail_tui.controller.cards import Answer
from handrail_tui.view.text import clean_for_terminal, cut_lines, one_line
from handrail_tui.widgets.bindings import bindings
from handrail_tui.widgets.cards._human import HumanCard
from handrail_tui.widgets.cards._parts import CardInput, styled
from handrail_tui.widgets.cards.guard import InputGuard


class FormCard(HumanCard, inherit_bindings=False):
    """The fields with what each takes. Enter asks for one after the other; a wrong value is asked for again."""

    BINDINGS = bindings("form")

    def __init__(self, event: HumanRequested, clock: Clock, guard: InputGuard | None = None) -> None:
        super().__init__(event, clock, guard)
        self._values: dict[str, Any] = {}
        self._at = 0

    def body(self) -> Iterable[Widget]:
        yield from super().body()
        for field in self.event.fields:
            yield _Row(field)
        yield Static(classes="card--tried form--note")

    def keys(self) -> list[Content]:
        keys = super(HumanCard, self).keys()
        if self._typing and (field := self._field) is not None and field.options:
            numbered = ", ".join(f"{n} {label}" for n, (_, label) in enumerate(field.options, 1))
            keys.append(styled(one_line(numbered, 300), "$dim"))
        return keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return True

    @property
    def _field(self) -> FormField | None:
        fields = self.event.fields
        return fields[self._at] if self._at < len(fields) else None

    def action_fill(self) -> None:
        """Begin with the first field that has no value yet."""
        self._ask_next()

    def action_cannot(self) -> None:
        self.ask("why not, or just enter", self._say("declined"))

    def action_cancel(self) -> None:
        self.choose(Answer(self.event.id, "cancelled"))

    def _ask_next(self) -> None:
        field = self._field
        self._show()
        if field is None:
            self.choose(Answer(self.event.id, "answered", json.dumps(self._values, ensure_ascii=False)))
            return
        default = f", or just enter for {shown(field.default)}" if field.default is not None else ""
        left_out = "" if field.required or default else ", or just enter to leave it out"
        self.ask(one_line(f"{_label(field)}: {expected(field)}{default}{left_out}", 200), self._entered)

    def _entered(self, line: CardInput) -> None:
        field = self._field
        assert field is not None
        try:
            self._values |= check_values((field,), {field.name: line.value.strip()})
        except FormError as error:
            self._tell(str(error))
            return
        self._tell("")
        self._at += 1
        self.stop_asking()
        self._ask_next()

    def _tell(self, words: str) -> None:
        self.query_one(".form--note", Static).update(styled(one_line(words, 300), "$rejected"))

    def _show(self) -> None:
        for number, row in enumerate(self.query(_Row)):
            value = self._values.get(row.field.name)
            row.set(value, done=number < self._at, now=number == self._at)


class _Row(Static):
    """One field: its label, what it takes, its value once it has one."""

    def __init__(self, field: FormField) -> None:
        super().__init__(_row(field, None, "  "), classes="card--field")
        self.field = field

    def set(self, value: Any, *, done: bool, now: bool) -> None:
        """Show the value; mark the field that is asked for now."""
        self.update(_row(self.field, value if done else None, "› " if now else "✓ " if done else "  "))


def _row(field: FormField, value: Any, mark: str) -> Content:
    star = "" if field.required else " (optional)"
    words = one_line(shown(value), 200) if value is not None else one_line(expected(field), 200)
    help = cut_lines(clean_for_terminal(field.help)).replace("\n", " ")
    return Content.assemble(
        styled(f"{mark}{_label(field)}", "bold $foreground"),
        styled(f"{star}  ", "$dim"),
        styled(words, "$foreground" if value is not None else "$dim"),
        styled(f"   {help}" if help and value is None else "", "$faint"),
    )


def _label(field: FormField) -> str:
    return one_line(field.label or field.name, 60)
