"""The events of a run as lines of JSON, and the stream that lines are written to. For people: `plain.py`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final, TextIO

from handrail.events import Event, MessageFinished
from handrail.events.wire import Codec
from handrail_tui.view.text import INVISIBLE

# JSON escapes C0 by itself. These are able to control a terminal, to reorder text, or to end a line
# for some readers; a JSON parser restores them unchanged (rule L11).
_UNSAFE: Final = re.compile(f"[\x7f-\x9f\ud800-\udfff{INVISIBLE}]")


def to_json(event: Event) -> str:
    """One event as one line of JSON, without a newline: `type`, `at`, then the rest (docs/command-line.md)."""
    data = _first("type", json.loads(Codec.dumps(event)))
    if isinstance(event, MessageFinished):
        message = _first("role", data["message"])
        data["message"] = message | {"content": [_first("type", block) for block in message["content"]]}
    return safe_json(data)


def _first(key: str, data: dict[str, Any]) -> dict[str, Any]:
    """`data` with `key` in front: what a reader looks at first."""
    return {key: data[key], **data}


def safe_json(value: object, indent: int | None = None) -> str:
    """`value` as JSON: the same text for a parser, and nothing that a terminal would obey.

    Compact on one line, so that a plain search for `"type":"run_finished"` finds it; or indented.
    """
    between = (",", ":") if indent is None else (",", ": ")
    text = json.dumps(value, ensure_ascii=False, indent=indent, separators=between, allow_nan=False)
    return _UNSAFE.sub(lambda m: json.dumps(m[0])[1:-1], text)


class Out:
    """A stream that gets whole lines, each flushed. A closed pipe is reported once."""

    def __init__(self, stream: TextIO, gone: Callable[[], object] = lambda: None) -> None:
        self._stream, self._gone = stream, gone
        self.closed = False
        self.terminal = stream.isatty()

    def on_gone(self, call: Callable[[], object]) -> None:
        """Call `call` when the reader closes the stream."""
        self._gone = call

    def line(self, text: str = "") -> None:
        """Write `text` and a newline. Characters that the stream's encoding lacks are replaced."""
        if self.closed:
            return
        try:
            encoding = self._stream.encoding or "utf-8"
            self._stream.write((text + "\n").encode(encoding, "replace").decode(encoding))
            self._stream.flush()
        except (OSError, ValueError):  # the pipe or the terminal is gone, or the stream was closed
            self.closed = True
            self._gone()


class JsonLines:
    """A listener that writes each event as a line of JSON, in UTF-8 whatever the terminal uses."""

    def __init__(self, out: Out) -> None:
        self._out = out

    def __call__(self, event: Event) -> None:
        self._out.line(to_json(event))
