"""Foreign text made safe for a terminal (rule L11), and the formats of numbers, durations and times.

All text of models, tools and providers goes through this module before it reaches a terminal. Events, the journal and
the model keep the original text.
"""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from collections.abc import Callable, Iterable
from datetime import datetime, tzinfo
from typing import Any, Final

from pydantic_core import to_jsonable_python

from handrail.messages import clean

LINE_LIMIT: Final = 2_000
"""Characters of a line that are shown; the rest is only counted."""

KEEP: Final = 60_000
"""Characters that are shown of a long text, from its start and from its end."""

_ZERO_WIDTH_RUN: Final = 6
"""Combining marks allowed in a row. Scripts stack three or four; more is abuse."""

# A control string (OSC, DCS, SOS, PM, APC) ends where its line ends: an unterminated one hides nothing.
_SEQUENCE: Final = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"
    "|(?:\x1b[\\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x1b\x07\x9c\n]*(?:\x07|\x1b\\\\|\x9c)"
    "|\x1b[ -/]*[0-~]?"
)
_UNFINISHED: Final = re.compile(
    "(?:(?:\x1b\\[|\x9b)[0-?]*[ -/]*"
    "|(?:\x1b[\\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x1b\x07\x9c\n]*\x1b?"
    "|\x1b[ -/]*"
    "|\r)\\Z"
)
INVISIBLE: Final = (
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""The characters that draw nothing, reorder or break lines, as the inside of a character class. The one table of them:
approvals show each by its number, JSON lines escape each. U+FE0E and U+FE0F, which choose between text and emoji, are
left out."""

_CONTROL_SET: Final = "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u2060-\u2064\ufff9-\ufffb\U000e0000-\U000e007f"
_CONTROL: Final = re.compile(f"[{_CONTROL_SET}]")
_HIDDEN: Final = re.compile(f"[{_CONTROL_SET}{INVISIBLE}]")
_BIDI: Final = re.compile("[\u202a-\u202e\u2066-\u2069]")
_BIDI_NAMES: Final = {
    "\u202a": "LRE",
    "\u202b": "RLE",
    "\u202c": "PDF",
    "\u202d": "LRO",
    "\u202e": "RLO",
    "\u2066": "LRI",
    "\u2067": "RLI",
    "\u2068": "FSI",
    "\u2069": "PDI",
}
_MARKS: Final = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u064b-\u065f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u1ab0-\u1aff"
    "\u1dc0-\u1dff\u200b-\u200f\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f\ufeff"
)
_ZERO_WIDTH: Final = re.compile(f"([{_MARKS}]{{{_ZERO_WIDTH_RUN}}})[{_MARKS}]+")
_LEADING_MARKS: Final = re.compile(f"[{_MARKS}]")
_TRAILING_MARKS: Final = re.compile(f"[{_MARKS}]{{1,{_ZERO_WIDTH_RUN}}}\\Z")
_OVERSTRIKE: Final = re.compile("[^\n\x08]\x08")
_NOT_PLAIN: Final = re.compile("[^\t\n -~]")
# Text without any of these (most text, in most languages) is already clean.
_SUSPECT: Final = re.compile(f"[{_CONTROL_SET}\u2028-\u202e\u2065-\u2069\ud800-\udfff{_MARKS}]")


def clean_for_terminal(text: str) -> str:
    r"""`text` without anything that a terminal would obey; `\n` and `\t` stay (rule L11).

    Escape sequences are removed whole. A carriage return starts a new line, so that it hides nothing. Bidi controls
    become visible, lone surrogates become U+FFFD, runs of zero-width marks are capped.
    """
    if _SUSPECT.search(text) is None:
        return text
    text = clean(text)
    text = _SEQUENCE.sub("", text)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\x08" in text:
        text = _OVERSTRIKE.sub("", text)
    text = text.replace("\u2028", "\n").replace("\u2029", "\n")
    text = _CONTROL.sub("", text)
    text = _BIDI.sub(lambda m: f"‹{_BIDI_NAMES[m[0]]}›", text)
    return _ZERO_WIDTH.sub(r"\1", text)


def reveal(text: str) -> str:
    r"""`text` with what a terminal would obey or not draw made visible: ESC reads `␛`, a zero-width space `‹U+200B›`.

    For approvals: a command must not look shorter than it is, or like another one. `\n` and `\t` stay.
    """
    if _NOT_PLAIN.search(text) is None:
        return text
    text = clean(text.replace("\x00", "␀"))
    text = re.sub("[\x01-\x08\x0b-\x1f]", lambda m: chr(0x2400 + ord(m[0])), text).replace("\x7f", "␡")
    text = _HIDDEN.sub(_named, text)
    return clean_for_terminal(text)


def _named(match: re.Match[str]) -> str:
    return f"‹{_BIDI_NAMES.get(match[0]) or f'U+{ord(match[0]):04X}'}›"


def one_line(text: str, limit: int = 200) -> str:
    """`text` cleaned, its white space folded to single spaces, cut with `…` after `limit` characters."""
    # The first part is enough: the rest is not shown.
    text = " ".join(clean_for_terminal(text[: limit * 8]).split())
    return text if len(text) <= limit else cut(text, limit)


def cut(text: str, limit: int) -> str:
    """The first characters of `text` and `…`, `limit` in all. Never splits a character from its marks."""
    if len(text) <= limit:
        return text
    end = max(0, limit - 1)
    while end and (_joins(text[end]) or text[end - 1] == "\u200d"):
        end -= 1
    return text[:end].rstrip() + "…"


def _joins(char: str) -> bool:
    """Whether `char` combines with the character before it."""
    return bool(unicodedata.combining(char)) or char in "\u200d\ufe0e\ufe0f"


def cut_lines(text: str, limit: int = LINE_LIMIT) -> str:
    """`text` with each line cut to `limit` characters, and the number of characters left out."""
    if len(text) <= limit:
        return text
    return "\n".join(
        line if len(line) <= limit else f"{cut(line, limit)} {count(len(line) - limit + 1)} more characters"
        for line in text.split("\n")
    )


def clean_long(text: str) -> str:
    """`text` cleaned; of a long one only its start and its end, and how much is between them."""
    if len(text) <= 2 * KEEP:
        return clean_for_terminal(text)
    between = plural(len(text) - 2 * KEEP, "character")
    return "\n".join(
        (clean_for_terminal(text[:KEEP]), f"… {between} left out …", clean_for_terminal(text[-KEEP:]))
    )


def clean_value(value: Any, cleaner: Callable[[str], str] = clean_for_terminal) -> Any:
    """A value as JSON types, with every string cleaned, including keys."""
    if isinstance(value, str):
        return cleaner(value)
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, dict):
        return {cleaner(str(k)): clean_value(v, cleaner) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [clean_value(v, cleaner) for v in value]
    return clean_value(to_jsonable_python(value, fallback=str, bytes_mode="base64"), cleaner)


class Cleaner:
    """`clean_for_terminal` for streamed text: an incomplete escape sequence is held back until it is complete."""

    __slots__ = ("_before", "_held")
    LONGEST = 4_096

    def __init__(self) -> None:
        self._held = ""
        self._before = ""

    def feed(self, piece: str) -> str:
        """The text that can be shown now, from `piece` and what was held back."""
        if not self._held and _SUSPECT.search(piece) is None:
            self._before = ""
            return piece
        text = self._held + piece
        torn = _UNFINISHED.search(text, max(0, len(text) - self.LONGEST))
        self._held = text[torn.start() :] if torn and len(text) - torn.start() < self.LONGEST else ""
        text = text[: len(text) - len(self._held)].replace("\r\n", "\n").replace("\r", "\n")
        before = self._before if text and _LEADING_MARKS.match(text) else ""
        shown = clean_for_terminal(before + text)[len(before) :]
        trailing = _TRAILING_MARKS.search(before + shown)
        self._before = trailing[0] if trailing else ""
        return shown

    def close(self) -> str:
        """The held-back text, which was not an escape sequence after all."""
        held, self._held = self._held, ""
        return clean_for_terminal(held)


class Tail:
    """The last lines of a live output, cleaned, and the total number of lines. Bounded in memory and time.

    Of a line redrawn with carriage returns, such as a progress bar, only the last state is shown while it is live.
    """

    __slots__ = ("_last", "lines", "total")
    KEEP = 50
    _CHARS = 16_384

    def __init__(self) -> None:
        self.lines: deque[str] = deque(maxlen=self.KEEP)
        self.total = 0
        self._last = ""

    def feed(self, piece: str) -> None:
        """More output."""
        self.total += piece.count("\n")
        text = (self._last + piece) if len(piece) < self._CHARS else piece[-self._CHARS :]
        *whole, last = text.split("\n")
        self.lines.extend(cut(clean_for_terminal(_redrawn(line)), LINE_LIMIT) for line in whole[-self.KEEP :])
        # Of a line that is redrawn again and again only the newest part is kept.
        self._last = last if len(last) < self._CHARS else last[-self._CHARS :]

    def last(self, count: int) -> list[str]:
        """The newest `count` lines, without blank ones at the end, including the unfinished one."""
        open_line = cut(clean_for_terminal(_redrawn(self._last)), LINE_LIMIT)
        shown = [*self.lines, *([open_line] if open_line.strip() else [])]
        while shown and not shown[-1].strip():
            shown.pop()
        return shown[-count:]


def _redrawn(line: str) -> str:
    """The line as it looks after its carriage returns."""
    if "\r" not in line:
        return line
    return next((part for part in reversed(line.split("\r")) if part), "")


def line_count(text: str) -> int:
    """The number of lines; a newline at the end starts no new line."""
    return text.count("\n") + (not text.endswith("\n")) if text else 0


def count(number: float) -> str:
    """`812`, `1.2k`, `18.4k`, `200k`, `1.3M`: at most four characters."""
    for size, unit in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if number >= size * 0.99995:
            scaled = number / size
            return f"{scaled:.0f}{unit}" if scaled >= 99.95 else f"{scaled:.1f}".removesuffix(".0") + unit
    return f"{number:.0f}"


def plural(number: int, one: str, many: str | None = None) -> str:
    """`1 line`, `214 lines`."""
    return f"{count(number)} {one if number == 1 else many or one + 's'}"


def seconds(value: float) -> str:
    """A measured duration: `0.02 s`, `1.9 s`, `38 s`, `2:31`, `1:02:31`."""
    if value < 0.995:
        return f"{max(0.0, value):.2f} s"
    if value < 9.95:
        return f"{value:.1f} s"
    return f"{value:.0f} s" if value < 59.5 else countdown(value)


def about(value: float) -> str:
    """A delay, rounded: `2 s`, `0.5 s`, `42 min`, `5 h`, `1 h 5 min`."""
    if value < 59.5:
        return f"{value:.1f}".removesuffix(".0") + " s" if value < 10 else f"{value:.0f} s"
    hours, minutes = divmod(round(value / 60), 60)
    return join((f"{hours} h" if hours else "", f"{minutes} min" if minutes else ""), " ")


def countdown(value: float) -> str:
    """`0:41`, `12:05`, `1:02:31`: whole seconds, never below zero."""
    whole = max(0, round(value))
    hours, rest = divmod(whole, 3600)
    minutes, secs = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{secs:02}" if hours else f"{minutes}:{secs:02}"


def remaining(value: float) -> str:
    """A long countdown: `0:38:07`, `26:00:00`; whole seconds, rounded up so that 0:00:00 means now."""
    whole = max(0, -int(-value // 1))
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"


def clock_time(moment: float) -> str:
    """A moment as local time: `12:04:11`."""
    return f"{datetime.fromtimestamp(moment):%H:%M:%S}"


def local_time(moment: float, now: float, *, seconds: bool = True) -> str:
    """A moment as local time: `12:04:11`, with the date where it is neither today nor within twelve hours.

    Without `seconds`: `12:04`.
    """
    then, today = datetime.fromtimestamp(moment), datetime.fromtimestamp(now)
    near = then.date() == today.date() or 0 <= moment - now < 43_200.0
    day = "" if near else f"{then:%d %b} " if then.year == today.year else f"{then:%d %b %Y} "
    return day + (f"{then:%H:%M:%S}" if seconds else f"{then:%H:%M}")


def full_time(moment: float, zone: tzinfo | None) -> str:
    """A moment with its date and time zone: `Tue 02 Dec 2025 12:04:11 CET`. None: the local zone."""
    return f"{datetime.fromtimestamp(moment).astimezone(zone):%a %d %b %Y %H:%M:%S %Z}"


def money(dollars: float) -> str:
    """`$0.21`; below ten cents one more digit: `$0.004`."""
    return f"${dollars:.2f}" if dollars >= 0.095 or dollars == 0 else f"${dollars:.3f}"


def join(parts: Iterable[str], between: str = "  ") -> str:
    """The non-empty parts, joined."""
    return between.join(part for part in parts if part)
