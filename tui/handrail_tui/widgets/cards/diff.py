"""A unified diff as content: coloured, with its signs, so that it reads without colour too."""

from __future__ import annotations

import re

from textual.content import Content

from handrail_tui.view.text import clean_for_terminal, cut_lines, plural
from handrail_tui.widgets.cards._parts import styled

MOST_ROWS = 1_000
"""Lines of a diff that are drawn; how many more there are stands below them."""
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)")


def counts(diff: str) -> tuple[int, int]:
    """Lines added and removed."""
    added = removed = 0
    for kind, _, _ in _lines(diff):
        added += kind == "+"
        removed += kind == "-"
    return added, removed


def summary(diff: str) -> Content:
    """`+6 −2` in the colours of both."""
    added, removed = counts(diff)
    return styled(f"+{added}", "$accepted") + " " + styled(f"−{removed}", "$rejected")


def render(diff: str, known: str = "") -> Content:
    """The whole diff, its line numbers in a margin. Whatever it holds is text.

    The name of a file that is `known` already is left out.
    """
    rows = [row for row in _lines(cut_lines(clean_for_terminal(diff))) if row != ("file", "", known)]
    width = max((len(number) for _, number, _ in rows), default=0)
    content = Content("\n").join(
        _row(kind, number.rjust(width), text) for kind, number, text in rows[:MOST_ROWS]
    )
    if len(rows) > MOST_ROWS:
        more = f"… {plural(len(rows) - MOST_ROWS, 'more line')} of this diff are not shown"
        content = content + "\n" + styled(more, "bold $waiting")
    return content


def _row(kind: str, number: str, text: str) -> Content:
    if kind == "@":
        return styled(f"{' ' * len(number)}   ⋯{text}", "$faint")
    if kind == "file":
        return styled(text, "bold $tool")
    style = {"+": "$accepted", "-": "$rejected"}.get(kind, "$dim")
    return styled(f"{number} ", "$faint") + styled(f"{kind} {text}", style)


def _lines(diff: str) -> list[tuple[str, str, str]]:
    """(kind, line number, text) of each line; kind is `+`, `-`, a space, `@` for a gap, `file` for a name."""
    rows: list[tuple[str, str, str]] = []
    old = new = old_left = new_left = 0
    for line in diff.splitlines():
        if hunk := _HUNK.match(line):
            old, new = int(hunk[1]), int(hunk[3])
            old_left, new_left = int(hunk[2] or 1), int(hunk[4] or 1)
            if (rows and rows[-1][0] != "file") or hunk[5]:
                rows.append(("@", "", hunk[5]))
        elif line.startswith("\\"):
            rows.append((" ", "", line[2:].lower()))
        # Inside a hunk a line that begins with `---` is a removed line, not the name of a file.
        elif new_left > 0 and line.startswith("+"):
            rows.append(("+", str(new), line[1:]))
            new, new_left = new + 1, new_left - 1
        elif old_left > 0 and line.startswith("-"):
            rows.append(("-", str(old), line[1:]))
            old, old_left = old + 1, old_left - 1
        elif old_left > 0 or new_left > 0:
            rows.append((" ", str(new), line[1:]))
            old, new, old_left, new_left = old + 1, new + 1, old_left - 1, new_left - 1
        elif line.startswith("+++ ") and not line.startswith("+++ /dev/null"):
            rows.append(("file", "", _path(line)))
        elif line.startswith(("--- ", "+++ ")):
            continue
        elif line:
            rows.append(("file", "", line))
    return rows


def _path(line: str) -> str:
    path = line[4:].split("\t")[0]
    return path.removeprefix("b/")
