"""Instructions: our prompt, AGENTS.md once trusted, and nothing that a person cannot read."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail import instructions
from handrail.errors import ConfigError


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    (root / "web").mkdir()
    (tmp_path / "AGENTS.md").write_text("above the repository")
    (root / "AGENTS.md").write_text("Run the tests with make.\n")
    (root / "web" / "AGENTS.md").write_text("Here: npm test.\n")
    return root


def test_R13_the_model_reads_how_to_report_what_only_a_person_can_do(project: Path) -> None:
    mine = project / "mine.md"
    mine.write_text("Answer in verse.")
    for system in (None, mine):
        hears_of_people(instructions.joined(instructions.load(project, trusted=False, system=system)))


def hears_of_people(text: str) -> None:
    assert "`ask_human`" in text and "HUMAN REQUIRED: <kind>: <what is needed>" in text
    for kind in (
        "captcha",
        "login",
        "2fa",
        "payment",
        "permission",
        "physical",
        "decision",
        "information",
        "other",
    ):
        assert kind in text
    assert "what you can find out yourself" in text


def test_agents_files_count_only_when_trusted_the_nearest_last(project: Path) -> None:
    untrusted = instructions.load(project / "web", trusted=False)
    assert [i.path for i in untrusted] == [
        "handrail/prompts/system.md",
        "handrail/prompts/people.md",
        "the machine",
    ]
    trusted = instructions.load(project / "web", trusted=True)
    assert [i.text for i in trusted[2:4]] == ["Run the tests with make.", "Here: npm test."]


def test_a_file_replaces_our_prompt(project: Path) -> None:
    mine = project / "mine.md"
    mine.write_text("Answer in verse.")
    first, *_ = instructions.load(project, trusted=False, system=mine)
    assert (first.path, first.text) == (str(mine), "Answer in verse.")


def test_the_model_gets_each_text_and_where_it_stands(project: Path) -> None:
    text = instructions.joined(instructions.load(project, trusted=True))
    assert text.startswith("You work for the person")
    assert f"# From {project / 'AGENTS.md'}\n\nRun the tests with make." in text
    assert f"Working folder: {project.resolve()}" in text


def test_a_missing_file_is_an_error_that_names_it(project: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.md: instructions that cannot be read"):
        instructions.load(project, trusted=False, system=project / "gone.md")


def test_L11_bytes_that_are_no_text_do_not_reach_the_model(project: Path) -> None:
    (project / "AGENTS.md").write_bytes(b"a\xff\x00b")
    text = instructions.load(project, trusted=True)[2].text
    assert text == "a��b"


def test_a_file_that_is_too_long_is_refused_not_cut(project: Path) -> None:
    (project / "AGENTS.md").write_text("x" * (instructions.LONGEST + 1))
    with pytest.raises(ConfigError, match="Shorten it"):
        instructions.load(project, trusted=True)
