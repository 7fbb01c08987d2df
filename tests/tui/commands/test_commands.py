"""check, demo, doctor, models, and the trust that a project needs."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail import scenario, trust
from handrail.providers import catalog
from handrail.tools import sandbox
from handrail_tui.main import main
from handrail_tui.sessions import demo as demos
from handrail_tui.sessions.options import RunOptions
from handrail_tui.sessions.prepare import prepare
from handrail_tui.sessions.project_trust import ask_for_trust

GOOD = """
title = "A value"
prompt = "Report."
[schema]
type = "integer"
[[replies]]
calls = [ { tool = "submit", args = { value = 42 } } ]
[expect]
outcome = "submitted"
value = 42
"""


@pytest.fixture(autouse=True)
def _no_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """No server of this machine is asked."""

    async def none(entries: list[catalog.ProviderEntry] | None = None) -> list[catalog.LocalServer]:
        return [catalog.LocalServer("ollama", "http://127.0.0.1:11434/v1", ("ollama/tiny",))]

    monkeypatch.setattr(catalog, "list_local", none)


def test_check_prints_a_line_a_file_and_fails_when_one_does_not_hold(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "good.toml").write_text(GOOD)
    (home / "wrong.toml").write_text(GOOD.replace("value = 42\n", "value = 41\n"))
    assert main(["check", "good.toml"]) == 0
    assert capsys.readouterr().out == "ok    good.toml: submitted, 1 request\n"
    assert main(["check", "wrong.toml", "good.toml"]) == 1
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("FAIL  wrong.toml: value: expected 41, got 42") and second.startswith("ok ")


def test_check_json_has_the_shape_that_scripts_rely_on(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "good.toml").write_text(GOOD)
    (home / "typo.toml").write_text(GOOD.replace("prompt", "promt"))
    assert main(["check", "--json", "good.toml", "typo.toml", "gone.toml"]) == 2
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    keys = ["file", "ok", "outcome", "class", "value", "requests", "turns", "attempts"]
    assert [list(row) for row in rows] == [[*keys, "decisions", "waits_s", "tool_runs", "failures"]] * 3
    assert rows[0] == rows[0] | {
        "ok": True,
        "outcome": "submitted",
        "value": 42,
        "requests": 1,
        "failures": [],
    }
    assert not rows[1]["ok"] and "typo.toml:3: 'promt'" in "".join(rows[1]["failures"])
    assert not rows[2]["ok"] and "gone.toml" in rows[2]["failures"][0]


def test_demo_of_a_file_prints_the_run_and_ends_well_whatever_came_of_it(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "mine.toml").write_text(GOOD.replace("value = 42 }", 'value = "x" }'))
    assert main(["demo", "mine.toml"]) == 0
    assert "submission rejected, 1 of 3" in capsys.readouterr().out
    assert main(["demo", "--json", "mine.toml"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["type"] == "run_finished"


def test_an_unknown_demo_names_the_nearest(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demos, "builtin_demos", lambda: {"first-run": home / "x.toml"})
    assert main(["demo", "frist-run"]) == 2
    assert "Did you mean 'first-run'?" in capsys.readouterr().err


def test_every_demo_that_comes_with_the_program_can_be_read_and_holds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    files = list(demos.builtin_demos().values())
    assert files, "the package brings no demos"
    for file in files:
        one = scenario.load(file)
        assert one.title and one.about, f"{file.name} needs a title and an about"
    assert main(["check", *map(str, files)]) == 0, capsys.readouterr().out
    capsys.readouterr()
    assert main(["demo"]) == 0
    assert scenario.load(files[0]).prompt.splitlines()[0] in capsys.readouterr().out
    assert main(["demo", "--list"]) == 0
    listed = capsys.readouterr().out
    assert [name for name in demos.builtin_demos() if name not in listed] == []


def test_models_lists_what_keys_and_servers_reach_and_marks_the_one_in_force(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models"]) == 0
    assert capsys.readouterr().out.split()[0] == "ollama/tiny"
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-value")
    assert main(["models"]) == 0
    out = capsys.readouterr().out
    starred = [line.split()[1] for line in out.splitlines() if line.startswith("*")]
    assert starred == [catalog.default_model({"OPENAI_API_KEY": "x"})]
    assert "key: OPENAI_API_KEY" in out and "sk-very" not in out and "anthropic/" not in out
    assert main(["models", "--all", "sonnet"]) == 0
    assert "anthropic/claude-sonnet" in capsys.readouterr().out


def test_doctor_says_what_is_set_and_never_shows_a_key(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-very-secret-value")
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "anthropic: ANTHROPIC_API_KEY" in out and "sk-very" not in out
    assert "http://127.0.0.1:11434/v1: ollama/tiny" in out
    assert "WRONG" not in out


def test_doctor_names_broken_settings_and_goes_on(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = home / ".config" / "handrail" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("modle = 'x'\n")
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "ERROR    settings" in out and "Did you mean 'model'?" in out and "folder" in out


@pytest.fixture
def project(home: Path) -> Iterator[Path]:
    (home / ".git").mkdir()
    (home / "AGENTS.md").write_text("Speak in rhymes.")
    yield home


def options(folder: Path) -> RunOptions:
    nothing = dict.fromkeys(RunOptions.__dataclass_fields__)
    said = {"model": "my/m", "base_url": "http://127.0.0.1:9/v1", "recovery": True, "tool_tail": True}
    return RunOptions(**{**nothing, "cwd": str(folder), **said})  # type: ignore[arg-type]


def test_agents_file_of_an_untrusted_project_is_told_and_not_used(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with prepare(options(project), attended=False) as ready:
        texts = [i.text for i in ready.session._instructions]
    assert "Speak in rhymes." not in texts
    assert "ignoring AGENTS.md of this project" in capsys.readouterr().err
    trust.trust(project)
    with prepare(options(project), attended=False) as ready:
        texts = [i.text for i in ready.session._instructions]
    assert "Speak in rhymes." in texts
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("says_yes", [True, False])
def test_a_person_is_asked_about_a_project_once(
    project: Path, monkeypatch: pytest.MonkeyPatch, says_yes: bool
) -> None:
    asked: list[str] = []

    def confirm(question: str, **options: object) -> bool:
        asked.append(question)
        return says_yes

    monkeypatch.setattr("click.confirm", confirm)
    ask_for_trust(project)
    ask_for_trust(project)
    assert len(asked) == 1 and "AGENTS.md" in asked[0]
    assert (trust.is_trusted(project), trust.is_refused(project)) == (says_yes, not says_yes)


def test_a_run_without_a_model_says_how_to_set_one_up(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "go"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and len(err.splitlines()) <= 22
    for words in ("ANTHROPIC_API_KEY", "--base-url", "handrail demo", "handrail doctor"):
        assert words in err


def test_a_session_that_cannot_be_kept_is_one_clear_error(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / ".state").write_text("in the way")
    assert main(["run", "--base-url", "http://127.0.0.1:9/v1", "--model", "my/m", "go"]) == 2
    err = capsys.readouterr().err
    assert str(home / ".state") in err and len(err.splitlines()) == 1


def test_a_closed_port_is_a_failure_of_the_provider_not_of_ours(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as held:  # bound and not listening: whoever connects is refused
        held.bind(("127.0.0.1", 0))
        where = f"http://127.0.0.1:{held.getsockname()[1]}/v1"
        assert main(["run", "--base-url", where, "--model", "my/m", "--no-recovery", "go"]) == 5
    out, err = capsys.readouterr()
    assert "Failed: connection or server error" in out and err == ""


@pytest.mark.parametrize("problem", [None, "bwrap was not found"])
def test_doctor_says_whether_there_is_a_sandbox(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], problem: str | None
) -> None:
    monkeypatch.setattr(sandbox, "_tried", lambda: ("bwrap" if problem is None else None, problem or ""))
    main(["doctor"])
    (row,) = (line for line in capsys.readouterr().out.splitlines() if "sandbox" in line)
    assert (problem or "available, and off") in row
    assert "commands may read, change and send whatever you can" in row
