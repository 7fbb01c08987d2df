"""Where a person can go, as data. A screen posts one of these; the program builds the screen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from handrail.session.protocol import SessionProtocol
from handrail.tools.source import ToolSource
from handrail_tui.controller.changes import RunChanges
from handrail_tui.view.state import ViewState


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A new run of `prompt` in `folder`, by the settings; `model` instead of theirs."""

    prompt: str
    folder: Path
    model: str | None = None


@dataclass(frozen=True, slots=True)
class OpenStored:
    """A stored session, resumed as it stands. One that is done waits for a prompt.

    `or_read`: when it cannot be resumed, it is opened to read.
    """

    id: str
    or_read: bool = False


@dataclass(frozen=True, slots=True)
class OpenToRead:
    """What a stored session has done so far; `note` says why nothing can be asked."""

    id: str
    note: str


@dataclass(frozen=True, slots=True)
class OpenReplay:
    """A stored session, played again."""

    id: str


@dataclass(frozen=True, slots=True)
class OpenDemo:
    """A scenario, played `speed` times as fast."""

    file: Path
    speed: float


@dataclass(frozen=True, slots=True)
class OpenDemos:
    """The gallery of demos: their files by name."""

    demos: Mapping[str, Path]


@dataclass(frozen=True, slots=True)
class OpenChanges:
    """The files that a run changed."""

    changes: RunChanges


@dataclass(frozen=True, slots=True)
class OpenDecisions:
    """Each decision of a run, with its evidence."""

    view: ViewState


@dataclass(frozen=True, slots=True)
class OpenQueue:
    """The queued messages of a run. Words that come back go to `Navigate.unsent`."""

    session: SessionProtocol
    view: ViewState


@dataclass(frozen=True, slots=True)
class OpenServers:
    """The MCP servers of a run."""

    source: ToolSource


@dataclass(frozen=True, slots=True)
class OpenHelp:
    """The keys of what has focus, and the slash commands that work there."""

    commands: Sequence[str]


@dataclass(frozen=True, slots=True)
class OpenThemes:
    """The list of themes."""


@dataclass(frozen=True, slots=True)
class OpenModels:
    """The list of models; `use` gets the name of the chosen one and returns what to say about it."""

    current: str
    use: Callable[[str], str]


SessionDestination: TypeAlias = OpenRun | OpenStored | OpenToRead | OpenReplay | OpenDemo
"""What takes the place of the screen until it is left; making it may take time and may be refused."""

Destination: TypeAlias = (
    SessionDestination
    | OpenDemos
    | OpenChanges
    | OpenDecisions
    | OpenQueue
    | OpenServers
    | OpenHelp
    | OpenModels
    | OpenThemes
)
