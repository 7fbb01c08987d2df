"""Plays a scenario: the scripted provider, canned or real tools, the scripted person."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from handrail import events as ev
from handrail.clock import Clock, VirtualClock
from handrail.errors import ConfigError
from handrail.loop.people import HumanQuestion
from handrail.messages import Failure, ToolCall, Usage
from handrail.output.types import make_output
from handrail.providers.base import ModelInfo, Price
from handrail.providers.scripted import ScriptedCall, ScriptedProvider, ScriptedReply, arguments_text
from handrail.scenario._file import CallPart, ReplyPart, Scenario, ToolPart
from handrail.scenario._held import held_tools
from handrail.scenario._person import ScriptedPerson
from handrail.server_settings import ServerSettings
from handrail.session import Session
from handrail.toml import short_path
from handrail.tools.base import Preview, Tool, ToolContext, ToolError, ToolResult
from handrail.tools.source import ToolSource


class CannedTool(Tool):
    """A tool with a fixed result."""

    def __init__(self, part: ToolPart) -> None:
        self._part = part
        self.name = part.name
        self.description = part.description
        self.parameters = {"type": "object", "additionalProperties": True}
        self.effect = "run" if part.asks else "read"
        self.sequential = part.sequential

    def parse(self, call: ToolCall) -> dict[str, Any]:
        return call.arguments

    def preview(self, args: Any, ctx: ToolContext) -> Preview:
        words = " ".join(str(v) for v in args.values())
        return Preview(words or self.name, detail=arguments_text(args), pattern=f"{self.name}: any arguments")

    async def run(self, args: Any, ctx: ToolContext) -> ToolResult:
        if self._part.takes_s:
            await ctx.clock.sleep(self._part.takes_s)
        if self._part.error is not None:
            raise ToolError(self._part.error)
        return ToolResult(self._part.result or "", terminate=self._part.terminate)


@contextmanager
def working_folder(scenario: Scenario) -> Iterator[Path]:
    """A temporary folder for the run with the scenario's files."""
    with TemporaryDirectory(prefix="handrail-") as folder:
        root = Path(folder).resolve()
        for name, text in scenario.files.items():
            path = (root / name).resolve()
            if not path.is_relative_to(root):
                raise ConfigError(
                    f"{short_path(scenario.path)}: 'files.{name}': a file must lie in the working folder."
                )
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        yield root


def session_for(
    scenario: Scenario,
    clock: Clock,
    *,
    cwd: Path,
    thinks_s: float = 0.0,
    attended: Callable[[HumanQuestion], bool] | None = None,
    trusted: bool = True,
) -> Session:
    """A session that plays `scenario` on `clock` in the folder `cwd`, with its scripted person.

    `attended` says whether somebody besides the scripted person can answer. Not `trusted`: real tools are confined to
    `cwd` (rule H7). Raises ConfigError when they cannot be, and when the scenario is impossible: a tool with a
    reserved name, an invalid schema.
    """
    person = ScriptedPerson(scenario.person, thinks_s)
    provider = ScriptedProvider([_reply(r) for r in scenario.replies], clock, _model(scenario))
    try:
        session = Session(
            provider,
            tools=[*(CannedTool(t) for t in scenario.tools), *_real_tools(scenario, trusted)],
            cwd=cwd,
            instructions=_instructions(),
            bounds=scenario.bounds,
            recovery=scenario.recovery,
            approve=scenario.approve,
            output=make_output(scenario.output_schema) if scenario.output_schema is not None else None,
            clock=clock,
            source=_source(scenario, clock, cwd),
            attended=lambda asked: person.attended(asked) or (attended is not None and attended(asked)),
        )
    except ValueError as error:
        raise ConfigError(f"{short_path(scenario.path)}: {error}") from error
    person.attend(session)
    return session


async def play(
    scenario: Scenario, *listeners: ev.Listener
) -> tuple[Session, ev.RunFinished | ev.RunInterrupted]:
    """Play with a virtual clock, no screen; `listeners` hear every event."""
    with working_folder(scenario) as cwd:
        session = session_for(scenario, VirtualClock(), cwd=cwd)
        for listener in listeners:
            session.listen(listener)
        return session, await session.run(scenario.prompt)


def _instructions() -> tuple[ev.Instruction, ...]:
    from handrail.instructions import prompt

    return prompt("system"), prompt("people")


def _real_tools(scenario: Scenario, trusted: bool) -> list[Tool]:
    if not scenario.use:
        return []
    if not trusted:
        return held_tools(scenario)
    from handrail.tools import builtin_tools

    return builtin_tools(scenario.use)


def _source(scenario: Scenario, clock: Clock, cwd: Path) -> ToolSource | None:
    """The scenario's own MCP servers. Raises ConfigError where the extra is missing."""
    if not scenario.servers:
        return None
    if find_spec("mcp") is None:
        raise ConfigError(
            f"{short_path(scenario.path)}: it has MCP servers; they need the extra: pip install 'handrail[mcp]'"
        )
    from handrail.mcp import Servers
    from handrail.scenario._server import make_server

    settings = {part.name: ServerSettings(command=part.name, trust=part.trust) for part in scenario.servers}
    inside = {part.name: make_server(part, clock) for part in scenario.servers}
    return Servers(settings, cwd=cwd, clock=clock, inside=inside)


def _model(scenario: Scenario) -> ModelInfo:
    part = scenario.model
    price = Price(**{"input": 0.0, "output": 0.0, **part.price}) if part.price is not None else None
    return ModelInfo(part.name, part.window, part.max_output, price)


def _reply(part: ReplyPart) -> ScriptedReply:
    error = part.error
    failure = (
        Failure(error.text, error.provider, error.phase, error.status, _lower(error.headers))
        if error
        else None
    )
    usage = Usage(**part.usage.model_dump()) if part.usage else None
    return ScriptedReply(
        text=part.text,
        thinking=part.thinking,
        redacted=part.redacted,
        signature=part.signature,
        calls=[_call(c) for c in part.calls],
        stop=part.stop,
        stop_detail=part.stop_detail,
        usage=usage,
        breaks=part.breaks,
        failure=failure,
        takes_s=part.takes_s,
        times=None if part.repeat is True else max(1, int(part.repeat)),
    )


def _call(part: CallPart) -> ScriptedCall:
    raw = part.raw if part.raw is not None else arguments_text(part.args or {})
    return ScriptedCall(part.tool, raw, part.id)


def _lower(headers: dict[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
