"""Which calls need approval (rule H5). A pure function; the batch does the asking."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Literal, TypeAlias

from handrail.tools.base import Effect, Preview

Mode: TypeAlias = Literal["ask", "edits", "all", "unasked"]
"""What needs approval. ask: editing and running. edits: running. all: only what leaves the working folder. unasked:
nothing, for callers that provide their own tools (rule S9)."""


def why_ask(effect: Effect, preview: Preview, mode: Mode, granted: AbstractSet[str]) -> str | None:
    """Why this call needs approval, or None when it may run."""
    if mode == "unasked":
        return None
    if preview.pattern is not None and preview.pattern in granted:
        return None
    if preview.outside:
        return "outside the working folder: " + ", ".join(preview.outside)
    if effect == "read" or mode == "all":
        return None
    if effect == "edit":
        return None if mode == "edits" else preview.why or "it changes files"
    return preview.why or "it runs a command"


def why_allowed(effect: Effect, preview: Preview, mode: Mode) -> str:
    """Why a call that needs no approval may run, in the words of the record (rule H6)."""
    if mode == "unasked":
        return "not asked"
    if effect == "read" and not preview.outside:
        return "reads"
    if not preview.outside and (mode == "all" or (effect, mode) == ("edit", "edits")):
        return f"mode {mode}"
    return f"pattern {preview.pattern}"
