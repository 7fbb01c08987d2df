"""Makes the table of oddities of docs/providers.md: `python docs/make/oddities_table.py`.

Each row comes from `tests/core/providers/oddities`: a reply as a server sent it, and what is to be made of it. Every
reply is read here and now; one that is read otherwise ends the program with its name.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs/providers.md"
START: Final = "<!-- oddities: made by `python docs/make/oddities_table.py` -->"
END: Final = "<!-- end of oddities -->"
WIRES: Final = {"openai-chat": "chat", "openai-responses": "responses", "anthropic": "anthropic"}
MADE_OF: Final = {
    "stop": "a whole reply",
    "tool_use": "tool calls",
    "length": "a cut reply: continued",
    "refusal": "a refusal",
    "error": "a failure",
}


def result(row: dict[str, Any]) -> str:
    """What is made of the reply of a row, in words."""
    if any(call["arguments"] is None for call in row["tool_calls"]):
        return "a call with an error, never run"
    words = MADE_OF[row["stop"]]
    return f"{words}: {row['class']}" if row["stop"] == "error" else words


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """The lines of the table."""
    yield f"{len(rows)} replies. Each is tested whole, in single bytes, with each line end, with noise, and cut."
    for kind in dict.fromkeys(row["kind"] for row in rows):
        chosen = [row for row in rows if row["kind"] == kind]
        yield f"\n**{kind.capitalize()}** ({len(chosen)})\n"
        yield "| a server sends | Handrail makes of it | protocol |"
        yield "| --- | --- | --- |"
        for row in chosen:
            yield f"| {row['made'].replace('|', chr(92) + '|')} | {result(row)} | {WIRES[row['api']]} |"


def page(rows: list[dict[str, Any]]) -> str:
    """docs/providers.md with the table of now."""
    head, _, rest = PAGE.read_text("utf-8").partition(START)
    _, _, tail = rest.partition(END)
    return f"{head}{START}\n\n" + "\n".join(table(rows)) + f"\n\n{END}{tail}"


def main() -> int:
    sys.path.insert(0, str(ROOT / "tests/support"))
    from bytes_in import paused, reply_of
    from oddities import OWN, differences, oddities

    found = oddities(OWN)
    for oddity in found:
        reply = reply_of(oddity.row, paused(oddity.row, oddity.body), broken=oddity.row.get("cut", False))
        if wrong := differences(oddity.row, reply):
            sys.exit(f"{oddity.name} is read otherwise: {'; '.join(wrong)}")
    PAGE.write_text(page([dict(oddity.row) for oddity in found]), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
