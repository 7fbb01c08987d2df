"""API keys never leave the program: their values are masked in every event, even across pieces (rule J5)."""

from __future__ import annotations

import dataclasses
import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, TypeVar
from urllib.parse import quote, quote_plus

T = TypeVar("T")

MASK = "[masked]"
"""What the person, the journal and the model see instead of a known key. Text that contains it is never written to
a file, since it would replace the secret by the mask."""

SHORTEST = 8
"""Shorter values are not masked: a key of `test` would mask half the words of a run."""

_ESCAPE = re.compile("%[0-9A-F]{2}")
_KEY_NAME = re.compile(
    r"(^|_)(API_?KEY|API_?TOKEN|AUTH_TOKEN|ACCESS_TOKEN|SECRET_KEY|SECRET_ACCESS_KEY|SESSION_TOKEN)$"
)
_KEY_NAMES = frozenset({"GH_TOKEN", "GITHUB_TOKEN"})


def is_key_name(name: str) -> bool:
    """Whether an environment variable holds a key by the form of its name."""
    upper = name.upper()
    return upper in _KEY_NAMES or _KEY_NAME.search(upper) is not None


def key_values(environ: Mapping[str, str], names: AbstractSet[str] = frozenset()) -> list[str]:
    """The values that are long enough to be masked: of the variables `names` (in upper case), and of those that hold
    keys by the form of their name."""
    held = (v.strip() for k, v in environ.items() if k.upper() in names or is_key_name(k))
    return [value for value in held if len(value) >= SHORTEST]


class Masker:
    """Replaces `values` by `MASK` wherever they occur in text: plain, or as JSON, URLs, base64 and hex write them.

    In base64 they are found at any place of a longer text, on one line.
    """

    def __init__(self, values: Iterable[str]) -> None:
        kept = {v for v in values if len(v) >= SHORTEST}
        # Longest first: if two values start alike, the longer one must be masked whole.
        self._forms = sorted({form for v in kept for form in _forms(v)}, key=lambda f: (-len(f), f))
        self._pattern = re.compile("|".join(map(re.escape, self._forms))) if self._forms else None
        self._beginnings = frozenset(form[:n] for form in self._forms for n in range(1, len(form)))

    def __bool__(self) -> bool:
        return self._pattern is not None

    def mask(self, text: str) -> str:
        """`text` without the values."""
        return self._pattern.sub(MASK, text) if self._pattern is not None else text

    def masked(self, value: T) -> T:
        """`value` with all its text masked: an event, a message, or what is in a list, tuple or dict.

        An object without any of the values is returned itself.
        """
        return self._masked(value) if self._pattern is not None else value

    def stream(self) -> MaskStream:
        """A stream of text to be masked piece by piece."""
        return MaskStream(self)

    def _masked(self, value: Any) -> Any:
        if isinstance(value, str):
            text = self.mask(value)
            return value if text == value else text
        if isinstance(value, dict):
            made: Any = {self._masked(k): self._masked(v) for k, v in value.items()}
        elif isinstance(value, list | tuple):
            made = type(value)([self._masked(v) for v in value])
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            old = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}
            new = {name: self._masked(v) for name, v in old.items()}
            changed = {name: v for name, v in new.items() if v is not old[name]}
            return dataclasses.replace(value, **changed) if changed else value
        else:
            return value
        return made if made != value else value

    def _first(self, text: str, start: int) -> tuple[int, int] | None:
        """The start and end of the first value at or after `start`."""
        match = self._pattern.search(text, start) if self._pattern is not None else None
        return match.span() if match else None

    def _begun(self, text: str, start: int) -> int:
        """Where the longest end of `text` starts that may be the beginning of a value; its length if none
        may."""
        longest = len(self._forms[0]) if self._forms else 0
        for at in range(max(start, len(text) - longest + 1), len(text)):
            if text[at:] in self._beginnings:
                return at
        return len(text)


class MaskStream:
    """Masks text that comes in pieces. Text that may be the start of a value is held back until that is clear.

    Joined, the results of `feed` and `flush` equal `mask` of everything that was fed.
    """

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self._held = ""

    def feed(self, piece: str) -> str:
        """The text that can be shown now."""
        if not self._masker:
            return piece
        text, out, at = self._held + piece, [], 0
        while True:
            begun = self._masker._begun(text, at)
            found = self._masker._first(text, at)
            if found is None or found[0] >= begun:
                break
            out += [text[at : found[0]], MASK]
            at = found[1]
        out.append(text[at:begun])
        self._held = text[begun:]
        return "".join(out)

    def flush(self) -> str:
        """Return the text that was held back. Call it at the end."""
        held, self._held = self._held, ""
        return self._masker.mask(held)


def _forms(value: str) -> set[str]:
    """A value as plain text, and as the usual encodings write it."""
    plain, ascii_only = json.dumps(value, ensure_ascii=False)[1:-1], json.dumps(value)[1:-1]
    forms = {form for f in (value, plain, ascii_only) for form in (f, f.replace("/", "\\/"))}
    raw = value.encode("utf-8", "replace")
    forms |= {raw.hex(), raw.hex().upper(), quote(value, safe=""), quote(value), quote_plus(value)}
    forms |= {_ESCAPE.sub(lambda found: found[0].lower(), form) for form in tuple(forms)}
    for before in range(3):  # where the value starts in a group of three bytes
        whole = b64encode(b"\0" * before + raw + b"\0\0").decode()
        # Only the characters that no neighbour has a part in.
        own = whole[-(-before * 4 // 3) : (before + len(raw)) * 4 // 3]
        forms |= {own, own.replace("+", "-").replace("/", "_"), own.replace("/", "\\/")}
    return forms
