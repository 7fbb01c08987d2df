"""The terminal below the program, for what Textual has no public way to do."""

from __future__ import annotations

import os
from typing import Any

from textual.app import App

from handrail_tui.controller.attention import Attention


def attention_of(app: App[Any]) -> Attention:
    """The attention of the terminal that `app` runs on. Without a terminal nothing is written."""

    def write(sequence: str) -> None:
        driver = app._driver  # Textual has no public way to write a sequence of one's own
        if driver is not None and not app.is_headless:
            driver.write(sequence)

    return Attention(write, lambda: app.app_focus, tmux="TMUX" in os.environ)
