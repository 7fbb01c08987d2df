"""The registry of actions: one table behind keys, footer, help, palette and slash commands."""

from __future__ import annotations

from collections import Counter

import pytest

from handrail_tui.controller.actions import ACTIONS, HOME_SLASH, SLASH, in_scope, palette
from handrail_tui.controller.run import RunController
from handrail_tui.controller.slash_commands import parse


def test_no_id_and_no_slash_command_means_two_things() -> None:
    for names in ([a.id for a in ACTIONS], [a.slash for a in ACTIONS if a.slash]):
        assert [name for name, times in Counter(names).items() if times > 1] == []


def test_no_key_means_two_things_in_one_place() -> None:
    for scope in {action.scope for action in ACTIONS}:
        keys = Counter(key for action in in_scope(scope) for key in action.keys.split(","))
        assert [key for key, times in keys.items() if times > 1] == [], scope


def test_every_action_can_be_found_and_says_what_it_does() -> None:
    for action in ACTIONS:
        assert action.keys or action.title or action.slash, action.id
        assert not action.keys or action.label, action.id
        assert not (action.title or action.slash) or action.help or action.each, action.id


def test_every_action_of_a_run_is_carried_out_by_the_controller() -> None:
    named = [a for a in ACTIONS if a.scope == "run" and (a.runs.startswith("perform(") or a.slash)]
    missing = [a.id for a in [*named, *palette()] if not hasattr(RunController, f"act_{a.name}")]
    assert missing == []
    known = {f"act_{action.name}" for action in ACTIONS if action.scope == "run"}
    assert [name for name in vars(RunController) if name.startswith("act_") and name not in known] == []


@pytest.mark.parametrize(
    ("typed", "name", "args"),
    [("/stop", "stop", ""), ("/Model a/b", "model", "a/b"), ("/bounds  +10 ", "bounds", "+10")],
)
def test_a_slash_command_is_read(typed: str, name: str, args: str) -> None:
    parsed = parse(typed)
    assert parsed is not None and (parsed[0].slash, parsed[1]) == (name, args)


@pytest.mark.parametrize("typed", ["stop", " /stop", "/usr/bin is full", "/", "// x"])
def test_text_is_not_a_command(typed: str) -> None:
    assert parse(typed) is None


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("/stpo", "did you mean /stop?"),
        ("/xyzzy", "/help lists them"),
        ("/recovery maybe", "takes on or off, not 'maybe'"),
        ("/quit now", "takes no arguments"),
    ],
)
def test_a_wrong_command_says_what_is_wrong(typed: str, words: str) -> None:
    with pytest.raises(ValueError, match=words.replace("?", r"\?")):
        parse(typed)


def test_the_slash_commands_stay_the_same() -> None:
    assert " ".join(SLASH) == (
        "stop model bounds approve recovery compact queue mcp changes search sessions decisions theme export help quit"
    )


def test_the_home_screen_takes_the_commands_that_need_no_run() -> None:
    assert HOME_SLASH == ("model", "theme", "help", "quit")
