"""`handrail resume` and `-c`: stored sessions gone on with from the command line (rules J, H4, U7)."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from runs import call, fails, says, submit
from scripted_cli import WHERE, ScriptedProgram

from handrail import events as ev
from handrail.clock import VirtualClock
from handrail.session.records import read_journal
from handrail.session.store import Store

ASKS = [says("I need you.", call("ask_human", kind="login", needed="Log in, please.", where="http://x"))]


def test_H4_a_question_nobody_answered_is_answered_from_the_command_line(program: ScriptedProgram) -> None:
    ended = program.run("Get the report.", replies=ASKS)
    (id,) = program.ids
    assert ended.code == 4 and f"handrail resume {id} --answer" in ended.out
    ended = program("resume", id[:6], "--plain", "--answer", "I am in.", replies=[says("Here it is.")])
    assert ended.code == 0 and "Here it is." in ended.out
    assert program.sent()[-2:] == ["assistant: I need you.", "tool: I am in."]
    assert program.ids == [id], "it is the same session"


def test_J4_how_a_session_was_made_is_known_again(program: ScriptedProgram, home: Path) -> None:
    schema = {"type": "object", "required": ["answer"], "properties": {"answer": {"type": "integer"}}}
    (home / "s.json").write_text(json.dumps(schema))
    args = ("--schema", "s.json", "--approve", "edits", "--tools", "read,write", "--max-attempts", "7")
    program.run(*args, "--max-wait", "1h", "Report.", replies=ASKS)
    (home / "s.json").unlink()  # the shape is kept, not the file
    again = program("resume", "--json", "--answer", "done", replies=[says("", submit(5))])
    assert again.code == 0
    lines = [json.loads(line) for line in again.out.splitlines()]
    started = next(line for line in lines if line["type"] == "run_started")
    assert (started["resumed"], started["approve"], started["max_attempts"]) == (True, "edits", 7)
    assert started["tools"] == ["read", "write", "ask_human", "submit"]
    assert started["recovery"]["max_wait_s"] == 3600
    assert lines[-1]["value"] == {"answer": 5}
    assert program.resolved[-1].base_url == program.resolved[0].base_url == "http://127.0.0.1:9/v1"


def test_a_type_is_looked_up_again_in_the_folder_it_came_from(
    program: ScriptedProgram, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "shapes_of_resume.py").write_text(
        "from pydantic import BaseModel\nclass V(BaseModel):\n    n: int\n"
    )
    program.run("--schema", "shapes_of_resume:V", "Report.", replies=ASKS)
    (home / "sub").mkdir()
    monkeypatch.chdir(home / "sub")
    ended = program(
        "resume", program.ids[0], "--json", "--answer", "done", replies=[says("", call("submit", n=3))]
    )
    assert json.loads(ended.out.splitlines()[-1])["value"] == {"n": 3}


def test_without_an_id_it_is_the_last_session_of_this_folder(
    program: ScriptedProgram, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "other").mkdir()
    program.run("one", replies=ASKS)
    program.run("two", replies=ASKS)
    program.run("--cwd", "other", "three", replies=ASKS)
    assert program("resume", "--plain", replies=[]).code == 4  # asks again: nobody answers
    assert [e.resumed for e in program.events(program.ids[1]) if isinstance(e, ev.RunStarted)] == [
        False,
        True,
    ]
    monkeypatch.chdir(home / "other")
    assert program("-c", replies=[]).code == 4
    assert len([e for e in program.events(program.ids[2]) if isinstance(e, ev.RunStarted)]) == 2
    (home / "empty").mkdir()
    monkeypatch.chdir(home / "empty")
    ended = program("resume")
    assert ended.code == 2 and "has no sessions yet" in ended.err and "handrail sessions" in ended.err


def test_a_session_that_is_done_says_so_and_what_can_be_done(program: ScriptedProgram) -> None:
    program.run("Say hello.", replies=[says("Hello.")])
    (id,) = program.ids
    ended = program("resume", id)
    assert ended.code == 2 and f"session {id} is already finished" in ended.err
    assert f"handrail resume {id} --prompt" in ended.err and f"handrail sessions fork {id}" in ended.err
    assert len([e for e in program.events(id) if isinstance(e, ev.RunStarted)]) == 1, "nothing was begun"


@pytest.mark.parametrize("how", ["resume", "run -c"])
def test_another_prompt_goes_on_in_the_same_session(program: ScriptedProgram, how: str) -> None:
    program.run("Say hello.", replies=[says("Hello.")])
    (id,) = program.ids
    args = ("resume", id, "--plain", "--prompt", "And again.")
    if how == "run -c":
        args = ("run", "-c", "--plain", "And again.")
    ended = program(*args, replies=[says("Hello again.")])
    assert ended.code == 0
    assert program.sent() == ["user: Say hello.", "assistant: Hello.", "user: And again."]
    assert program.ids == [id]
    finished = program.stored(id).finished
    assert finished is not None and finished.requests == 1, "bounds count per run"


def test_a_new_prompt_leaves_an_open_question_behind(program: ScriptedProgram) -> None:
    program.run("Get the report.", replies=ASKS)
    ended = program("resume", "--plain", "--prompt", "Forget it.", replies=[says("All right.")])
    assert ended.code == 0
    assert program.sent()[-1] == "user: Forget it."
    assert [m.role for m in program.models[-1].requests[0].messages] == ["user", "assistant", "tool", "user"]
    listed = json.loads(program("sessions", "--json").out)
    assert (listed["state"], listed["needs"]) == ("finished", None)


def test_L1_a_bound_is_raised_and_every_counter_is_kept(program: ScriptedProgram) -> None:
    looks = [says("", call("ls", path="."), usage=None)] * 2
    ended = program.run("--max-turns", "2", "Look.", replies=looks)
    assert ended.code == 6
    ended = program("resume", "--json", "--max-turns", "+1", replies=[says("Done.")])
    end = json.loads(ended.out.splitlines()[-1])
    assert (ended.code, end["outcome"], end["requests"]) == (0, "completed", 3)
    started = program.stored(program.ids[0]).started
    assert started is not None and started.max_turns == 3


def test_bounds_that_were_not_there_are_set(program: ScriptedProgram) -> None:
    program.run("--max-turns", "1", "Look.", replies=[says("", call("ls", path="."))])
    args = ("--max-turns", "9", "--deadline", "+10m", "--max-total-tokens", "100000")
    program("resume", "--plain", *args, replies=[says("Done.")])
    started = program.stored(program.ids[0]).started
    assert started is not None
    assert (started.max_turns, started.deadline_s, started.max_total_tokens) == (9, 600.0, 100_000)


def test_U7_a_wait_is_taken_up_till_the_same_moment(
    program: ScriptedProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop_in_the_wait(self: VirtualClock, when: float, callback: object) -> object:
        if when - self.now() > 1_000:
            raise KeyboardInterrupt  # as if the power went
        return plain(self, when, callback)  # type: ignore[arg-type]

    plain = VirtualClock.call_at
    limit = fails("You have hit your usage limit. Try again in 42 min.", 429)
    with monkeypatch.context() as broken:
        broken.setattr(VirtualClock, "call_at", stop_in_the_wait)
        assert program.run("Go.", replies=[limit]).code == 130
    (id,) = program.ids
    assert json.loads(program("sessions", "--json").out)["state"] == "waiting"
    assert program("resume", id, "--plain", replies=[says("Done.")]).code == 0
    waits = [e.until for e in program.events(id) if isinstance(e, ev.WaitStarted)]
    assert len(waits) == 2 and waits[0] == waits[1]


def test_another_model_is_asked_at_its_own_address(
    program: ScriptedProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789")
    program.run("Get the report.", replies=ASKS)
    program(
        "resume",
        "--plain",
        "--answer",
        "x",
        "--model",
        "anthropic/claude-sonnet-4-6",
        replies=[says("Done.")],
    )
    resolved = program.resolved[-1]
    assert resolved.model.name == "anthropic/claude-sonnet-4-6"
    assert resolved.base_url.startswith("https://api.anthropic.com")


def test_J2_two_programs_cannot_hold_one_session(program: ScriptedProgram) -> None:
    program.run("Get the report.", replies=ASKS)
    (id,) = program.ids
    size = program.journal(id).stat().st_size
    with Store().open(id, VirtualClock()):
        ended = program("resume", id, "--answer", "x", replies=[says("no")])
    assert ended.code == 2 and "is being written by process" in ended.err and "handrail answer" in ended.err
    assert program.journal(id).stat().st_size == size


def test_J2_a_torn_end_is_said_and_damage_is_refused(program: ScriptedProgram) -> None:
    program.run("Get the report.", replies=ASKS)
    (id,) = program.ids
    journal = program.journal(id)
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-20])
    ended = program("resume", id, "--plain", "--answer", "x", replies=[says("Done.")])
    assert ended.code == 0 and "warning: The end of" in ended.out and "was torn" in ended.out
    lines = whole.split(b"\n")
    journal.write_bytes(b"\n".join([*lines[:3], b"nonsense", *lines[3:]]))
    ended = program("resume", id)
    assert ended.code == 2 and "damaged: line 4" in ended.err
    assert program("sessions", "export", id).code == 0


def test_J5_nothing_but_the_owner_may_read_what_is_kept(program: ScriptedProgram, home: Path) -> None:
    before = os.umask(0)
    try:
        program.run("Get the report.", replies=ASKS)
        program("resume", "--plain", "--answer", "x", replies=[says("Done.")])
    finally:
        os.umask(before)
    kept = home / ".state" / "handrail"
    modes = {stat.S_IMODE(p.stat().st_mode) for p in kept.rglob("*") if p.is_file()}
    folders = {stat.S_IMODE(p.stat().st_mode) for p in [kept, *kept.rglob("*")] if p.is_dir()}
    assert (modes, folders) == ({0o600}, {0o700})


KEYS = {
    "OPENAI_API_KEY": "sk-proj-planted-0001-abcdefgh",
    "HANDRAIL_API_KEY": "sk-handrail-planted-0002",
    "GITHUB_TOKEN": "ghp_planted0003planted",
}


def test_J5_no_key_is_in_any_file(
    program: ScriptedProgram, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    in_file, in_url, in_header = "sk-settings-planted-0004", "planted-0005-in-the-url", "planted-0006-header"
    settings = home / ".config" / "handrail" / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(
        f'[providers.my]\nkey = "{in_file}"\nbase_url = "http://127.0.0.1:9/v1"\n'
        f'headers = {{ "X-Api-Key" = "{in_header}", "Authorization" = "Bearer {in_header}-2" }}\n'
    )
    planted = [*KEYS.values(), in_file, in_url, in_header]
    (home / "keys.txt").write_text("\n".join(planted))
    told = " and ".join(planted)
    replies = [
        # Streamed in pieces of a few characters: what a second brought is written before it is whole.
        says(f"I found {told}.", call("read", path="keys.txt"), thinking=f"So {told}.", takes_s=9),
        says(told, call("bash", command=f"echo '{told}'; cat keys.txt"), takes_s=9),
        says("", call("ask_human", kind="login", needed=f"Is it {told}?")),
    ]
    where = ("--base-url", f"http://me:{in_url}@127.0.0.1:9/v1")
    args = ("run", "--json", "--approve", "all", "--model", "my/model", *where, f"Use {told}.")
    assert program(*args, replies=replies).code == 4
    ended = program("resume", "--json", *where, "--answer", told, replies=[says(told)])
    assert ended.code == 0
    records = read_journal(program.journal(program.ids[0])).records
    pieces = "".join(r.fields["text"] for r in records if r.kind == "piece")
    assert "I found" in pieces and not [value for value in planted if value in pieces]
    files = [p for p in (home / ".state").rglob("*") if p.is_file()]
    kept = {p: p.read_bytes() for p in files}
    assert any(b"[masked]" in data for data in kept.values())
    for value in planted:
        for path, data in kept.items():
            assert value.encode() not in data, f"{value} is in {path}"
    for value in [*KEYS.values(), in_file, in_header]:
        assert value not in ended.out


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("zzz",), "No session starts with 'zzz'"),
        (("--answer", "a", "--prompt", "b"), "cannot be combined"),
        (("--plain", "--json"), "cannot be combined"),
        (("--max-turns", "many"), "'many' is not a limit"),
        (("--max-turns", "0"), "--max-turns: Input should be greater than 0"),
        (("--max-turns", "1.5"), "--max-turns: Input should be a valid integer"),
        (("--deadline", "soon"), "'soon' is not a limit"),
        (("--max-cost", "1"), "price"),
        (("--prompt", " "), "empty"),
        (("--model", "nonsense"), "names no provider"),
    ],
)
def test_what_cannot_be_is_one_clear_error(
    program: ScriptedProgram, args: tuple[str, ...], words: str
) -> None:
    program.run("Get the report.", replies=ASKS)
    size = program.journal(program.ids[0]).stat().st_size
    ended = program("resume", *args)
    assert ended.code == 2 and words in ended.err and ended.out == ""
    assert len(ended.err.splitlines()) <= 2
    assert program.journal(program.ids[0]).stat().st_size == size, "nothing was begun"


def test_an_answer_without_a_question_is_refused(program: ScriptedProgram) -> None:
    program.run("--max-turns", "1", "Look.", replies=[says("", call("ls", path="."))])
    ended = program("resume", "--answer", "yes")
    assert ended.code == 2 and "has an open question" in ended.err
    ended = program("resume", program.ids[0], "--answer", "yes")
    assert ended.code == 2 and "has no open question" in ended.err


def test_H4_an_answer_goes_to_the_session_that_asks(program: ScriptedProgram) -> None:
    program.run("Get the report.", replies=ASKS)
    program.run("Something else.", replies=[says("Done.")])
    ended = program("resume", "--plain", "--answer", "I am in.", replies=[says("Here it is.")])
    assert ended.code == 0 and "Here it is." in ended.out


def test_a_folder_that_is_gone_is_said(program: ScriptedProgram, home: Path) -> None:
    (home / "gone").mkdir()
    program.run("--cwd", "gone", "Get the report.", replies=ASKS)
    (home / "gone").rmdir()
    ended = program("resume", program.ids[0])
    assert ended.code == 2 and "is gone" in ended.err


@pytest.mark.parametrize("fork", [False, True])
def test_J4_a_session_follows_its_folder(program: ScriptedProgram, home: Path, fork: bool) -> None:
    (home / "old").mkdir()
    program.run("--cwd", "old", "Get the report.", replies=ASKS)
    (home / "old").rename(home / "new")
    id = program.ids[0]
    if fork:
        id = program("sessions", "fork", id, "--cwd", "new").out.strip()
    where = [] if fork else ["--cwd", "new"]
    assert program("resume", id, *where, "--answer", "done", replies=[says("Done.")]).code == 0
    started = [e for e in Store().read(id).events() if isinstance(e, ev.RunStarted)]
    assert started[-1].cwd == str(home / "new")
    again = program("resume", id, "--prompt", "And now?", replies=[says("Done.")])
    assert again.code == 0, "the new folder is remembered"
    assert json.loads(program("sessions", "show", id, "--json").out)["cwd"] == str(home / "new")


def test_a_session_of_another_maker_is_shown_but_not_gone_on_with(program: ScriptedProgram) -> None:
    clock = VirtualClock()
    with Store().create(clock, meta={"cwd": 7}) as journal:
        journal.append(ev.RunStarted(at=clock.now(), prompt="Old.", max_turns=3))
    ended = program("resume", journal.session)
    assert ended.code == 2 and "does not say how it was made" in ended.err


def test_the_shape_of_a_session_stays(program: ScriptedProgram) -> None:
    program.run("Say hello.", replies=[says("Hello.")])
    ended = program("run", "-c", *WHERE, "--schema", "s.json", "more")
    assert ended.code == 2 and "--schema cannot be changed" in ended.err


def test_c_stands_alone(program: ScriptedProgram) -> None:
    ended = program("-c", "sessions")
    assert ended.code == 2 and "handrail run -c" in ended.err


def test_U5_a_limit_that_was_too_far_away_is_waited_for_with_a_longer_max_wait(
    program: ScriptedProgram,
) -> None:
    far = fails("You have hit your usage limit. Try again in 9 hours.", 429)
    assert program.run("Go.", replies=[far]).code == 7
    (id,) = program.ids
    ended = program("resume", id, "--json", "--max-wait", "12h", replies=[far, says("Done.")])
    lines = [json.loads(line) for line in ended.out.splitlines()]
    assert ended.code == 0 and lines[-1]["text"] == "Done."
    assert [line["seconds"] for line in lines if line["type"] == "wait_started"] == [9 * 3600 + 5]
    assert program("resume", id, "--max-wait", "soon").code == 2
