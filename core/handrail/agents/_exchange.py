"""One request on its way through the gateway, and what is said of it: refusals, bills, deltas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from handrail import events as ev
from handrail.agents._stage import Turn
from handrail.agents._tap import Tap
from handrail.agents.limits import Limit
from handrail.agents.routes import Route
from handrail.messages import Failure, Usage
from handrail.providers.base import CallDelta, CallStarted, ModelInfo, Part, TextDelta, ThinkingDelta

_MAX_ERROR: Final = 64 * 1024
_REPEATED: Final = frozenset({"content-type"})


@dataclass(slots=True)
class ModelBill:
    """What one model was asked. `cost` is None while its price is unknown."""

    requests: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: float | None = 0.0


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the gateway answers a request by itself. `limit` is set when it repeats a provider's own words."""

    status: int
    words: str
    code: str
    limit: Limit | None = None


@dataclass(slots=True, eq=False)
class Exchange:
    """A request under way. `client_left`: the client went away before the reply was whole."""

    turn: Turn
    route: Route
    account: str
    model: ModelInfo
    sent: int
    began: float
    tap: Tap
    finish: Callable[[Exchange], object]
    ended: bool = False
    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    error: bytearray = field(default_factory=bytearray)
    client_left: bool = False
    unreached: Failure | None = None

    def head(self, status: int, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """The provider's reply began."""
        self.status = status
        named = ((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in headers)
        self.headers = tuple(pair for pair in named if pair[0] in _REPEATED)
        self.tap.head(status, headers)

    def body(self, data: bytes) -> None:
        """More of it came."""
        if self.status >= 400 and len(self.error) < _MAX_ERROR:
            self.error += data
        self.tap.feed(data)

    def end(self) -> None:
        """The reply is whole."""
        self.over(whole=True)

    def over(self, *, whole: bool, client_left: bool = False) -> None:
        """Nothing more comes of this request. The first word counts."""
        if not self.ended:
            self.ended, self.client_left = True, client_left
            self.tap.end(whole=whole)
            self.finish(self)


def deltas(parts: Sequence[Part], at: float, turn: int) -> list[ev.MessageDelta]:
    """The parts of a burst as few events as they can be: neighbours of one kind join."""
    made: list[ev.MessageDelta] = []
    run: list[str] = []
    kind: tuple[str, int | None] = ("", None)

    def flush() -> None:
        if run:
            made.append(ev.MessageDelta(at=at, turn=turn, kind=kind[0], text="".join(run), index=kind[1]))  # type: ignore[arg-type]
            run.clear()

    for part in parts:
        match part:
            case TextDelta(text):
                this: tuple[str, int | None] = ("text", None)
            case ThinkingDelta(text):
                this = ("thinking", None)
            case CallDelta(index, text):
                this = ("tool_call", index)
            case CallStarted(index, _, name):
                flush()
                kind = ("tool_call", index)
                made.append(ev.MessageDelta(at=at, turn=turn, kind="tool_call", index=index, name=name))
                continue
            case _:
                continue
        if this != kind:
            flush()
            kind = this
        run.append(text)
    flush()
    return made
