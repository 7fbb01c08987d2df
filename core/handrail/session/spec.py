"""What a journal's header stores so that its session can be created again and resumed (rules J4, J5).

Bounds, recovery settings and changes made during a run are not here: they come from the session's events. An API key
is never stored: it is looked up each time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import unquote, urlsplit, urlunsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from handrail._version import __version__
from handrail.errors import ConfigError
from handrail.output.types import Output, load_output, make_output
from handrail.settings import Settings

SETTINGS: Final = (
    "model",
    "api",
    "base_url",
    "max_output",
    "effort",
    "approve",
    "sandbox",
    "tools",
    "servers",
    "calls_at_once",
    "system",
)
"""The settings that are needed to create a session again."""


class OutputSpec(BaseModel):
    """The output type of a run: a JSON Schema, or a type (`module:Type`) that is imported from a folder."""

    model_config = ConfigDict(frozen=True)

    schema_: Annotated[dict[str, Any] | None, Field(alias="schema")] = None
    type: str | None = None
    folder: str = ""

    @classmethod
    def named(cls, spec: str, folder: Path) -> OutputSpec:
        """The output that `spec` names, as for `load_output`. A file may change, so its schema is stored."""
        if spec.endswith(".json") or (folder / spec).is_file():
            return cls.model_validate({"schema": json.loads((folder / spec).read_text("utf-8-sig"))})
        return cls(type=spec, folder=str(folder))

    def output(self) -> Output[Any]:
        """The output type itself. Raises OutputError when the type can no longer be found."""
        if self.schema_ is not None:
            return make_output(self.schema_)
        return load_output(self.type or "", Path(self.folder))


class SessionSpec(BaseModel):
    """How a session was created. `settings` holds those of `SETTINGS` that were set. `agent` is the
    foreign agent that works in it, `command` the program whose requests it followed through the gateway."""

    model_config = ConfigDict(frozen=True)

    version: str = __version__
    cwd: str = ""
    settings: dict[str, Any] = Field(default_factory=dict)
    shape: OutputSpec | None = None
    agent: str | None = None
    command: tuple[str, ...] = ()

    @classmethod
    def by(cls, chosen: Settings, model: str, cwd: Path, shape: OutputSpec | None) -> SessionSpec:
        """The spec of a session that works in `cwd`. `model` is the model that the settings resolved to."""
        said = chosen.model_dump(mode="json", include=set(SETTINGS), exclude_none=True)
        said["model"] = model
        if chosen.base_url is not None:
            said["base_url"] = without_credentials(chosen.base_url)
        if chosen.system is not None:
            said["system"] = str(Path(chosen.system).expanduser().absolute())
        return cls(cwd=str(cwd), settings=said, shape=shape)

    def meta(self) -> dict[str, Any]:
        """The header's `meta`."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def made(meta: Mapping[str, Any], session: str) -> SessionSpec:
    """The spec in a session's header. Raises ConfigError when the header has none."""
    try:
        return SessionSpec.model_validate(meta)
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise ConfigError(
            f"session {session}: its header does not say how it was made ('{where}'). It can be shown and exported."
        ) from None


def without_credentials(url: str) -> str:
    """`url` without user name and password."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def secrets_in(headers: Mapping[str, str], url: str) -> Iterator[str]:
    """The secrets in a provider's headers and base URL. They are masked like API keys (rule J5)."""
    for name, value in headers.items():
        if name.lower() in _AUTHORIZES or name.lower().endswith(("-key", "-token", "-secret")):
            yield value.removeprefix("Bearer ").strip()
    if password := urlsplit(url).password:
        yield from {password, unquote(password)}


_AUTHORIZES: Final = frozenset({"authorization", "proxy-authorization", "cookie"})
