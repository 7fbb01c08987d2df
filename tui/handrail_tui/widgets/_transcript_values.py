"""A JSON value as lines of a tree, for the transcript."""

from __future__ import annotations

from typing import Any, Final

from textual.content import Content

from handrail_tui.widgets.transcript_rows import styled

_DEEPEST: Final = 6
_MOST_CHILDREN: Final = 50
_MOST_LINES: Final = 20


def value_lines(value: Any, name: str = "", depth: int = 0) -> list[Content]:
    """A JSON value as a tree of lines. Deep or long ones are cut, saying so."""
    pad, label = "  " * depth, f"{name}: " if name else ""
    if isinstance(value, dict | list) and value and depth < _DEEPEST:
        pairs = value.items() if isinstance(value, dict) else ((f"{n}", item) for n, item in enumerate(value))
        lines = [styled(pad, (name, "$dim"))] if name else []
        inner = depth + 1 if name else depth
        for n, (key, item) in enumerate(pairs):
            if n == _MOST_CHILDREN:
                lines.append(styled("  " * inner, (f"{len(value) - n} more", "$faint")))
                break
            lines += value_lines(item, str(key), inner)
        return lines
    first, *more = (value if isinstance(value, str) else _literal(value)).split("\n")
    lines = [styled(pad, (label, "$dim"), (first, "$foreground"))]
    return lines + [styled(pad + " " * len(label), (line, "$foreground")) for line in more[:_MOST_LINES]]


def _literal(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, dict | list):
        return (
            ("{…}" if isinstance(value, dict) else "[…]")
            if value
            else ("{}" if isinstance(value, dict) else "[]")
        )
    return str(value)
