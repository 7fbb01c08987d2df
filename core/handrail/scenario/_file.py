"""A scenario file, read strictly: errors name the place of an unknown key, a wrong type or a missing file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from handrail.errors import ConfigError, did_you_mean
from handrail.events import Outcome
from handrail.policy import Approve, Bounds, RecoveryPolicy
from handrail.server_settings import ServerName
from handrail.toml import line_of, read_toml, short_path

Do: TypeAlias = Literal[
    "resolve",
    "answer",
    "decline",
    "approve",
    "approve_session",
    "deny",
    "skip",
    "stop",
    "steer",
    "follow_up",
    "recovery_off",
]
Seconds: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _ScenarioTable(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ModelPart(_ScenarioTable):
    """The scenario's model. `price` is in dollars per million tokens."""

    name: str = "scripted/demo"
    window: Annotated[int, Field(gt=0)] | None = None
    max_output: Annotated[int, Field(gt=0)] | None = None
    price: dict[Literal["input", "output", "cache_read", "cache_write"], float] | None = None


class ToolPart(_ScenarioTable):
    """A canned tool."""

    name: str
    description: str = "A canned tool of the scenario."
    result: str | None = None
    error: str | None = None
    takes_s: Seconds = 0.0
    terminate: bool = False
    asks: bool = False
    sequential: bool = False

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.result is None) == (self.error is None):
            raise ValueError("a tool has either a result or an error")
        return self


class ServerToolPart(_ScenarioTable):
    """A tool of a scenario's MCP server. `reads` is its hint; with a `question` it asks the person for `fields` (JSON
    Schema of each) before it answers, and `{name}` in `result` stands for the field's value."""

    name: str
    description: str = "A canned tool of the scenario's server."
    result: str = ""
    error: str | None = None
    takes_s: Seconds = 0.0
    reads: bool = False
    question: str | None = None
    fields: dict[str, dict[str, Any]] = Field(default_factory=dict)


class ServerPart(_ScenarioTable):
    """An MCP server that runs in this process (extra `mcp`). `trust`: its hints count."""

    name: ServerName
    instructions: str | None = None
    trust: bool = False
    tools: tuple[ServerToolPart, ...] = Field(default=(), strict=False)


class CallPart(_ScenarioTable):
    """A call of a reply: `args`, or `raw` JSON text that may not parse. `id` only where a test is about ids."""

    tool: str
    args: dict[str, Any] | None = None
    raw: str | None = None
    id: str | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if self.args is not None and self.raw is not None:
            raise ValueError("a call has args or raw, not both")
        return self


class UsagePart(_ScenarioTable):
    input: Annotated[int, Field(ge=0)] = 0
    output: Annotated[int, Field(ge=0)] = 0
    cache_read: Annotated[int, Field(ge=0)] = 0
    cache_write: Annotated[int, Field(ge=0)] = 0


class ErrorPart(_ScenarioTable):
    """A failure as a provider would give it."""

    text: str = ""
    status: int | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    provider: str | None = None
    phase: Literal["connect", "response", "stream"] = "response"


class ReplyPart(_ScenarioTable):
    """The reply to one request."""

    text: str = ""
    thinking: str = ""
    signature: str | None = None
    redacted: str | None = None
    calls: tuple[CallPart, ...] = Field(default=(), strict=False)
    stop: Literal["stop", "tool_use", "length", "refusal", "aborted"] | None = None
    stop_detail: str | None = None
    usage: UsagePart | None = None
    takes_s: Seconds = 0.0
    breaks: str | None = Field(default=None, alias="break")
    error: ErrorPart | None = None
    repeat: bool | Annotated[int, Field(ge=1)] = False


class PersonPart(_ScenarioTable):
    """What the person does at a given moment."""

    when: str
    do: Do
    text: str = ""

    @field_validator("when")
    @classmethod
    def _known(cls, when: str) -> str:
        moment, _, number = when.partition(":")
        if moment == "turn" and number.isdigit() and int(number) > 0:
            return when
        if moment == "wait" and number.endswith("s") and number[:-1].replace(".", "", 1).isdigit():
            return when
        if when in ("human", "approval", "wait"):
            return when
        raise ValueError("may be human, approval, wait, wait:10s or turn:2")


