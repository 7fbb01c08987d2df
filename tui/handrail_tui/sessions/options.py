"""The options that `run` and `step` share (cli.md), and what was chosen with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from handrail.policy import parse_duration

F = TypeVar("F", bound=Callable[..., Any])


class Duration(click.ParamType[float]):
    """`30m`, `6h`, `1h30m`, or seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            return float(value) if isinstance(value, (int, float)) else parse_duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What was said on the command line. None: nothing was said, the settings decide."""

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
    tools: str | None = None
    recovery: bool = True
    tool_tail: bool = True
    max_wait: float | None = None
    hold: bool = False
    cwd: str = "."
    system: str | None = None
    plain: bool = False
    json: bool = False

    @property
    def folder(self) -> Path:
        """The working folder. Raises click.BadParameter when it is none."""
        path = Path(self.cwd)
        if not path.is_dir():
            raise click.BadParameter(f"'{self.cwd}' is not a folder.", param_hint="'--cwd'")
        return path.resolve()

    def flags(self) -> dict[str, Any]:
        """What was said, as settings."""
        tools = None if self.tools is None else [t.strip() for t in self.tools.split(",") if t.strip()]
        top = {
            "model": self.model,
            "api": self.api,
            "base_url": self.base_url,
            "max_output": self.max_output,
            "approve": self.approve,
            "tools": tools,
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
        said = _said(top)
        said |= {
            name: _said(table) for name, table in (("bounds", bounds), ("recovery", recovery)) if _said(table)
        }
        return said


def _said(table: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if value is not None}


def run_options(command: F) -> F:
    """The options of `run` and `step`, for a function that takes them as keywords."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_OPTIONS = (
    click.option("-m", "--model", metavar="PROVIDER/NAME", help="The model to ask."),
    click.option(
        "--api",
        type=click.Choice(["openai-chat", "openai-responses", "anthropic"]),
        help="The protocol that the server speaks.",
    ),
    click.option("--base-url", metavar="URL", help="Where the server is; OpenAI-style ones include /v1."),
    click.option(
        "--schema", metavar="FILE.json|module:Type", help="The run must end with a value of this shape."
    ),
    click.option("--max-turns", type=int, metavar="N", help="Requests at most (default: run 50, step 8)."),
    click.option("--max-attempts", type=int, metavar="N", help="Rejected submissions at most (default 3)."),
    click.option("--deadline", type=Duration(), metavar="30m", help="Wall clock at most, waits not counted."),
    click.option("--max-total-tokens", type=int, metavar="N", help="Tokens of the whole run at most."),
    click.option("--max-cost", type=float, metavar="USD", help="Dollars at most; needs a known price."),
    click.option("--max-output", type=int, metavar="N", help="Tokens of one reply at most."),
    click.option(
        "--approve",
        type=click.Choice(["ask", "edits", "all"]),
        help="What may be done without asking: nothing that changes, edits, all.",
    ),
    click.option("--tools", metavar="read,grep,…", help="The tools offered (default: all; '' for none)."),
    click.option(
        "--no-recovery",
        "recovery",
        is_flag=True,
        flag_value=False,
        default=True,
        help="A failed or cut reply ends the run.",
    ),
    click.option(
        "--no-tool-tail",
        "tool_tail",
        is_flag=True,
        flag_value=False,
        default=True,
        help="No last word is asked for after a tool that ends the run.",
    ),
    click.option(
        "--max-wait", type=Duration(), metavar="6h", help="The longest wait for a usage limit; 0: none."
    ),
    click.option(
        "--hold", is_flag=True, help="With nobody here, wait for `handrail answer` instead of ending."
    ),
    click.option("--cwd", default=".", metavar="DIR", help="The working folder (default: here)."),
    click.option("--system", metavar="FILE", help="Replaces the built-in system prompt."),
    click.option("--plain", is_flag=True, help="Words line by line, for screen readers and logs."),
    click.option("--json", is_flag=True, help="Events as JSON, one a line."),
)
