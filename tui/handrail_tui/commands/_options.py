"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from handrail.policy import parse_duration

F = TypeVar("F", bound=Callable[..., Any])

APPROVE_MODES: Final = click.Choice(["ask", "edits", "all"])

PLAIN_JSON: Final = (
    click.option("--plain", is_flag=True, help="Plain text, line by line: for screen readers and logs."),
    click.option("--json", "as_json", is_flag=True, help="Events as JSON lines."),
)


class Duration(click.ParamType[float]):
    """`30m`, `6h`, `1h30m`, or seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            return float(value) if isinstance(value, (int, float)) else parse_duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def output_options(command: F) -> F:
    """Add `--plain` and `--json`; the command gets them as `plain` and `as_json`."""
    for option in reversed(PLAIN_JSON):
        command = option(command)
    return command


def check_output(plain: bool, as_json: bool) -> None:
    """Raises click.UsageError when both formats are asked for."""
    if plain and as_json:
        raise click.UsageError("--json and --plain cannot be combined.")


def run_options(command: F) -> F:
    """Add the options of `run` and `step`; the command gets them as keywords."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_OPTIONS = (
    click.option("-m", "--model", metavar="PROVIDER/NAME", help="The model to use."),
    click.option(
        "--api",
        type=click.Choice(["openai-chat", "openai-responses", "anthropic"]),
        help="The API that the server speaks.",
    ),
    click.option(
        "--base-url", metavar="URL", help="The server's address; for OpenAI-compatible ones including /v1."
    ),
    click.option(
        "--schema", metavar="FILE.json|module:Type", help="The run must end with a value of this type."
    ),
    click.option("--max-turns", type=int, metavar="N", help="Limit of requests (default: run 50, step 8)."),
    click.option("--max-attempts", type=int, metavar="N", help="Limit of rejected submissions (default 3)."),
    click.option("--deadline", type=Duration(), metavar="30m", help="Time limit; waits are not counted."),
    click.option("--max-total-tokens", type=int, metavar="N", help="Token limit for the whole run."),
    click.option("--max-cost", type=float, metavar="USD", help="Cost limit in dollars; needs a known price."),
    click.option("--max-output", type=int, metavar="N", help="Token limit for one reply."),
    click.option(
        "--approve",
        type=click.Choice(["ask", "edits", "all"]),
        help="What runs without asking: ask (reading only), edits (also edits), all.",
    ),
    click.option(
        "--sandbox",
        flag_value="on",
        default=None,
        help="Commands may write only the working folder, and reach no network.",
    ),
    click.option("--sandbox-network", "sandbox", flag_value="network", help="The same, with a network."),
    click.option("--tools", metavar="read,grep,…", help="The tools to offer (default: all; '' for none)."),
    click.option(
        "--mcp", multiple=True, metavar="NAME", help="Start only these MCP servers (may be repeated)."
    ),
    click.option("--no-mcp", is_flag=True, help="Start no MCP server."),
    click.option(
        "--no-recovery",
        "recovery",
        is_flag=True,
        flag_value=False,
        default=True,
        help="End the run at the first failed or cut reply.",
    ),
    click.option(
        "--no-tool-tail",
        "tool_tail",
        is_flag=True,
        flag_value=False,
        default=True,
        help="Do not ask for a closing reply after a tool that ends the run.",
    ),
    click.option(
        "--max-wait", type=Duration(), metavar="6h", help="Longest wait for a usage limit; 0: never wait."
    ),
    click.option(
        "--hold", is_flag=True, help="Without a terminal, wait for `handrail answer` instead of ending."
    ),
    click.option("--cwd", default=".", metavar="DIR", help="The working folder (default: here)."),
    click.option("--system", metavar="FILE", help="A file that replaces the built-in system prompt."),
    *PLAIN_JSON,
)