class ExpectPart(_ScenarioTable):
    """The expected outcome; only keys that are present are checked."""

    outcome: Outcome | None = None
    class_: str | None = Field(default=None, alias="class")
    value: Any = None
    requests: int | None = None
    attempts: int | None = None
    decisions: tuple[str, ...] | None = Field(default=None, strict=False)
    waits_s: tuple[float, ...] | None = Field(default=None, strict=False)
    last_request_has: tuple[str, ...] = Field(default=(), strict=False)
    last_request_lacks: tuple[str, ...] = Field(default=(), strict=False)
    tool_runs: dict[str, int] | None = None
    files: dict[str, str] = Field(default_factory=dict)


class Scenario(_ScenarioTable):
    """A run as a file. `recovery` is the effective policy: by default on in a free run, off with a schema."""

    path: Path = Path("scenario.toml")
    title: str = ""
    about: str = ""
    prompt: str
    approve: Approve = "ask"
    output_schema: dict[str, Any] | None = Field(default=None, alias="schema")
    model: ModelPart = ModelPart()
    bounds: Bounds = Bounds()
    recovery: RecoveryPolicy = RecoveryPolicy()
    files: dict[str, str] = Field(default_factory=dict)
    use: tuple[str, ...] = Field(default=(), strict=False)
    tools: tuple[ToolPart, ...] = Field(default=(), strict=False)
    servers: tuple[ServerPart, ...] = Field(default=(), strict=False)
    replies: tuple[ReplyPart, ...] = Field(default=(), strict=False)
    person: tuple[PersonPart, ...] = Field(default=(), strict=False)
    expect: ExpectPart = ExpectPart()


def load(path: Path | str) -> Scenario:
    """The scenario in `path`. Raises ConfigError that names the file, the line, the key and the allowed values."""
    path = Path(path)
    data, text = read_toml(path)
    recovery = data.get("recovery", {})
    if isinstance(recovery, dict):
        data = {**data, "recovery": {"enabled": "schema" not in data, **recovery}}
    try:
        return Scenario.model_validate({**data, "path": path})
    except ValidationError as error:
        name = short_path(path)
        raise ConfigError("\n".join(_explain(name, text, error))) from error


def _explain(name: str, text: str, error: ValidationError) -> Iterator[str]:
    for one in error.errors(include_url=False):
        place = tuple(part for part in one["loc"])
        keys = tuple(
            str(part) for part in place if isinstance(part, str) and not part.startswith("function-")
        )
        line = line_of(text, keys)
        where = f"{name}:{line}" if line else name
        dotted = "".join(f"[{p + 1}]" if isinstance(p, int) else f".{p}" for p in place).lstrip(".")
        if one["type"] == "extra_forbidden":
            words = f"there is no such setting.{did_you_mean(str(place[-1]), _keys_at(place[:-1]))}"
        elif one["type"] == "missing":
            words = "is missing."
        else:
            words = f"{one['msg'].removeprefix('Value error, ')}, not {one['input']!r:.80}."
        yield f"{where}: '{dotted}': {words}"


_TABLES: dict[str, type[BaseModel]] = {
    "model": ModelPart,
    "bounds": Bounds,
    "recovery": RecoveryPolicy,
    "tools": ToolPart,
    "servers": ServerPart,
    "replies": ReplyPart,
    "person": PersonPart,
    "expect": ExpectPart,
    "calls": CallPart,
    "usage": UsagePart,
    "error": ErrorPart,
}


def _keys_at(place: tuple[int | str, ...]) -> list[str]:
    names = [part for part in place if isinstance(part, str)]
    table = _TABLES.get(names[-1]) if names else Scenario
    if table is None:
        return []
    return [field.alias or key for key, field in table.model_fields.items() if key != "path"]
