"""Calling a person who is looking elsewhere: the bell, the window's title, a notification of the terminal.

Only when the terminal is not in focus, and once for each thing that needs them. What is written is one control
sequence after another, so every word in it is cleaned and kept short.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from handrail_tui.view.text import one_line

_ESC, _BEL = "\x1b", "\x07"
_PUSH_TITLE, _POP_TITLE = f"{_ESC}[22;2t", f"{_ESC}[23;2t"


def title_sequence(words: str) -> str:
    """Set the title of the window (OSC 2)."""
    return f"{_ESC}]2;{one_line(words, 80)}{_BEL}"


def notification(words: str, tmux: bool = False) -> str:
    """Ask the terminal for a notification (OSC 9), through tmux if it stands between.

    tmux hands it on only with `allow-passthrough on`; without that it is dropped, which harms nothing.
    """
    # The name in front keeps words like `4;1` from being read as a progress report.
    sequence = f"{_ESC}]9;handrail: {one_line(words, 160)}{_BEL}"
    return f"{_ESC}Ptmux;{sequence.replace(_ESC, _ESC * 2)}{_ESC}\\" if tmux else sequence


class Attention:
    """Says that a person is needed, and takes it back.

    `write` puts a sequence on the terminal; `in_focus` tells whether the terminal has the focus. A terminal that
    does not report its focus counts as in focus: the card on the screen has to do.
    """

    def __init__(
        self, write: Callable[[str], object], in_focus: Callable[[], bool], tmux: bool = False
    ) -> None:
        self._write, self._in_focus, self._tmux = write, in_focus, tmux
        self._called: set[str] = set()
        self._titled = False

    def show(self, needs: Mapping[str, str]) -> None:
        """Bring the calls in line with what needs a person now: words by the id of each thing.

        May be called as often as one likes. The title is as it was once they look, or nothing is left.
        """
        self._called &= needs.keys()
        if self._in_focus() or not needs:
            self._restore()
            return
        for key, words in needs.items():
            if key not in self._called:
                self._called.add(key)
                self._call(words)

    def close(self) -> None:
        """The program ends: leave the title as it was."""
        self._restore()

    def _call(self, words: str) -> None:
        if not self._titled:
            self._write(_PUSH_TITLE)
            self._titled = True
        self._write(title_sequence(f"● {words} · handrail"))
        self._write(_BEL)
        self._write(notification(words, self._tmux))

    def _restore(self) -> None:
        if self._titled:
            self._write(_POP_TITLE)
            self._titled = False
