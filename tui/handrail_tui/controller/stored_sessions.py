"""What can be done to a stored session from the list. Each returns what to say; all may block."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from handrail.clock import Clock
from handrail.errors import ConfigError
from handrail.session.store import Store
from handrail.session.summary import SessionSummary
from handrail.toml import short_path
from handrail_tui.lines.export import as_lines, as_page
from handrail_tui.view.text import one_line


def fork(store: Store, summary: SessionSummary, clock: Clock) -> str:
    """Raises ConfigError."""
    id = store.fork(summary.id, clock)
    return f"Forked as {id}; {summary.id} is unchanged."


def delete(store: Store, summary: SessionSummary) -> str:
    """Raises ConfigError."""
    store.delete(summary.id)
    return f"Deleted: {one_line(summary.title, 60) or summary.id}"


def export(store: Store, id: str, form: Literal["md", "jsonl"], folder: Path) -> str:
    """Write the session to a new file in `folder`. Raises ConfigError, OSError."""
    contents = store.read(id)
    text = as_page(contents) if form == "md" else as_lines(contents)
    path = folder / f"handrail-{id}.{form}"
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ConfigError(f"{short_path(path)} exists. Move it away first.") from None
    return f"Written to {short_path(path)}"
