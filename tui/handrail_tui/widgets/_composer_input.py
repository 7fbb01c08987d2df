"""The text area of the composer: its keys, its history, and the letters that belong to a card."""

from __future__ import annotations

from typing import ClassVar, Protocol

from textual import events
from textual.timer import Timer
from textual.widgets import TextArea

from handrail_tui.view.text import clean_for_terminal
from handrail_tui.widgets._completion import Completion
from handrail_tui.widgets._completion_list import CompletionList
from handrail_tui.widgets._key_order import obey
from handrail_tui.widgets.bindings import bindings
from handrail_tui.widgets.cards.guard import InputGuard
from handrail_tui.widgets.cards.host import CardHost

_NO_TYPING = ("escape", "tab", "shift+tab", "ctrl+up", "ctrl+down")


class Owner(Protocol):
    """What the text area needs of the composer around it."""

    guard: InputGuard
    history: list[str]
    lone: dict[str, str]
    host: CardHost | None

    @property
    def completions(self) -> CompletionList: ...

    def note(self, words: str) -> None: ...

    def send(self, follow_up: bool = False) -> None: ...

    def accept(self, offer: Completion, send: bool = False) -> None: ...

    def close_completions(self) -> None: ...


class ComposerInput(TextArea):
    """One to eight lines of text.

    A bare key reaches the card above only from an empty composer, and only if it stands alone: a letter is
    shown as typed, and when another one follows within `LONE_KEY_S` it began a sentence and stays text.
    Enter, which types nothing here, reaches the card at once. All this within the limits of `InputGuard`.
    """

    LONE_KEY_S: ClassVar[float] = 0.3
    BINDINGS = bindings("composer")

    def __init__(self, composer: Owner) -> None:
        super().__init__(soft_wrap=True, show_line_numbers=False, compact=True, highlight_cursor_line=False)
        self._composer = composer
        self._lone: Timer | None = None
        self._at: int | None = None
        self._draft = ""
        self.completes = True
        """Whether typing looks for completions: not while the history is being leafed through."""

    # Keys ---------------------------------------------------------------------------------------------------

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "enter":
            event.prevent_default()  # a binding sends; TextArea would break the line
        self._end_lone()
        if not self.text and self._for_others(event):
            return
        if event.key not in _NO_TYPING and (self.text or event.is_printable):
            self._composer.guard.typed()
        if event.is_printable:
            self._composer.note("")
        await obey(self, event)

    def _for_others(self, event: events.Key) -> bool:
        """Whether a key in the empty composer is meant, or may be meant, for something else."""
        host = self._composer.host
        wanted = host is not None and host.wants(event.key)
        if event.is_printable and (wanted or event.key in self._composer.lone):
            # Shown as typed. If nothing follows, it was no typing.
            self._lone = self.set_timer(self.LONE_KEY_S, lambda: self._alone(event.key, event.character))
            return True
        if wanted and host is not None and event.key == "enter":
            event.stop()
            return host.offer(event.key)
        return False

    def _end_lone(self) -> None:
        """Another key came: the letter before it was text."""
        if self._lone is not None:
            self._lone.stop()
            self._lone = None
            self._composer.guard.typed()

    async def _alone(self, key: str, character: str | None) -> None:
        self._lone = None
        if self.text != character:
            return
        host = self._composer.host
        if host is not None and host.offer(key):
            self.load("")
        elif key in self._composer.lone:
            self.load("")
            await self.run_action(self._composer.lone[key])

    async def _on_paste(self, event: events.Paste) -> None:
        event.prevent_default()
        event.stop()
        self._end_lone()
        self._composer.guard.typed()
        if text := clean_for_terminal(event.text.replace("\r\n", "\n").replace("\r", "\n")):
            self.type_character(text)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys that mean nothing here now belong to the screen: pages, copying nothing, an empty line."""
        if action in ("cursor_page_up", "cursor_page_down"):
            return False
        if action in ("copy", "cut"):
            return bool(self.selected_text)
        if action in ("cursor_line_start", "cursor_line_end"):
            return bool(self.text)
        if action == "close_completions":
            return self._composer.completions.is_open
        return super().check_action(action, parameters)

    # Text ---------------------------------------------------------------------------------------------------

    @property
    def before_cursor(self) -> str:
        """The text up to the cursor."""
        return self.get_text_range((0, 0), self.cursor_location)

    def load(self, text: str) -> None:
        """Replace the whole text, the cursor behind it; undo brings the old one back."""
        self.replace(text, (0, 0), self.document.end)
        self.move_cursor(self.document.end)

    def type_character(self, character: str) -> None:
        """Put text in where the cursor is, in place of what is selected."""
        start, end = self.selection
        result = self.replace(character, start, end)
        self.move_cursor(result.end_location)

    def complete_with(self, start: int, text: str) -> None:
        """Replace the text from the index `start` up to the cursor."""
        kept = self.before_cursor[:start]
        location = (kept.count("\n"), len(kept) - (kept.rfind("\n") + 1))
        result = self.replace(text, location, self.cursor_location)
        self.move_cursor(result.end_location)

    # Actions ------------------------------------------------------------------------------------------------

    def action_send(self) -> None:
        offer = self._composer.completions.marked
        if offer is not None:
            self._composer.accept(offer, send=True)
        else:
            self._sent(follow_up=False)

    def action_send_later(self) -> None:
        self._sent(follow_up=True)

    def _sent(self, follow_up: bool) -> None:
        self._at, self.completes = None, True
        self._composer.close_completions()
        self._composer.send(follow_up)

    def action_new_line(self) -> None:
        self.type_character("\n")

    def action_tab(self) -> None:
        offer = self._composer.completions.marked
        if offer is not None:
            self._composer.accept(offer)
        else:
            self.action_to_card()

    def action_to_card(self) -> None:
        host = self._composer.host
        if host is None or not host.take_focus():
            self.screen.focus_next()

    def action_close_completions(self) -> None:
        self._composer.close_completions()

    def action_cursor_up(self, select: bool = False) -> None:
        if not select and self._composer.completions.is_open:
            self._composer.completions.action_cursor_up()
        elif not select and self.navigator.is_first_wrapped_line(self.cursor_location):
            self._leaf(-1)
        else:
            super().action_cursor_up(select)

    def action_cursor_down(self, select: bool = False) -> None:
        if not select and self._composer.completions.is_open:
            self._composer.completions.action_cursor_down()
        elif not select and self.navigator.is_last_wrapped_line(self.cursor_location):
            self._leaf(+1)
        else:
            super().action_cursor_down(select)

    # History ------------------------------------------------------------------------------------------------

    def _leaf(self, step: int) -> None:
        """Go to an earlier or a later text; what was being typed waits behind the newest."""
        history = self._composer.history
        at = len(history) if self._at is None else self._at
        if not 0 <= at + step <= len(history):
            return
        if self._at is None:
            self._draft = self.text
        elif self.text != history[self._at]:
            # An old text that was changed is a new draft.
            self._draft = self.text
        self._at = at + step if at + step < len(history) else None
        self.completes = self._at is None
        self.load(self._draft if self._at is None else history[self._at])
        if step < 0:
            self.move_cursor((0, 0))
