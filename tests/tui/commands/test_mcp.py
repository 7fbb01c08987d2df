"""`handrail mcp`, and runs with servers: settings, files of other programs, trust, what a script reads."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from mcp_bench import NASTY
from runs import call, says
from scripted_cli import WHERE, ScriptedProgram

from handrail import events as ev
from handrail import settings, trust
from handrail.server_files import read_server_file

pytest.importorskip("mcp", reason="the extra `mcp` is not installed")

ECHO = [says("", call("mcp__nasty__echo", text="hello")), says("Done.")]


def add(program: ScriptedProgram, *options: str, flags: tuple[str, ...] = ()) -> None:
    ended = program("mcp", "add", "nasty", *options, "--", sys.executable, str(NASTY), *flags)
    assert (ended.code, ended.err) == (0, "")


def write_project_file(folder: Path, **entry: object) -> None:
    given = {"command": sys.executable, "args": [str(NASTY)], **entry}
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"nasty": given}}))


def test_a_server_is_added_listed_and_tested(program: ScriptedProgram) -> None:
    assert "handrail mcp add" in program("mcp").out
    add(program, "--env", "A_TOKEN=s3cret", "--trust", flags=("--read-only",))
    listed = program("mcp", "list")
    assert "nasty" in listed.out and "(trusted)" in listed.out and "s3cret" not in listed.out
    tested = program("mcp", "test", "nasty")
    assert tested.code == 0
    assert tested.out.startswith("nasty: ready · nasty 1 · protocol 2025-11-25")
    assert "does not ask does echo" in tested.out
    told = json.loads(program("mcp", "test", "nasty", "--json").out)
    assert {"name": "echo", "as": "mcp__nasty__echo", "effect": "read"} in told["tools"]
    assert "s3cret" not in program("config", "show").out
    again = program("mcp", "add", "nasty", "--url", "http://127.0.0.1:9")
    assert again.code == 2 and "already" in again.err


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("mcp", "add", "x"), "give either command or url"),
        (("mcp", "add", "a__b", "--", "x"), "is no name for a server"),
        (("mcp", "add", "x", "--url", "ftp://x"), "url must begin with"),
        (("mcp", "test", "nothing"), "there is no MCP server 'nothing'"),
        (("mcp", "login", "nothing"), "there is no MCP server 'nothing'"),
        (("mcp", "import", "nowhere.json"), "cannot be read"),
        (("run", "--plain", *WHERE, "--mcp", "nothing", "x"), "there is no MCP server 'nothing'"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    program: ScriptedProgram, args: tuple[str, ...], words: str
) -> None:
    ended = program(*args)
    assert ended.code == 2 and words in ended.err and "Traceback" not in ended.err


def test_a_server_that_does_not_start_is_a_finding(program: ScriptedProgram) -> None:
    assert program("mcp", "add", "gone", "--", "no-such-program").code == 0
    tested = program("mcp", "test", "gone")
    assert tested.code == 1 and "there is no command or folder 'no-such-program'" in tested.out
    assert "gone: there is no command" in program("doctor").out


def test_a_run_uses_it_and_a_script_reads_that(program: ScriptedProgram) -> None:
    add(program, "--approve", "all")
    ended = program("run", "--json", *WHERE, "go", replies=ECHO)
    assert ended.code == 0
    events = [json.loads(line) for line in ended.out.splitlines()]
    [joined] = [e for e in events if e["type"] == "tools_changed"]
    assert (joined["server"], joined["state"], joined["of"]) == ("nasty", "ready", 12)
    [result] = [e for e in events if e["type"] == "tool_finished"]
    assert (result["name"], result["text"]) == ("mcp__nasty__echo", "hello")
    plain = program("run", "--plain", *WHERE, "go", replies=ECHO)
    assert "tools: nasty: 12 tools joined (12 now)" in plain.out
    none = program("run", "--plain", "--no-mcp", *WHERE, "go", replies=ECHO)
    assert "there is no tool named 'mcp__nasty__echo'" in none.out


def test_H4_a_question_is_answered_on_resume(program: ScriptedProgram) -> None:
    add(program, "--approve", "all", flags=("--modern",))
    ended = program("run", "--plain", *WHERE, "go", replies=[says("", call("mcp__nasty__ask"))])
    assert ended.code == 4
    assert "nasty asks: Who are you?" in ended.out
    assert "- name: text (required) · Your name" in ended.out
    [id] = program.ids
    resumed = program("resume", "--plain", id, "--answer", "name=Ada age=36", replies=[says("Done.")])
    assert resumed.code == 0
    [result] = [e for e in program.stored(id).events if isinstance(e, ev.ToolFinished)]
    assert json.loads(result.text)["content"] == {"name": "Ada", "age": 36}


def test_a_projects_file_counts_once_the_project_is_trusted(program: ScriptedProgram, home: Path) -> None:
    write_project_file(home)
    before = program.run("go", replies=ECHO)
    assert "there is no tool named" in before.out
    assert "ignoring .mcp.json" in before.err
    trust.trust(home)
    after = program.run("--approve", "all", "go", replies=ECHO)
    assert "tools: nasty: 12 tools joined" in after.out


def test_servers_of_other_programs_are_taken_over(program: ScriptedProgram, home: Path) -> None:
    theirs = home / "mcp.json"
    entries = {
        "My Server": {"command": "x", "args": ["${HOME_OF_IT:-/srv}"]},
        "remote": {
            "type": "http",
            "url": "https://example.com/mcp",
            "headers": {"Authorization": "Bearer ${TOKEN}"},
        },
        "asks": {"command": "x", "env": {"KEY": "${input:key}"}},
        "old": {"type": "sse", "url": "https://example.com/sse"},
        "broken": {"command": 5},
    }
    theirs.write_text(json.dumps({"servers": entries, "inputs": []}))
    ended = program("mcp", "import", str(theirs))
    assert ended.code == 0
    taken = settings.load(home).settings.mcp
    assert taken["My-Server"].args == ("/srv",)
    assert set(taken) == {"My-Server"}
    for words in (
        "remote: the variable TOKEN is not set",
        "asks: it asks for ${input:key}",
        "old: it speaks the old SSE",
    ):
        assert f"left out {words}" in ended.out
    assert "broken: command: Input should be a valid string" in ended.out
    found = read_server_file(theirs, {"TOKEN": "t0k"}, home)
    assert found.servers["remote"].headers == {"Authorization": "Bearer t0k"}
    assert found.servers["remote"].secrets == ["t0k"]


def test_values_of_a_server_are_masked(program: ScriptedProgram) -> None:
    add(program, "--approve", "all", "--env", "API_KEY=s3cret-value-1234")
    replies = [says("", call("mcp__nasty__env")), says("Done.")]
    ended = program("run", "--json", *WHERE, "go", replies=replies)
    assert "API_KEY" in ended.out
    assert "s3cret-value-1234" not in ended.out


def test_without_a_server_nothing_of_it_is_imported(home: Path) -> None:
    code = (
        "import sys\n"
        "from handrail_tui.sessions.options import RunOptions\n"
        "from handrail_tui.sessions.prepare import prepare\n"
        "import handrail_tui.screens.run, handrail.session\n"
        "with prepare(RunOptions(model='my/m', base_url='http://127.0.0.1:9/v1'), attended=True) as ready:\n"
        "    assert ready.session.tool_source is None\n"
        "theirs = ('mcp', 'mcp_types', 'httpx2', 'anyio')\n"
        "print([m for m in sys.modules if m.split('.')[0] in theirs or m.startswith('handrail.mcp')])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
