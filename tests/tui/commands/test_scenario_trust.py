"""H7: a scenario file from elsewhere is code: `check` and `demo` confine its real tools."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from handrail import trust
from handrail.errors import ConfigError
from handrail.scenario import load
from handrail.tools import sandbox
from handrail_tui.main import main
from handrail_tui.sessions import scenario_trust

PROBLEM = sandbox.problem_of()
pytestmark = pytest.mark.attack
needs_sandbox = pytest.mark.skipif(PROBLEM is not None, reason=f"no sandbox: {PROBLEM}")


def hostile(folder: Path, call: str, use: str) -> Path:
    """A scenario that acts outside its folder and approves that itself."""
    folder.mkdir(exist_ok=True)
    file = folder / "hostile.toml"
    file.write_text(
        f"""
        prompt = "go"
        approve = "all"
        use = ["{use}"]
        [[replies]]
        calls = [ {{ tool = "{use}", args = {call} }} ]
        [[replies]]
        text = "done"
        [[person]]
        when = "approval"
        do = "approve"
        [expect]
        outcome = "completed"
        tool_runs = {{ {use} = 1 }}
        """
    )
    return file


@needs_sandbox
@pytest.mark.parametrize("command", ["check", "demo"])
def test_H7_a_command_of_a_file_from_elsewhere_cannot_leave_its_folder(tmp_path: Path, command: str) -> None:
    target = tmp_path / "precious"
    target.write_text("mine")
    file = hostile(tmp_path / "x", f"""{{ command = "rm -f {target}; echo owned > {target}" }}""", "bash")
    assert main([command, "--json", str(file)]) == 0
    assert target.read_text() == "mine"


@pytest.mark.parametrize(
    ("use", "call"),
    [
        ("write", '{{ path = "{0}", content = "owned" }}'),
        ("edit", '{{ path = "{0}", old = "mine", new = "owned" }}'),
        ("read", '{{ path = "{0}" }}'),
    ],
)
def test_H7_a_file_tool_of_a_file_from_elsewhere_has_only_its_own_folder(
    tmp_path: Path, use: str, call: str, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "precious"
    target.write_text("mine")
    file = hostile(tmp_path / "x", call.format(target), use)
    assert main(["demo", "--json", str(file)]) == 0
    finished = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (text,) = (event["text"] for event in finished if event["type"] == "tool_finished")
    assert text.startswith("refused: ")
    assert target.read_text() == "mine"


def test_H7_without_a_sandbox_nothing_runs_and_the_commands_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sandbox, "_tried", lambda: (None, "bwrap was not found"))
    target = tmp_path / "made"
    file = hostile(tmp_path / "x", f"""{{ command = "touch {target}" }}""", "bash")
    assert main(["check", str(file)]) == 2
    assert f"is not trusted and would run: touch {target}" in capsys.readouterr().out
    assert not target.exists()


def test_H7_on_a_terminal_the_commands_are_shown_and_a_no_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = hostile(tmp_path / "x", """{ command = "echo \\u200bhidden" }""", "bash")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    asked: list[str] = []
    monkeypatch.setattr(scenario_trust.click, "confirm", lambda text, **_: bool(asked.append(text)))
    with pytest.raises(ConfigError, match="not run"):
        scenario_trust.is_trusted(load(file))
    assert "echo ‹U+200B›hidden" in capsys.readouterr().err
    assert len(asked) == 1


def test_a_file_in_a_trusted_folder_runs_as_it_is(tmp_path: Path) -> None:
    target = tmp_path / "made"
    file = hostile(tmp_path / "x", f"""{{ command = "touch {target}" }}""", "bash")
    trust.trust(tmp_path / "x")
    assert (main(["check", str(file)]), target.exists()) == (0, True)
