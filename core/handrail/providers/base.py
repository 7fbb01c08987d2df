"""What the loop asks of a model, and what a model gives back, whatever wire it speaks.

A provider turns a `Request` into a stream of parts. The last part is always a `Finished`: a fault of the
provider is data (`stop_reason="error"` with a `Failure`, partial content kept), never an exception, and a
provider never retries by itself (rules K1, R4). Closing the iterator ends the request at once (rule L9).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from handrail.messages import AssistantMessage, Failure, Message, StopReason, Usage
from handrail.policy import Effort

ToolChoice: TypeAlias = Literal["auto", "required", "none"]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model sees it. `parameters` is a JSON Schema whose root is an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens."""

    input: float
    output: float
    cache_read: float = 0.0
    cache_write: float = 0.0

    def cost(self, usage: Usage | None) -> float:
        """The cost of `usage` in dollars; no usage costs 0."""
        if usage is None:
            return 0.0
        million = usage.input * self.input + usage.output * self.output
        return (
            million + usage.cache_read * self.cache_read + usage.cache_write * self.cache_write
        ) / 1_000_000


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What is known of a model. None means unknown, never zero. `name` is `provider/name`."""

    name: str
    window: int | None = None
    max_output: int | None = None
    price: Price | None = None
    images: bool = False

    @property
    def provider(self) -> str:
        return self.name.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Request:
    """One call of a model. `max_output` is the asked-for cap in tokens; None leaves it to the provider."""

    messages: Sequence[Message]
    system: str = ""
    tools: Sequence[ToolSpec] = ()
    max_output: int | None = None
    tool_choice: ToolChoice = "auto"
    effort: Effort | None = None


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More readable text."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """More readable thinking."""

    text: str


@dataclass(frozen=True, slots=True)
class CallStarted:
    """A tool call begins. `index` numbers the calls of the reply from 0."""

    index: int
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class CallDelta:
    """More of the raw JSON arguments of call `index`."""

    index: int
    text: str


class ReplySoFar(Protocol):
    """A reply while it arrives."""

    def message(
        self, stop_reason: StopReason, *, stop_detail: str | None = None, failure: Failure | None = None
    ) -> AssistantMessage:
        """What came so far, as a reply that ended for `stop_reason`."""
        ...


@dataclass(frozen=True, slots=True)
class Started:
    """The reply that the parts behind this one make up, as far as it came at any moment.

    A provider that collects its reply anyway sends this first, so that the loop need not collect it again.
    """

    reply: ReplySoFar


@dataclass(frozen=True, slots=True)
class ProviderNotice:
    """A line for the person about the server or the connection; not part of the reply."""

    text: str
    level: Literal["info", "warning"] = "info"


@dataclass(frozen=True, slots=True)
class Finished:
    """The whole reply; always the last part."""

    message: AssistantMessage


Part: TypeAlias = TextDelta | ThinkingDelta | CallStarted | CallDelta | Started | ProviderNotice | Finished


@runtime_checkable
class Provider(Protocol):
    """A model that can be asked."""

    @property
    def model(self) -> ModelInfo: ...

    def stream(self, request: Request) -> AsyncIterator[Part]:
        """Ask once. Parts as they arrive, `Finished` last."""
        ...


async def close(provider: Provider) -> None:
    """Close what `provider` holds open (connections, a server of its own); it may be asked again afterwards.

    Many hold nothing and have no `aclose`; one that fails to close has nothing more to say.
    """
    aclose: Any = getattr(provider, "aclose", None)
    if aclose is not None:
        with suppress(Exception):
            await aclose()
