"""docs/command-line.md names the commands and options that there are; its lines are real events."""

from __future__ import annotations

import importlib
import json
import re
from dataclasses import fields
from typing import get_args

import click
from pages import DESIGN, ROOT, block

from handrail import events
from handrail_tui.cli import COMMANDS
from handrail_tui.lines import exit_codes

PAGE = (ROOT / "docs/command-line.md").read_text("utf-8")


def options(name: str) -> set[str]:
    module, _, function = COMMANDS[name].target.partition(":")
    command = getattr(importlib.import_module(module), function)
    return {
        option
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for option in parameter.opts
        if option.startswith("--")
    }


def test_the_list_of_commands_is_whole() -> None:
    listed = set(re.findall(r"^ {4}handrail ([a-z-]+) ", PAGE.split("## Options")[0], re.M))
    assert listed == set(COMMANDS)


def test_the_options_of_run_and_step_are_all_there_and_no_others() -> None:
    section = PAGE.split("## Options of run and step")[1].split("\n\nA prompt")[0]
    assert set(re.findall(r"--[a-z-]+", section)) == options("run") | options("step")


def test_a_line_of_the_page_has_the_fields_of_its_event() -> None:
    known: dict[str, set[str]] = {}
    for kind in get_args(events.Event):
        names = {field.name.rstrip("_"): field.default for field in fields(kind)}
        known[names["type"]] = set(names)
    for line in block(PAGE, "Lines of").splitlines():
        said = json.loads(line)
        assert set(said) <= known[said["type"]], said["type"]


def test_run_finished_is_shown_with_every_field() -> None:
    last = json.loads(block(PAGE, "Lines of").splitlines()[-1])
    assert set(last) | {"at", "turn"} == {field.name.rstrip("_") for field in fields(events.RunFinished)}


def codes(page: str) -> dict[int, str]:
    """The table of exit codes: what stands beside each."""
    rows = re.findall(r"^\| ([\d, ]+) \| (.+) \|$", page, re.M)
    return {int(code): words for several, words in rows for code in several.split(", ")}


def test_the_tables_of_exit_codes_are_what_the_program_returns() -> None:
    rules = codes((DESIGN / "rules.md").read_text("utf-8"))
    for outcome, code in exit_codes.BY_OUTCOME.items():
        assert outcome in rules[code]
    signals = {exit_codes.of_signal(name) for name in ("SIGHUP", "SIGPIPE", "SIGTERM", None)}
    known = {*exit_codes.BY_OUTCOME.values(), *signals, exit_codes.FAULT, exit_codes.USAGE}
    assert set(rules) == known
    assert set(codes((ROOT / "README.md").read_text("utf-8"))) == known
