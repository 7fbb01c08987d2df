"""Which calls ask first (rule H5). A pure rule; asking is the batch's business."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Literal, TypeAlias

from handrail.tools.base import Effect, Preview

Mode: TypeAlias = Literal["ask", "edits", "all", "unasked"]
"""ask: editing and running ask. edits: running asks. all: only what leaves the working folder asks. unasked: nothing
asks; for callers who hand in their own tools (rule S9)."""


def why_ask(effect: Effect, preview: Preview, mode: Mode, granted: AbstractSet[str]) -> str | None:
    """Why this call asks first, or None when it may run."""
    if mode == "unasked":
        return None
    if preview.pattern is not None and preview.pattern in granted:
        return None
    if preview.outside:
        return "outside the working folder: " + ", ".join(preview.outside)
    if effect == "read" or mode == "all":
        return None
    if effect == "edit":
        return None if mode == "edits" else "it changes files"
    return "it runs a command"
