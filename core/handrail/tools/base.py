"""What all tools have in common: arguments, a preview for people, running, a result.

A tool takes parsed arguments and a `ToolContext`, and returns a `ToolResult`. A tool that raises gives an error
result and the run goes on (rule L6). A stop cancels the tool's task; a tool ends what it started (process
groups included) before it lets the cancellation pass, and reports what it could not end with `ctx.leave`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeAlias

from handrail.clock import Clock
from handrail.events.parts import FormField, HumanKind
from handrail.messages import Content, Text, ToolCall
from handrail.policy import Approve
from handrail.providers.base import ToolSpec

Effect: TypeAlias = Literal["read", "edit", "run"]


class InvalidArguments(Exception):
    """Arguments that do not fit a tool's parameters. The message names each wrong field; the model reads it."""


class ToolError(Exception):
    """A failure that a tool reports itself, with a message the model and a person can act on. No traceback is shown."""


class ShownChanged(ToolError):
    """What the preview showed no longer holds: the place is another one, or the content is (rule H7).

    A tool raises it at the moment of acting, before it has changed anything. The loop previews the call again, and asks
    again where approval is needed.
    """


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a call.

    `content` goes to the model. `summary` is a few words for the card (`214 lines`, `+6 -2`), `diff` a unified
    diff for edits. `terminate` votes for the end of the loop (rule L7).
    """

    content: str | tuple[Content, ...] = ""
    is_error: bool = False
    terminate: bool = False
    summary: str = ""
    diff: str | None = None

    @property
    def blocks(self) -> tuple[Content, ...]:
        """The content as blocks."""
        return (Text(self.content),) if isinstance(self.content, str) else self.content


@dataclass(frozen=True, slots=True)
class Preview:
    """A call as a person sees it before it runs (rule H5).

    `title` is one line (a path, a command). `detail` shows the arguments in full where the title does not.
    `pattern` is what «always this session» would allow, in words that are shown first; later calls are compared with it
    by equality, so a tool gives the same pattern for calls that it considers equal. None: only once. `covers` and
    `asks_again` are examples: a call that the pattern would allow, and one that it would not. `outside` lists paths
    outside the working folder; they need approval in every mode. `shows` is a fingerprint of the place and the change
    that are shown: a tool compares it when it acts (rule H7). `why` is why it needs approval, where
    its effect does not say it well.
    """

    title: str
    detail: str = ""
    diff: str | None = None
    pattern: str | None = None
    covers: str = ""
    asks_again: str = ""
    outside: tuple[str, ...] = ()
    shows: str = ""
    why: str = ""


class AskPerson(Protocol):
    """Ask the person something while the tool runs. Returns the answer, a secret one too (rule H3).

    Raises ToolError when the person cannot answer; if nobody is there, the call stays open (rule H4).
    """

    def __call__(
        self,
        needed: str,
        *,
        kind: str = "information",
        where: str = "",
        tried: str = "",
        secret: bool = False,
    ) -> Awaitable[str]: ...


WITHDRAWN: Final = "withdrawn"
"""The message to cancel an `ask_form` with, when the asker no longer asks: the question is closed, not left open."""


@dataclass(frozen=True, slots=True)
class Form:
    """A question of a tool that takes typed answers (rule H1). Without `fields` it asks for a yes.

    `resume` is what the tool needs to go on with this call after a restart; it is journalled with the question.
    """

    needed: str
    fields: tuple[FormField, ...] = ()
    kind: HumanKind = "information"
    where: str = ""
    resume: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class FormAnswer:
    """`accept` with the values, `decline` when the person said no, `cancel` when they took no decision."""

    action: Literal["accept", "decline", "cancel"]
    values: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""


class AskForm(Protocol):
    """Ask the person to fill in a form. Holds the call open when nobody is there (rule H4)."""

    def __call__(self, form: Form) -> Awaitable[FormAnswer]: ...


@dataclass(slots=True)
class ToolContext:
    """What a running tool may use.

    `progress(text)` shows more live output. `env` is the environment for child processes,
    without providers' API keys. `memory` is shared by all tools of a session and lives as long as it does.
    `ask` and `ask_form` reach the person; None where a tool runs outside a session. `shown` is the fingerprint of the
    preview by which this call was allowed; None where there was no preview. `resume` is that of the form which this
    call had open when the program ended.
    """

    cwd: Path
    clock: Clock
    call_id: str = ""
    progress: Callable[[str], None] = lambda text: None
    env: Mapping[str, str] | None = None
    memory: dict[str, Any] = field(default_factory=dict)
    ask: AskPerson | None = None
    shown: str | None = None
    left: list[str] = field(default_factory=list)
    ask_form: AskForm | None = None
    resume: Mapping[str, Any] | None = None

    def require_shown(self, shows: str) -> None:
        """Raise ShownChanged when the preview showed something else than `shows` (rule H7)."""
        if self.shown is not None and self.shown != shows:
            raise ShownChanged("it is no longer what was shown: the file or its place has changed")

    def leave(self, words: str) -> None:
        """Text for the result if this call is stopped: output so far, or `may still be running: …` (rule L9)."""
        self.left.append(words)


class Tool(ABC):
    """A tool. `effect` decides whether it needs approval: reading never, editing and running by mode (rule H5).

    `sequential` makes every batch that holds this tool run in call order. `time_limit` is in seconds, None for none.
    `held` says how the system confines what the tool runs, in words for people; empty when it does not.
    `approve` replaces the run's approval mode for this tool; None leaves it.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    effect: Effect = "read"
    sequential: bool = False
    time_limit: float | None = None
    held: str = ""
    approve: Approve | None = None

    @property
    def spec(self) -> ToolSpec:
        """The tool as a model sees it."""
        return ToolSpec(self.name, self.description, self.parameters)

    @abstractmethod
    def parse(self, call: ToolCall) -> Any:
        """The validated arguments of `call`. Raises InvalidArguments."""

    def preview(self, args: Any, ctx: ToolContext) -> Preview:
        """The call as a person sees it. May read files; must not change anything."""
        return Preview(self.name)

    @abstractmethod
    async def run(self, args: Any, ctx: ToolContext) -> ToolResult:
        """Run the call."""
