"""Thinking that a server leaves in the text, between tags (rule W5).

A text that begins with an opening tag begins with a thought. Templates that write the opening tag themselves send only
the closing one: then all before it is the thought. A text that merely speaks of such tags stays a text.
"""

from __future__ import annotations

import re
from typing import Final

_NAMES: Final = r"(?:[a-z]{1,12}:)?(?:think|thinking|thought|thoughts|reasoning|reason|reflection|analysis)"
_OPEN: Final = re.compile(
    rf"\s*(?:<\|?(?P<angle>{_NAMES})(?:\s[^<>]{{0,200}})?\|?>|\[(?P<square>{_NAMES})\]|◁(?P<moon>{_NAMES})▷"
    r"|<\|(?P<begin>begin_of_thought)\|>|<\|channel\|>(?P<channel>analysis|commentary)<\|message\|>)",
    re.IGNORECASE,
)
_CLOSE: Final = re.compile(
    rf"(?:</\|?{_NAMES}\s?\|?>|<\|/{_NAMES}\|>|<\|end_?(?:of_)?{_NAMES}\|>|\[/{_NAMES}\]|◁/{_NAMES}▷)",
    re.IGNORECASE,
)
_CHANNEL_END: Final = re.compile(
    r"<\|end\|>(?:<\|start\|>assistant)?(?:<\|channel\|>final)?(?:<\|message\|>)?"
    r"|<\|start\|>assistant<\|channel\|>final<\|message\|>|<\|channel\|>final<\|message\|>"
)
_HALF_OPEN: Final = re.compile(
    r"\s*(?:<\|?[a-z_:]{0,30}(?:\s[^<>]*)?\|?|<\|channel\|>[a-z]{0,12}(?:<\|?[a-z]{0,8}\|?)?|\[[a-z]{0,12}|◁[a-z]{0,12})?",
    re.IGNORECASE,
)
_TAG_STARTS: Final = ("<", "[", "◁")
LONGEST: Final = 260  # characters of an opening tag
_QUOTES: Final = "`'\"“”‘’«»"


def split_thought(text: str) -> tuple[str, str]:
    """The thought at the beginning of a text, and the text without it."""
    thoughts = []
    while (opened := _OPEN.match(text)) is not None:
        closed = _closing(opened).search(text, opened.end())
        if closed is None:
            thoughts.append(text[opened.end() :])
            text = ""
            break
        thoughts.append(text[opened.end() : closed.start()])
        text = text[closed.end() :].lstrip()
    if not thoughts and "/" in text and (closed := _closing_alone(text)) is not None:
        thoughts.append(text[: closed.start()])
        text = text[closed.end() :].lstrip()
    return "\n\n".join(thought for thought in (t.strip() for t in thoughts) if thought), text


def may_open(text: str) -> bool:
    """Whether a text that begins like this may begin with an opening tag, once more of it is there."""
    return len(text) <= LONGEST and _HALF_OPEN.fullmatch(text) is not None


def _closing(opened: re.Match[str]) -> re.Pattern[str]:
    return _CHANNEL_END if opened["channel"] else _CLOSE


def _closing_alone(text: str) -> re.Match[str] | None:
    """The first closing tag, where it ends a thought and is not what the text speaks of."""
    closed = _CLOSE.search(text)
    if closed is None or _speaks_of_tags(text[: closed.start()]):
        return None
    before, behind = text[: closed.start()][-1:], text[closed.end() :][:1]
    if (before and before in _QUOTES) or (behind and behind in _QUOTES):
        return None
    own_line = behind in ("", "\n", "\r") or before in ("", "\n")
    return closed if own_line or not (before.isspace() or behind.isspace()) else None


def _speaks_of_tags(before: str) -> bool:
    opening = re.search(rf"<\|?{_NAMES}[\s|>]|\[{_NAMES}\]|◁{_NAMES}▷", before, re.IGNORECASE)
    return opening is not None or before.count("```") % 2 == 1


class LiveThought:
    """Tells thinking from text while a text arrives. `feed` gives the (kind, text) pieces that are certain."""

    def __init__(self) -> None:
        self._held = ""
        self._end: re.Pattern[str] | None = None
        self._behind = False  # a thought ended right before this
        self.settled = False  # all that follows is text

    def feed(self, piece: str) -> list[tuple[str, str]]:
        """The pieces that `piece` makes certain."""
        self._held += piece
        found: list[tuple[str, str]] = []
        while self._held and not self.settled:
            if self._end is None:
                opened = _OPEN.match(self._held)
                if opened is not None:
                    self._end, self._held = _closing(opened), self._held[opened.end() :]
                    continue
                if may_open(self._held):
                    break
                self.settled = True
                if self._behind:
                    self._held = self._held.lstrip()
                break
            closed = self._end.search(self._held)
            if closed is None:
                certain = self._before_a_tag()
                if certain:
                    found.append(("thinking", self._held[:certain]))
                    self._held = self._held[certain:]
                break
            if closed.start():
                found.append(("thinking", self._held[: closed.start()]))
            self._end, self._behind, self._held = None, True, self._held[closed.end() :]
        if self.settled and self._held:
            found.append(("text", self._held))
            self._held = ""
        return found

    def finish(self) -> list[tuple[str, str]]:
        """What was held back, once nothing more comes."""
        held, self._held, self.settled = self._held, "", True
        if not held or (self._behind and not self._end and not held.strip()):
            return []
        return [("thinking" if self._end else "text", held)]

    def _before_a_tag(self) -> int:
        """How much of what is held cannot belong to a closing tag."""
        at = max(self._held.rfind(mark, max(0, len(self._held) - 80)) for mark in _TAG_STARTS)
        return at if at >= 0 else len(self._held)
