"""Colour themes as data: one TOML file a theme. What a key means is told in `handrail_tui.widgets.theming`."""

from __future__ import annotations

from importlib.resources import files

NAMES = ("handrail-dark", "handrail-light", "high-contrast", "ansi")
"""The themes that come with the program, in the order of the list."""


def source(name: str) -> str:
    """The TOML text of one of `NAMES`. Raises FileNotFoundError for another name."""
    return (files(__name__) / f"{name}.toml").read_text(encoding="utf-8")
