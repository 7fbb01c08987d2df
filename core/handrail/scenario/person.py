"""The scripted person of a scenario: acts at the moment an entry names, through a session's commands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from handrail import events as ev
from handrail.clock import Timer
from handrail.loop.people import HumanQuestion
from handrail.scenario.file import PersonPart
from handrail.session import Session

_ANSWERS = {
    "human": ("resolve", "answer", "decline", "stop"),
    "approval": ("approve", "approve_session", "deny", "stop"),
}
"""The actions that answer a question of that kind. Other actions leave it open."""


class ScriptedPerson:
    """Plays `entries` on a session. If no entry answers a question, nobody is there (rule H4).

    `thinks_s` is how long the person takes over a question or an approval, in seconds of the run's clock; 0 answers at
    once.
    """

    def __init__(self, entries: Sequence[PersonPart], thinks_s: float = 0.0) -> None:
        self._left = list(entries)
        self._thinks_s = thinks_s
        self._session: Session | None = None
        self._wait: ev.WaitStarted | None = None
        self._timers: list[Timer] = []
        self._asked: set[str] = set()

    def attend(self, session: Session) -> None:
        """Watch `session` and act on it."""
        self._session = session
        session.listen(self._on_event)

    def attended(self, asked: HumanQuestion) -> bool:
        """Whether an entry answers this."""
        return asked.id in self._asked or self._answer_to(asked) is not None

    def _on_event(self, event: ev.Event) -> None:
        if isinstance(event, ev.HumanRequested | ev.ApprovalRequested):
            self._on_ask(event)
        elif isinstance(event, ev.WaitStarted):
            self._wait = event
            self._on_wait(event)
        elif isinstance(event, ev.WaitEnded):
            self._wait = None
            for timer in self._timers:
                timer.cancel()
            self._timers.clear()
        elif isinstance(event, ev.MessageStarted):
            # After the event: by then the request itself has started.
            asyncio.get_running_loop().call_soon(self._on_turn, event.turn or 0)

    def _on_ask(self, asked: HumanQuestion) -> None:
        """Do what comes before the answer; then answer, if an entry does."""
        if asked.id in self._asked:
            return
        moment = _moment(asked)
        answer = self._answer_to(asked)
        while (entry := self._find(moment)) is not None and entry is not answer:
            self._left.remove(entry)
            self._do(entry)
        if answer is None:
            return
        self._left.remove(answer)
        self._asked.add(asked.id)
        self._soon(self._thinks_s, lambda: self._do(answer, asked.id))

    def _answer_to(self, asked: HumanQuestion) -> PersonPart | None:
        moment = _moment(asked)
        return next((e for e in self._left if e.when == moment and e.do in _ANSWERS[moment]), None)

    def _on_wait(self, wait: ev.WaitStarted) -> None:
        while self._wait is wait and (entry := self._find("wait")) is not None:
            self._left.remove(entry)
            self._do(entry)
            if _ends(entry, wait):
                return
        for late in [e for e in self._left if e.when.startswith("wait:")]:
            seconds = float(late.when[5:-1])
            self._timers.append(self._in(seconds, partial(self._late, late, wait)))

    def _late(self, entry: PersonPart, wait: ev.WaitStarted) -> None:
        if self._wait is not wait:
            return
        self._left.remove(entry)
        if _ends(entry, wait):
            self._wait = None
        self._do(entry)

    def _on_turn(self, turn: int) -> None:
        for entry in [e for e in self._left if e.when.startswith("turn:") and int(e.when[5:]) <= turn]:
            self._left.remove(entry)
            self._do(entry)

    def _find(self, moment: str) -> PersonPart | None:
        return next((e for e in self._left if e.when == moment), None)

    def _soon(self, seconds: float, act: Callable[[], None]) -> None:
        if seconds > 0:
            self._in(seconds, act)
        else:
            act()

    def _in(self, seconds: float, act: Callable[[], None]) -> Timer:
        assert self._session is not None
        return self._session.clock.call_later(seconds, act)

    def _do(self, entry: PersonPart, id: str = "") -> None:
        session = self._session
        assert session is not None
        acts: dict[str, Callable[[], object]] = {
            "resolve": lambda: session.answer(id, "resolved", entry.text),
            "answer": lambda: session.answer(id, "answered", entry.text),
            "decline": lambda: session.answer(id, "declined", entry.text),
            "approve": lambda: session.approve(id, "once", entry.text),
            "approve_session": lambda: session.approve(id, "session", entry.text),
            "deny": lambda: session.approve(id, "deny", entry.text),
            "skip": session.skip_wait,
            "stop": session.stop,
            "steer": lambda: session.steer(entry.text),
            "follow_up": lambda: session.follow_up(entry.text),
            "recovery_off": lambda: session.set_recovery(False),
        }
        acts[entry.do]()


def _ends(entry: PersonPart, wait: ev.WaitStarted) -> bool:
    """Whether the action ends the pause. Further entries then belong to the next one (rules R1, R12)."""
    if entry.do == "steer":
        return wait.decision in ("retry", "resume")
    return entry.do in ("skip", "stop", "recovery_off")


def _moment(asked: HumanQuestion) -> str:
    return "approval" if isinstance(asked, ev.ApprovalRequested) else "human"
