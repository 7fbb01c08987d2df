"""Bell, title and notification: only out of focus, once each, nothing foreign in the sequences."""

from __future__ import annotations

import pytest
from textual.app import App

from handrail_tui.controller.attention import Attention, notification, title_sequence
from handrail_tui.screens._terminal import attention_of


class Terminal:
    def __init__(self, focus: bool = False, tmux: bool = False) -> None:
        self.out: list[str] = []
        self.focus = focus
        self.attention = Attention(self.out.append, lambda: self.focus, tmux)


CAPTCHA = {"h1": "needs you: captcha"}
CALL = [
    "\x1b[22;2t",
    "\x1b]2;● needs you: captcha · handrail\x07",
    "\x07",
    "\x1b]9;handrail: needs you: captcha\x07",
]
RESTORE = ["\x1b[23;2t"]


def test_nobody_is_called_who_is_looking() -> None:
    terminal = Terminal(focus=True)
    terminal.attention.show(CAPTCHA)
    assert terminal.out == []
    terminal.focus = False
    terminal.attention.show(CAPTCHA)
    assert terminal.out == CALL, "it is still open when they look away"


def test_a_person_is_called_once_with_bell_title_and_notification() -> None:
    terminal = Terminal()
    for _ in range(3):
        terminal.attention.show(CAPTCHA)
    assert terminal.out == CALL


def test_the_title_is_as_it_was_when_they_look_and_they_are_not_called_again() -> None:
    terminal = Terminal()
    terminal.attention.show(CAPTCHA)
    terminal.out.clear()
    terminal.focus = True
    terminal.attention.show(CAPTCHA)
    terminal.focus = False
    terminal.attention.show(CAPTCHA)
    assert terminal.out == RESTORE


def test_the_title_is_as_it_was_when_nothing_is_left() -> None:
    terminal = Terminal()
    terminal.attention.show({**CAPTCHA, "a1": "approve: bash"})
    terminal.out.clear()
    terminal.attention.show({"a1": "approve: bash"})
    assert terminal.out == []
    terminal.attention.show({})
    terminal.attention.close()
    assert terminal.out == RESTORE
    terminal.attention.show(CAPTCHA)
    assert terminal.out == RESTORE + CALL, "a thing that comes again is called for again"


async def test_an_app_without_a_terminal_gets_nothing_written() -> None:
    app: App[None] = App()
    async with app.run_test():
        app.app_focus = False
        attention_of(app).show(CAPTCHA)


def test_tmux_gets_it_wrapped_with_each_esc_doubled() -> None:
    assert notification("captcha", tmux=True) == "\x1bPtmux;\x1b\x1b]9;handrail: captcha\x07\x1b\\"


@pytest.mark.parametrize("words", ["a\x07b", "\x1b]0;x\x07", "\x9c", "two\nlines", "4;1;50", "x" * 9_000])
def test_L11_foreign_words_cannot_end_or_begin_a_sequence(words: str) -> None:
    for sequence in (notification(words), title_sequence(words)):
        inside = sequence[1:-1]
        assert sequence[0] == "\x1b" and sequence[-1] == "\x07"
        assert inside.isprintable() and len(inside) < 200
        assert not inside.startswith("]9;4")
