"""The message with which a screen asks for another one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from textual.message import Message

from handrail_tui.controller.destinations import Destination


def _ignore(words: str) -> None:
    """Nobody asked for these words."""


@dataclass
class Navigate(Message):
    """Go to `destination`. The program builds the screen.

    `refused` is called with the reason when it cannot be opened, `unsent` with text that was typed there and not
    sent, or that came back.
    """

    destination: Destination
    refused: Callable[[str], object] = _ignore
    unsent: Callable[[str], object] = _ignore
