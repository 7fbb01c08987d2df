"""The command line: finds the command, runs it, and turns any failure into one clear error.

Commands are imported on use, so that `handrail --help` loads little more than click.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

import click

from handrail import __version__
from handrail.errors import ConfigError, did_you_mean
from handrail_tui.lines import faults


class CommandEntry(NamedTuple):
    """A command that is not imported yet: its module and name, and its line in the help."""

    target: str
    help: str


COMMANDS: dict[str, CommandEntry] = {
    "run": CommandEntry(
        "handrail_tui.commands.run:run", "Run a task: a model with tools works on it in a folder."
    ),
    "step": CommandEntry("handrail_tui.commands.step:step", "Text in, one schema-valid JSON value out."),
    "gateway": CommandEntry(
        "handrail_tui.commands.gateway:gateway",
        "Put any program that uses a model under bounds, with a bill.",
    ),
    "agents": CommandEntry(
        "handrail_tui.commands.agents:agents", "List the agents of others for run --agent; how to get them."
    ),
    "acp": CommandEntry(
        "handrail_tui.commands.acp:acp", "Serve sessions to an editor (Agent Client Protocol)."
    ),
    "resume": CommandEntry("handrail_tui.commands.resume:resume", "Resume a stored session."),
    "sessions": CommandEntry(
        "handrail_tui.commands.sessions:sessions", "List, show, export, fork and delete stored sessions."
    ),
    "replay": CommandEntry("handrail_tui.commands.replay:replay", "Play a stored run again."),
    "answer": CommandEntry(
        "handrail_tui.commands.answer:answer", "Answer the question of a run in another terminal."
    ),
    "approve": CommandEntry(
        "handrail_tui.commands.approve:approve", "Allow or deny a tool call of such a run."
    ),
    "steer": CommandEntry("handrail_tui.commands.steer:steer", "Send such a run a message."),
    "follow-up": CommandEntry("handrail_tui.commands.steer:follow_up", "Give such a run its next task."),
    "skip": CommandEntry("handrail_tui.commands.wait:skip", "End the wait of such a run."),
    "later": CommandEntry("handrail_tui.commands.wait:later", "Prolong the wait of such a run."),
    "stop": CommandEntry("handrail_tui.commands.stop:stop", "Stop such a run."),
    "changes": CommandEntry(
        "handrail_tui.commands.changes:changes", "Show the files that a run changed; undo a turn."
    ),
    "demo": CommandEntry("handrail_tui.commands.demo:demo", "Play a scenario: no key, no network."),
    "check": CommandEntry("handrail_tui.commands.check:check", "Play scenarios and check what they expect."),
    "classify": CommandEntry(
        "handrail_tui.commands.classify:classify", "Show how recovery classifies a failure, and why."
    ),
    "doctor": CommandEntry(
        "handrail_tui.commands.doctor:doctor", "Check what works here; say how to fix the rest."
    ),
    "models": CommandEntry(
        "handrail_tui.commands.models:models", "List the models you can use; get local ones."
    ),
    "mcp": CommandEntry("handrail_tui.commands.mcp:mcp", "MCP servers: add, list, test, import, login."),
    "themes": CommandEntry("handrail_tui.commands.themes:themes", "List the colour themes."),
    "config": CommandEntry(
        "handrail_tui.commands.config:config", "Show and edit the settings; trust a folder."
    ),
}


class LazyGroup(click.Group):
    """Commands are imported on use. A folder instead of a command opens the home screen there."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        return _load(entry.target) if entry else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        word = args[0]
        command = self.get_command(ctx, word)
        if command is not None:
            return word, command, args[1:]
        if _is_folder(word):
            return "home", _load("handrail_tui.commands.home:home"), args
        raise click.UsageError(f"No such command or folder: '{word}'.{did_you_mean(word, COMMANDS)}", ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])


def _load(target: str) -> click.Command:
    module, _, name = target.partition(":")
    command = getattr(importlib.import_module(module), name)
    assert isinstance(command, click.Command)
    return command


def _is_folder(word: str) -> bool:
    try:
        return Path(word).is_dir()
    except (OSError, ValueError):
        return False


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    subcommand_metavar="[DIR | COMMAND …]",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option("-c", "--continue", "again", is_flag=True, help="Resume the last session of this folder.")
@click.version_option(__version__, "-V", "--version", message="handrail %(version)s")
@click.pass_context
def main(ctx: click.Context, again: bool) -> Any:
    """Supervise agents from the terminal: a bounded loop, recovery you can see, people in the loop.

    \b
    handrail                             the home screen, for this folder
    handrail ./shop                      the home screen, for ./shop
    handrail demo                        try it: no key, no network
    handrail run "fix the flaky test"    one run in this folder
    handrail run --help                  the options of a command, with examples
    """
    if again and ctx.invoked_subcommand is not None:
        raise click.UsageError(
            f"-c cannot be combined with {ctx.invoked_subcommand}; use handrail -c or handrail run -c."
        )
    if again:
        return ctx.invoke(_load("handrail_tui.commands.resume:resume"))
    if ctx.invoked_subcommand is None:
        return ctx.invoke(_load("handrail_tui.commands.home:home"))
    return None


def run(args: list[str]) -> int:
    """Run the command line and return the exit code (rules.md, exit codes)."""
    if "_HANDRAIL_COMPLETE" in os.environ:
        main.main(args, "handrail")  # a shell asks for completions; click answers and exits
    try:
        # Not click's own `main`: it would answer a closed pipe and Ctrl-C in its own way.
        with main.make_context("handrail", list(args)) as ctx:
            result = main.invoke(ctx)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        return faults.usage(error)
    except ConfigError as error:
        return faults.config(str(error))
    except (click.Abort, KeyboardInterrupt):
        return 130
    except BrokenPipeError:
        return faults.reader_went_away()
    except Exception as error:
        if os.environ.get("HANDRAIL_DEBUG"):
            raise
        return faults.unexpected(error)
