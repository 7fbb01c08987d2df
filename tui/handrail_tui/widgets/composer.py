"""Where a person types: prompts, steering, follow-ups, `/` commands, `@` files, `!` shell lines.

Nothing typed is ever lost: what cannot be sent stays, what could not be delivered comes back (`give_back`),
and a letter that turns out to begin a sentence goes to the text and not to a card (see `ComposerInput`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widgets import OptionList, Static, TextArea

from handrail_tui.controller import slash_commands
from handrail_tui.controller.actions import SLASH
from handrail_tui.controller.run import ComposerMode, SendKind
from handrail_tui.view.text import clean_for_terminal
from handrail_tui.widgets._completion import Completion, Trigger, complete, find_trigger
from handrail_tui.widgets._completion_files import project_files
from handrail_tui.widgets._completion_list import CompletionList
from handrail_tui.widgets._composer_input import ComposerInput
from handrail_tui.widgets.cards.guard import InputGuard
from handrail_tui.widgets.cards.host import CardHost

_PLACEHOLDERS: Mapping[ComposerMode, str] = {
    "idle": "describe a task, / for commands, @ for files",
    "running": "steer it, / for commands, @ for files",
    "waiting": "what you type is queued, / for commands, @ for files",
}
_FILES_AGE_S = 10.0


class Composer(Vertical):
    """The composer with its list of completions. Set `mode` as the run goes; listen to its four messages."""

    DEFAULT_CSS = Path(__file__).with_suffix(".tcss").read_text(encoding="utf-8")
    NARROW: ClassVar[int] = 60
    mode: reactive[ComposerMode] = reactive("idle")

    @dataclass
    class Submitted(Message):
        """A text was sent. Idle, it is a prompt; in a run enter steers, the other key makes a follow-up."""

        composer: Composer = field(repr=False)
        text: str
        kind: SendKind

        def refuse(self, why: str = "") -> None:
            """It could not be sent: the text goes back to where it was typed, with the reason below."""
            self.composer.give_back(self.text, why)

    @dataclass
    class Command(Message):
        """A slash command that the registry knows."""

        name: str
        args: str

    @dataclass
    class Shell(Message):
        """A line for the shell: what stood behind `!`."""

        command: str

    def __init__(
        self,
        root: Path | None = None,
        guard: InputGuard | None = None,
        *,
        history: Iterable[str] = (),
        lone: Mapping[str, str] | None = None,
        commands: Sequence[str] = tuple(SLASH),
        id: str | None = None,
    ) -> None:
        """`root` is where `@` looks for files. `history` holds earlier texts, the newest last.

        `lone` maps keys to the actions they run when pressed alone in the empty composer, as `?` for help.
        `commands` are those that are offered.
        """
        super().__init__(id=id)
        self.guard = guard or InputGuard()
        self.history = list(history)
        self.lone = dict(lone or {})
        self.commands = commands
        self.host: CardHost | None = None
        self._root = root
        self._trigger: Trigger | None = None
        self._files: list[str] = []
        self._files_at = float("-inf")

    def compose(self) -> ComposeResult:
        yield CompletionList()
        with Horizontal(id="composer--box"):
            yield Static(Content("›"), id="composer--glyph")
            yield ComposerInput(self)
        yield Static("", id="composer--note", classes="-empty")

    def on_resize(self) -> None:
        self.set_class(self.app.size.width < self.NARROW, "-narrow")
        self._hint()

    # The text -----------------------------------------------------------------------------------------------

    @property
    def input(self) -> ComposerInput:
        """The text area itself."""
        return self.query_one(ComposerInput)

    @property
    def completions(self) -> CompletionList:
        """The list above it."""
        return self.query_one(CompletionList)

    @property
    def text(self) -> str:
        return self.input.text

    def attach(self, host: CardHost) -> None:
        """Let bare keys reach the card of `host` while nothing is typed."""
        self.host = host
        host.home(self.input, self.input)

    def look_in(self, root: Path) -> None:
        """Let `@` look for files in `root` from now on."""
        if root != self._root:
            self._root, self._files_at = root, float("-inf")

    def give_back(self, text: str, why: str = "") -> None:
        """Put `text` before whatever has been typed since, and say why it is back."""
        text = clean_for_terminal(text)
        now = self.input.text
        if text:
            self.input.load(f"{text}\n\n{now}" if now.strip() else text)
        self.note(why)

    def note(self, words: str) -> None:
        """A line below the text; empty takes it away."""
        line = self.query_one("#composer--note", Static)
        if not words and line.has_class("-empty"):
            return
        line.update(Content(clean_for_terminal(words)))
        line.set_class(not words, "-empty")

    def watch_mode(self, mode: ComposerMode) -> None:
        if self.is_mounted:
            self._hint()

    def _hint(self) -> None:
        words = _PLACEHOLDERS[self.mode]
        self.input.placeholder = words.split(",")[0] if self.has_class("-narrow") else words

    # Sending ------------------------------------------------------------------------------------------------

    def send(self, follow_up: bool = False) -> None:
        """Send what is typed as what it is: a command, a shell line, or text."""
        text = self.input.text
        if not text.strip():
            return
        try:
            message = self._message(text, follow_up)
        except ValueError as error:
            self.note(str(error))
            return
        self._remember(text)
        self.input.load("")
        self.note("")
        self.post_message(message)

    def _message(self, text: str, follow_up: bool) -> Message:
        if parsed := slash_commands.parse(text):
            command, args = parsed
            return self.Command(command.slash, args)
        if text.startswith("!"):
            if not text[1:].strip():
                raise ValueError("Type a shell command after !")
            return self.Shell(text[1:].strip())
        kind: SendKind = "prompt" if self.mode == "idle" else "follow_up" if follow_up else "steer"
        return self.Submitted(self, text.strip(), kind)

    def _remember(self, text: str) -> None:
        if not self.history or self.history[-1] != text:
            self.history.append(text)

    # Completion ---------------------------------------------------------------------------------------------

    @on(TextArea.Changed)
    def _changed(self, event: TextArea.Changed) -> None:
        event.stop()
        text = self.input.text
        self.set_class(text.startswith("!"), "-shell")
        self.query_one("#composer--glyph", Static).update(Content("!" if text.startswith("!") else "›"))
        if self.host is not None:
            self.host.reachable(not text)
        self.look_for_completions()

    def look_for_completions(self) -> None:
        """Offer what fits the text before the cursor."""
        self._trigger = find_trigger(self.input.before_cursor) if self.input.completes else None
        if self._trigger and self._trigger.kind == "file":
            self._refresh_files()
        self._offer()

    def _offer(self) -> None:
        self.completions.offer(complete(self._trigger, self._files, self.commands) if self._trigger else [])

    def close_completions(self) -> None:
        """Take the list away until something else is typed."""
        self._trigger = None
        self._offer()

    def accept(self, offer: Completion, send: bool = False) -> None:
        """Put `offer` in; with `send`, one that is whole by that is sent at once."""
        if self._trigger is None:
            return
        start = self._trigger.start
        self.close_completions()
        self.input.complete_with(start, offer.insert)
        if send and offer.runs:
            self.send()

    @on(OptionList.OptionSelected)
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.completions.highlighted = event.option_index
        if offer := self.completions.marked:
            self.accept(offer)
        self.input.focus()

    @on(OptionList.OptionHighlighted)
    def _marked(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()

    def _refresh_files(self) -> None:
        if self._root is not None and self.guard.now() - self._files_at > _FILES_AGE_S:
            self._files_at = self.guard.now()
            self._list_files(self._root)

    @work(thread=True, exclusive=True, group="composer-files")
    def _list_files(self, root: Path) -> None:
        self.app.call_from_thread(self._listed, project_files(root))

    def _listed(self, files: list[str]) -> None:
        self._files = files
        if self._trigger and self._trigger.kind == "file":
            self._offer()
