"""What was given on the command line of `run` and `step`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of one run. None: not given, the settings decide."""

    agent: str | None = None
    model: str | None = None
    api: str | None = None
    base_url: str | None = None
    schema: str | None = None
    max_turns: int | None = None
    max_attempts: int | None = None
    deadline: float | None = None
    max_total_tokens: int | None = None
    max_cost: float | None = None
    max_output: int | None = None
    approve: str | None = None
    sandbox: str | None = None
    tools: str | None = None
    recovery: bool = True
    tool_tail: bool = True
    max_wait: float | None = None
    hold: bool = False
    cwd: str = "."
    system: str | None = None
    mcp: tuple[str, ...] | None = None
    no_mcp: bool = False
    plain: bool = False
    as_json: bool = False

    @property
    def folder(self) -> Path:
        """The working folder. Raises click.BadParameter when it is not a folder."""
        path = Path(self.cwd)
        if not path.is_dir():
            raise click.BadParameter(f"'{self.cwd}' is not a folder.", param_hint="'--cwd'")
        return path.resolve()

    def check_agent(self) -> None:
        """Raises click.UsageError for options that mean nothing to an agent of others."""
        own = (
            "model",
            "api",
            "base_url",
            "schema",
            "max_attempts",
            "max_output",
            "tools",
            "system",
            "sandbox",
        )
        given = [name for name in own if getattr(self, name) is not None]
        if given:
            flag = given[0].replace("_", "-")
            raise click.UsageError(
                f"--{flag} does not apply to --agent {self.agent}: it decides that by itself."
            )

    def flags(self) -> dict[str, Any]:
        """The options as settings."""
        tools = None if self.tools is None else [t.strip() for t in self.tools.split(",") if t.strip()]
        top = {
            "model": self.model,
            "api": self.api,
            "base_url": self.base_url,
            "max_output": self.max_output,
            "approve": self.approve,
            "sandbox": self.sandbox,
            "tools": tools,
            "servers": [] if self.no_mcp else [*(self.mcp or ())] or None,
            "system": self.system,
        }
        bounds = {
            "max_turns": self.max_turns,
            "max_attempts": self.max_attempts,
            "deadline_s": self.deadline,
            "max_total_tokens": self.max_total_tokens,
            "max_cost": self.max_cost,
        }
        recovery = {
            "enabled": None if self.recovery else False,
            "tool_tail": None if self.tool_tail else False,
            "max_wait_s": self.max_wait,
        }
        given = _given(top)
        given |= {
            name: _given(table)
            for name, table in (("bounds", bounds), ("recovery", recovery))
            if _given(table)
        }
        return given


def _given(table: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if value is not None}
