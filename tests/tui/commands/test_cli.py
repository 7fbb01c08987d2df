"""The command line: help, suggestions, one clear error each, and what it costs to answer the version."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

import handrail
from handrail.events import Outcome
from handrail_tui import cli
from handrail_tui.lines import exit_codes, faults
from handrail_tui.main import main


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_version(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([flag]) == 0
    assert capsys.readouterr().out == f"handrail {handrail.__version__}\n"


def test_the_version_is_answered_without_importing_the_program() -> None:
    code = (
        "import sys\nfrom handrail_tui.main import main\nmain(['--version'])\n"
        "print([m for m in ('click', 'pydantic', 'textual', 'asyncio', 'typing', 'handrail.events') "
        "if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1] == "[]"


def test_import_handrail_imports_nothing_until_a_name_is_used() -> None:
    code = (
        "import sys, handrail\nbefore = 'pydantic' in sys.modules\n"
        "print(before, handrail.Bounds.__module__, set(handrail.__all__) <= set(dir(handrail)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "handrail.policy", "True"]


def test_every_exported_name_is_there() -> None:
    assert {name for name in handrail.__all__ if not hasattr(handrail, name)} == set()
    with pytest.raises(AttributeError, match="no attribute 'sessions'"):
        _ = handrail.sessions


def test_every_command_of_the_help_is_there_and_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    for name in cli.COMMANDS:
        assert main([name, "--help"]) == 0
        assert capsys.readouterr().out.count(f"handrail {name}") >= 2, name


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["rnu"], "No such command or folder: 'rnu'. Did you mean 'run'?"),
        (["--verison"], "'--verison'"),
        (["run", "--modle", "x", "hi"], "--model"),
        (["config", "shwo"], "'shwo'"),
        (["config", "trust", "nowhere"], "'nowhere' is not a folder"),
    ],
)
def test_a_wrong_word_is_one_clear_error(
    args: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(args) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert words in err and "Traceback" not in err
    assert len(err.splitlines()) <= 2


def test_L11_a_wrong_word_cannot_drive_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["\x1b]0;owned\x07run\x9b2J"]) == 2
    assert not {"\x1b", "\x07", "\x9b"} & set(capsys.readouterr().err)


def test_a_folder_in_the_place_of_a_command(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "shop").mkdir()
    assert main(["shop"]) == 0
    assert "--cwd shop" in capsys.readouterr().out


def test_a_commands_name_wins_over_a_folder_of_that_name(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "themes").mkdir()
    assert main(["themes"]) == 0
    assert "Handrail dark" in capsys.readouterr().out
    assert main(["./themes"]) == 0
    assert "--cwd ./themes" in capsys.readouterr().out


def test_an_unexpected_fault_is_one_line_and_a_private_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    def broken(target: str) -> None:
        raise RuntimeError("the disk is on fire\nsecond line")

    monkeypatch.setattr(cli, "_load", broken)
    assert main(["themes"]) == 1
    err = capsys.readouterr().err
    assert "RuntimeError: the disk is on fire." in err.replace("\n", ".") and "Traceback" not in err
    (file,) = home.rglob("fault-*.txt")
    assert str(file) in err
    assert "Traceback" in file.read_text() and file.stat().st_mode & 0o077 == 0


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(target: str) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(cli, "_load", broken)
    monkeypatch.setenv("HANDRAIL_DEBUG", "1")
    with pytest.raises(RuntimeError, match="boom"):
        main(["themes"])


def test_a_reader_that_went_away_is_no_error() -> None:
    code = "import sys\nfrom handrail_tui.main import main\nsys.exit(main(['themes']))"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        assert child.stdout is not None and child.stderr is not None
        child.stdout.close()
        err = child.stderr.read()
    assert (child.returncode, err) == (141, b"")


def test_config_shows_what_is_set_and_where_but_never_a_key(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    (home / ".config" / "handrail").mkdir(parents=True)
    file = home / ".config" / "handrail" / "config.toml"
    file.write_text('theme = "ansi"\n[providers.mine]\nkey = "sk-secret"\nheaders = { x = "hush" }\n')
    monkeypatch.setenv("HANDRAIL_MAX_TURNS", "7")
    assert main(["config"]) == 0
    out = capsys.readouterr().out
    assert 'theme = "ansi"' in out and f"{file}:1" in out
    assert "bounds.max_turns = 7" in out and "HANDRAIL_MAX_TURNS" in out
    assert "sk-secret" not in out and "hush" not in out


def test_config_trust_and_distrust(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / ".handrail.toml").write_text('approve = "all"\n')
    assert main(["config"]) == 0
    assert "Ignored until you trust this folder: approve" in capsys.readouterr().out
    assert main(["config", "trust"]) == 0
    assert main(["config"]) == 0
    assert 'approve = "all"' in capsys.readouterr().out
    assert main(["config", "distrust"]) == 0
    assert "No longer trusted" in capsys.readouterr().out


def test_faults_survive_a_closed_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed:
        def write(self, text: str) -> None:
            raise ValueError("I/O operation on closed file")

    monkeypatch.setattr(sys, "stderr", Closed())
    assert faults.config("nobody hears this") == 2


def test_step_is_the_function_whatever_was_imported_before() -> None:
    code = (
        "from handrail._step import StepFailed\nimport handrail\nfrom handrail import step\n"
        "print(step is handrail.step, callable(step), StepFailed is handrail.StepFailed)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True", "True"]


def test_the_help_costs_no_more_than_click() -> None:
    code = (
        "import sys\nfrom handrail_tui.main import main\nmain(['--help'])\n"
        "print([m for m in ('pydantic', 'textual', 'httpx', 'asyncio', 'handrail.events') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_every_outcome_has_its_exit_code() -> None:
    assert set(exit_codes.BY_OUTCOME) == set(get_args(Outcome))
    codes = {name: exit_codes.of_signal(name) for name in ("SIGTERM", "SIGHUP", "SIGPIPE", None, "nonsense")}
    assert codes == {"SIGTERM": 143, "SIGHUP": 129, "SIGPIPE": 141, None: 129, "nonsense": 129}
    assert exit_codes.of_run(None) == 1
