"""Completion: what asks for it, what fits best, what `.gitignore` leaves."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from stage import CardApp

from handrail_tui.widgets._completion import MOST, Trigger, complete, find_trigger, rank
from handrail_tui.widgets._completion_files import project_files
from handrail_tui.widgets.composer import Composer


@pytest.mark.parametrize(
    ("before", "trigger"),
    [
        ("/", Trigger("command", 0, "")),
        ("/mo", Trigger("command", 0, "mo")),
        ("say /mo", None),
        ("/recovery o", Trigger("argument", 10, "o", "recovery")),
        ("look at @", Trigger("file", 8, "")),
        ("look at @src/ca", Trigger("file", 8, "src/ca")),
        ('@"with spa', Trigger("file", 0, "with spa")),
        ("me@example.org", None),
        ("@src done", None),
        ("two\n@a", Trigger("file", 4, "a")),
    ],
)
def test_what_asks_for_completion(before: str, trigger: Trigger | None) -> None:
    assert find_trigger(before) == trigger


def test_the_best_fit_comes_first() -> None:
    files = ["docs/cartography.md", "src/cart.py", "cart/x/y/init.py", "c/a/r/t.txt", "none.md"]
    assert rank("cart", files) == ["src/cart.py", "docs/cartography.md", "cart/x/y/init.py", "c/a/r/t.txt"]
    assert rank("zzz", files) == []


def test_ranking_a_large_project_costs_little() -> None:
    files = [f"packages/part_{n}/annotations/aeria_template_variants_{n}.tsx" for n in range(20_000)]
    began = time.process_time()
    assert len(rank("aeiatemplatevariants", files)) == MOST
    assert time.process_time() - began < 5  # against trying every way to match, not against a slow machine


def test_commands_and_their_arguments() -> None:
    assert [c.insert for c in complete(Trigger("command", 0, "the"))][:1] == ["/theme "]
    assert [c.insert for c in complete(Trigger("command", 0, "qui"))] == ["/quit"]
    assert [c.insert for c in complete(Trigger("argument", 10, "", "approve"))] == ["all", "ask", "edits"]
    assert complete(Trigger("argument", 6, "x", "nosuch")) == []


def project(root: Path) -> None:
    for path, text in {
        ".gitignore": "*.log\n/build/\n",
        "readme.md": "",
        "a b.txt": "",
        "trace.log": "",
        "build/out.js": "",
        "src/.gitignore": "!keep.log\nsecret/\n",
        "src/main.py": "",
        "src/keep.log": "",
        "src/secret/key": "",
        ".git/config": "",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def test_files_as_gitignore_leaves_them(tmp_path: Path) -> None:
    project(tmp_path)
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "bad\x1b]0;name").write_text("")
    assert project_files(tmp_path) == [
        ".gitignore",
        "a b.txt",
        "readme.md",
        "src/.gitignore",
        "src/keep.log",
        "src/main.py",
    ]
    assert project_files(tmp_path, limit=2) == [".gitignore", "a b.txt"]
    assert project_files(tmp_path / "missing") == []


async def test_a_command_is_chosen_with_arrows_and_runs_when_it_is_whole() -> None:
    app = CardApp()
    async with app.run_test() as pilot:
        await pilot.press("slash")
        assert app.composer.completions.display and app.composer.completions.is_open
        await pilot.press("down", "up", "up", "enter")
        await pilot.pause()
        assert [m.name for m in app.got if isinstance(m, Composer.Command)] == ["quit"]
        assert not app.composer.completions.is_open


async def test_a_command_that_takes_something_waits_for_it() -> None:
    app = CardApp()
    async with app.run_test() as pilot:
        await pilot.press("slash", "r", "e", "c", "enter")
        assert app.composer.text == "/recovery " and app.got == []
        await pilot.press("o", "f", "tab")
        assert app.composer.text == "/recovery off"
        await pilot.press("enter")
        await pilot.pause()
        command = app.got[0]
        assert isinstance(command, Composer.Command)
        assert (command.name, command.args) == ("recovery", "off")


async def test_esc_closes_the_list_and_the_text_stays() -> None:
    app = CardApp()
    async with app.run_test() as pilot:
        await pilot.press("slash", "s", "escape")
        assert app.composer.text == "/s" and not app.composer.completions.is_open


async def test_a_file_is_put_in_where_it_was_asked_for(tmp_path: Path) -> None:
    project(tmp_path)
    app = CardApp(root=tmp_path)
    async with app.run_test() as pilot:
        await pilot.press("l", "o", "ctrl+j", "at", "m", "a")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert [offer.title for offer in app.composer.completions.offers] == ["src/main.py"]
        await pilot.press("tab", "o", "k")
        assert app.composer.text == "lo\n@src/main.py ok"
        await pilot.press("space", "at", "b", "full_stop", "t", "enter")
        assert app.composer.text == 'lo\n@src/main.py ok @"a b.txt" '
        assert app.got == []


async def test_what_stands_in_brackets_may_be_left_out() -> None:
    app = CardApp()
    async with app.run_test() as pilot:
        await pilot.press("slash", "m", "o", "d", "enter")
        await pilot.pause()
        command = app.got[0]
        assert isinstance(command, Composer.Command)
        assert (command.name, command.args) == ("model", "")
