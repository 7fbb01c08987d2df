"""Bell, title and notification: only out of focus, once each, nothing foreign in the sequences."""

from __future__ import annotations

import pytest

from handrail_tui.attention import Attention, notification, title_sequence


class Terminal:
    def __init__(self, focus: bool = False, tmux: bool = False) -> None:
        self.out: list[str] = []
        self.focus = focus
        self.attention = Attention(self.out.append, lambda: self.focus, tmux)


def test_nobody_is_called_who_is_looking() -> None:
    terminal = Terminal(focus=True)
    assert not terminal.attention.need("h1", "captcha")
    assert terminal.out == []
    terminal.focus = False
    assert terminal.attention.need("h1", "captcha"), "it is still open when they look away"


def test_a_person_is_called_once_with_bell_title_and_notification() -> None:
    terminal = Terminal()
    assert terminal.attention.need("h1", "needs you: captcha")
    assert not terminal.attention.need("h1", "needs you: captcha")
    assert terminal.out == [
        "\x1b[22;2t",
        "\x1b]2;● needs you: captcha · handrail\x07",
        "\x07",
        "\x1b]9;handrail: needs you: captcha\x07",
    ]


def test_the_title_is_as_it_was_when_nothing_is_left() -> None:
    terminal = Terminal()
    terminal.attention.need("h1", "one")
    terminal.attention.need("a1", "two")
    terminal.out.clear()
    terminal.attention.settle("h1")
    assert terminal.out == []
    terminal.attention.settle("a1")
    terminal.attention.settle()
    assert terminal.out == ["\x1b[23;2t"]


def test_tmux_gets_it_wrapped_with_each_esc_doubled() -> None:
    assert notification("captcha", tmux=True) == "\x1bPtmux;\x1b\x1b]9;handrail: captcha\x07\x1b\\"


@pytest.mark.parametrize("words", ["a\x07b", "\x1b]0;x\x07", "\x9c", "two\nlines", "4;1;50", "x" * 9_000])
def test_L11_foreign_words_cannot_end_or_begin_a_sequence(words: str) -> None:
    for sequence in (notification(words), title_sequence(words)):
        inside = sequence[1:-1]
        assert sequence[0] == "\x1b" and sequence[-1] == "\x07"
        assert inside.isprintable() and len(inside) < 200
        assert not inside.startswith("]9;4")
