"""Help: the keys of what has focus, as they are bound now, and the slash commands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from textual.app import ComposeResult
from textual.binding import ActiveBinding
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from handrail_tui.controller.actions import SLASH
from handrail_tui.widgets.bindings import bindings
from handrail_tui.widgets.footer import KEY_NAMES
from handrail_tui.widgets.transcript_rows import styled

_NAMES = KEY_NAMES | {"pageup": "page up", "pagedown": "page down"}
_COLUMN = 34
_SHELL = "runs in the folder of the run; the model does not see it"
_TITLES = {
    "run": "Run",
    "composer": "Composer",
    "transcript": "Transcript",
    "home": "Home",
    "sessions": "Sessions",
}


class HelpScreen(ModalScreen[None]):
    """Made from bindings, so that it shows a person's own keys."""

    DEFAULT_CSS = Path(__file__).with_suffix(".tcss").read_text(encoding="utf-8")
    BINDINGS = bindings("help")

    def __init__(self, bindings: list[ActiveBinding], commands: Sequence[str] = tuple(SLASH)) -> None:
        """`commands` are those that work there."""
        super().__init__()
        self._active, self._commands = bindings, commands

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="help--body"):
            yield Static(help_text(self._active, self._commands))

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()


def help_text(bindings: list[ActiveBinding], commands: Sequence[str]) -> Content:
    """Keys by what they belong to, then the commands."""
    groups: dict[str, dict[str, tuple[list[str], str]]] = {}
    for active in bindings:
        binding = active.binding
        if binding.id is None or not binding.description or binding.system:
            continue
        title = binding.id.partition(".")[0]
        keys, _ = groups.setdefault(title, {}).setdefault(binding.id, ([], binding.description))
        for key in (_NAMES.get(binding.key, binding.key), binding.key_display):
            if key and key not in keys:
                keys.append(key)
    lines = [styled(("Keys", "bold $accent"), ("   of what has focus; esc: back", "$dim"))]
    for title, rows in groups.items():
        lines += [Content(""), styled((_TITLES.get(title, title.capitalize()), "bold"))]
        for keys, words in rows.values():
            lines.append(styled("  ", (", ".join(keys).ljust(_COLUMN), "$accent"), (words, "$dim")))
    lines += [
        Content(""),
        styled(("Commands", "bold $accent"), ("   typed in the composer", "$dim")),
        Content(""),
    ]
    for command in (SLASH[name] for name in commands):
        name = f"/{command.slash} {command.argument}".ljust(_COLUMN)
        lines.append(styled("  ", (name, "$accent"), (command.help, "$dim")))
    if len(commands) == len(SLASH):
        lines.append(styled("  ", ("! a shell command".ljust(_COLUMN), "$accent"), (_SHELL, "$dim")))
    return Content("\n").join(lines)
