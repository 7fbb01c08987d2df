"""Questions and approvals as numbered choices, for `--plain` on a terminal (rule H5).

A line starts with the number of the choice; text may follow: `4 not on main`. What was typed before a question
appeared does not answer it.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from handrail import events as ev
from handrail.forms import FormError, check_values, described
from handrail_tui.lines.json_lines import Out
from handrail_tui.view.text import one_line, reveal

Asked: TypeAlias = ev.HumanRequested | ev.ApprovalRequested


class Answerable(Protocol):
    """The part of a session that answers go to."""

    def answer(self, id: str, how: Any, text: str = "", *, secret: bool = False) -> object: ...

    def approve(self, id: str, how: Any, text: str = "") -> object: ...


class Terminal(Protocol):
    """Where the person types."""

    async def line(self, *, secret: bool = False) -> str | None:
        """The next line typed from now on, None at the end of the input."""
        ...


@dataclass(frozen=True, slots=True)
class NumberedChoice:
    """One numbered choice. `words` is the prompt for its text, empty where it takes none."""

    how: str
    label: str
    words: str = ""
    needs_words: bool = False


_QUESTION: Final = (
    NumberedChoice("resolved", "done"),
    NumberedChoice("answered", "an answer", "your answer", needs_words=True),
    NumberedChoice("declined", "cannot", "why"),
    NumberedChoice("stopped", "stop the run"),
)


_FORM: Final = (
    NumberedChoice("answered", "fill it in"),
    NumberedChoice("declined", "decline", "why"),
    NumberedChoice("cancelled", "put it away without a decision"),
    NumberedChoice("stopped", "stop the run"),
)


class Prompter:
    """A listener that asks the person, one question at a time, in order."""

    def __init__(self, session: Answerable, out: Out, terminal: Terminal) -> None:
        self._session, self._out, self._terminal = session, out, terminal
        self._open: dict[str, Asked] = {}
        self._asking: tuple[str, asyncio.Task[None]] | None = None

    def __call__(self, event: ev.Event) -> None:
        if isinstance(event, ev.HumanRequested | ev.ApprovalRequested):
            self._open[event.id] = event
        elif isinstance(event, ev.HumanAnswered | ev.ApprovalAnswered):
            self._open.pop(event.id, None)
            if self._asking and self._asking[0] == event.id and self._asking[1] is not asyncio.current_task():
                self._asking[1].cancel()
        self._next()

    def close(self) -> None:
        """Stop asking."""
        self._open.clear()
        if self._asking:
            self._asking[1].cancel()

    def _next(self) -> None:
        if self._asking is None and self._open:
            id, event = next(iter(self._open.items()))
            task = asyncio.get_running_loop().create_task(self._ask(event))
            self._asking = (id, task)
            task.add_done_callback(lambda _: self._done())

    def _done(self) -> None:
        self._asking = None
        self._next()

    async def _ask(self, event: Asked) -> None:
        choices = _choices(event)
        secret = isinstance(event, ev.HumanRequested) and event.secret
        for number, choice in enumerate(choices, 1):
            self._out.line(f"  {number}  {choice.label}" if choice else f"  {number}  (not available)")
        choice, words = await self._chosen(choices, secret)
        self._open.pop(event.id, None)
        if isinstance(event, ev.HumanRequested):
            if event.fields and choice.how == "answered":
                words = await self._filled(event.fields)
            self._session.answer(event.id, choice.how, words, secret=secret and choice.how == "answered")
        else:
            self._session.approve(event.id, choice.how, words)

    async def _filled(self, fields: tuple[ev.FormField, ...]) -> str:
        """The values of a form, asked for one after the other, as JSON; a wrong one is asked for again."""
        values: dict[str, Any] = {}
        for field in fields:
            self._out.line(f"{one_line(described((field,))[0], 500)}:")
            while (line := await self._terminal.line()) is not None:
                try:
                    values |= check_values((field,), {field.name: line.strip()})
                    break
                except FormError as error:
                    self._out.line(one_line(str(error), 500))
        return json.dumps(values, ensure_ascii=False)

    async def _chosen(
        self, choices: tuple[NumberedChoice | None, ...], secret: bool
    ) -> tuple[NumberedChoice, str]:
        """The first line that is a choice; at the end of the input, the choice that allows least."""
        while True:
            self._out.line(f"type 1 to {len(choices)}:")
            line = await self._terminal.line()
            if line is None:
                return next(c for c in choices if c is not None and c.how in ("deny", "declined")), ""
            match = re.fullmatch(r"\s*(\d)\b[\s.:)]*(.*?)\s*", line)
            choice = choices[int(match[1]) - 1] if match and 0 < int(match[1]) <= len(choices) else None
            if match is None or choice is None:
                continue
            words = match[2]
            if choice.words and not words:
                self._out.line(f"{choice.words}:")
                words = (await self._terminal.line(secret=secret) or "").strip()
            if words or not choice.needs_words:
                return choice, words


def _choices(event: Asked) -> tuple[NumberedChoice | None, ...]:
    if isinstance(event, ev.ApprovalRequested):
        return _approval(event)
    return _FORM if event.fields else _QUESTION


def _approval(event: ev.ApprovalRequested) -> tuple[NumberedChoice | None, ...]:
    session = (
        NumberedChoice("session", f"always in this session: {_always(event)}") if event.pattern else None
    )
    return (
        NumberedChoice("once", "allow once"),
        session,
        NumberedChoice("deny", "deny"),
        NumberedChoice("deny", "deny and say why", "why", needs_words=True),
    )


def _always(event: ev.ApprovalRequested) -> str:
    """The pattern, with a call that it would allow and one that it would not."""
    words = one_line(reveal(event.pattern or ""), 2_000)
    if not event.covers:
        return words
    covers, asks = one_line(reveal(event.covers), 400), one_line(reveal(event.asks_again), 400)
    return f"{words} (for example {covers}, not {asks})"


class TypedLines:
    """Lines typed on the terminal behind `stdin`, read without blocking the event loop."""

    def __init__(self) -> None:
        self._fd = sys.stdin.fileno()

    async def line(self, *, secret: bool = False) -> str | None:
        loop = asyncio.get_running_loop()
        came: asyncio.Future[bytes] = loop.create_future()
        read = bytearray()

        def readable() -> None:
            try:
                piece = os.read(self._fd, 4096)
            except OSError:
                piece = b""
            read.extend(piece)
            if (not piece or b"\n" in piece) and not came.done():
                came.set_result(bytes(read))

        with _fresh(self._fd, secret):
            loop.add_reader(self._fd, readable)
            try:
                line = await came
            finally:
                loop.remove_reader(self._fd)
        return line.decode("utf-8", "replace").split("\n")[0] if line else None


@contextmanager
def _fresh(fd: int, secret: bool) -> Iterator[None]:
    """Discard what was typed before; with `secret`, do not echo what is typed now."""
    try:
        import termios
    except ImportError:  # not a Unix terminal
        yield
        return
    with suppress(termios.error):
        termios.tcflush(fd, termios.TCIFLUSH)
    if not secret:
        yield
        return
    before = termios.tcgetattr(fd)
    hidden = [*before]
    hidden[3] &= ~termios.ECHO
    termios.tcsetattr(fd, termios.TCSADRAIN, hidden)
    try:
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)
