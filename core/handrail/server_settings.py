"""What settings say of one MCP server: the table `[mcp.NAME]`, checked.

A server is a command that is started (`command`), or an address that is called (`url`); exactly one of them.
"""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from handrail.policy import Approve, Seconds, parse_duration

START_S: Final = 10.0
DOWNLOAD_START_S: Final = 60.0
"""For commands that may download the server before they start it."""

_DOWNLOADERS: Final = frozenset({"npx", "uvx", "bunx", "pnpx", "pipx", "docker", "podman"})
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]|_(?!_))*")
_SECRET: Final = re.compile(r"(?i)key|token|secret|password|passwd|credential|authorization|cookie")
_LONGEST_NAME: Final = 32


def is_server_name(name: str) -> bool:
    """Whether `name` can stand in a tool's name: letters, digits, `-` and single `_`, at most 32 characters.

    Two underscores separate the server from the tool, so a name holds none and does not end with one.
    """
    return len(name) <= _LONGEST_NAME and not name.endswith("_") and _NAME.fullmatch(name) is not None


def _checked_name(name: str) -> str:
    if not is_server_name(name):
        raise ValueError("a server's name has letters, digits, - and single _, at most 32 characters")
    return name


ServerName = Annotated[str, AfterValidator(_checked_name)]


def server_name(text: str) -> str:
    """The nearest server name to `text`, for names from other programs' files. May be empty."""
    cleaned = re.sub(r"_{2,}", "_", re.sub(r"[^A-Za-z0-9_-]+", "-", text))
    return cleaned.strip("-_")[:_LONGEST_NAME].rstrip("-_")


def _seconds(value: Any) -> Any:
    if isinstance(value, str):
        try:
            return parse_duration(value)
        except ValueError:
            return value
    return value


Duration = Annotated[Seconds, BeforeValidator(_seconds)]
Words = Annotated[tuple[str, ...], Field(strict=False)]


class ServerSettings(BaseModel):
    """One server. Times are in seconds, or durations such as "2m".

    `timeout` bounds a call; progress starts it anew, and time that a person takes does not count. `start_timeout`
    bounds the handshake: 10 s, or 60 s for commands that may download first (npx, uvx). `tools` lists the tools to
    offer, with * and ?; None offers all. `approve` replaces the run's approval mode for this server's tools. `trust`
    says that its hints count: a tool that it marks as read-only does not ask (rule H5). `enabled = false` keeps the
    entry and starts nothing.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    command: str | None = None
    args: Words = ()
    env: dict[str, str] = Field(default_factory=dict)
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    timeout: Duration = 60.0
    start_timeout: Duration | None = None
    tools: Words | None = None
    approve: Approve | None = None
    trust: bool = False
    enabled: bool = True

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("give either command or url")
        if self.command is not None and not self.command.strip():
            raise ValueError("command is empty")
        if self.url is not None and not self.url.startswith(("http://", "https://")):
            raise ValueError("url must begin with http:// or https://")
        if self.url is not None and (self.args or self.env or self.cwd):
            raise ValueError("args, env and cwd belong to a command, not to a url")
        if self.command is not None and self.headers:
            raise ValueError("headers belong to a url, not to a command")
        return self

    @property
    def start_s(self) -> float:
        """Seconds for the handshake."""
        if self.start_timeout is not None:
            return self.start_timeout
        program = PurePath(self.command or "").name.removesuffix(".cmd").removesuffix(".exe")
        return DOWNLOAD_START_S if program in _DOWNLOADERS else START_S

    @property
    def secrets(self) -> list[str]:
        """Values that authorize, to be masked (rule J5)."""
        named = [*self.env.items(), *self.headers.items()]
        return [
            value.removeprefix("Bearer ").strip() for name, value in named if value and _SECRET.search(name)
        ]

    @property
    def where(self) -> str:
        """How it is reached, in one line, without values of variables and headers."""
        return self.url if self.url is not None else " ".join([self.command or "", *self.args])
