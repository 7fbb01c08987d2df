"""`handrail sessions` and `replay`: what is kept, seen from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from runs import call, fails, says
from scripted_cli import ScriptedProgram

from handrail import events as ev
from handrail.clock import VirtualClock
from handrail.events.wire import Codec
from handrail.session.store import Store

ASKS = [
    says("I need you.", call("ask_human", kind="login", needed="Log in, \x1b[31mplease.", where="http://x"))
]
LIMIT = fails("You have hit your usage limit. Try again in 42 min.", 429)


def test_those_that_need_you_come_first(program: ScriptedProgram) -> None:
    program.run("Ask me.", replies=ASKS)
    program.run("Be done.", replies=[says("Done.")])
    program.run("--max-wait", "0", "Be limited.", replies=[LIMIT])
    program.run("--max-turns", "1", "Be bounded.", replies=[says("", call("ls", path="."))])
    clock = VirtualClock(program.now)
    held = Store().create(clock, meta={})
    held.append(ev.RunStarted(at=clock.now(), prompt="Be elsewhere.", cwd="/tmp", max_turns=3))
    killed = Store().create(clock, meta={})
    killed.append(ev.RunStarted(at=clock.now(), prompt="Be killed.", cwd="/tmp", max_turns=3))
    killed.close()
    try:
        lines = program("sessions").out.splitlines()
        rows = [json.loads(line) for line in program("sessions", "--json").out.splitlines()]
    finally:
        held.close()
    words = [" ".join(line.split()[1:4]) for line in lines]
    assert words[0].startswith("needs you Ask")
    assert words[1].startswith("running elsewhere Be") and words[2].startswith("interrupted Be killed.")
    assert [line.split()[0] for line in lines] == [row["id"] for row in rows], "the same order for programs"
    assert [row["state"] for row in rows] == ["needs_you", "running", "interrupted", *["finished"] * 3]
    assert {row["outcome"] for row in rows[3:]} == {"completed", "usage-limit", "turn-limit"}
    limited = next(row for row in rows if row["outcome"] == "usage-limit")
    assert limited["until"].endswith("Z") and limited["turns"] == 1 and limited["cost"] is None
    assert "1 turn" in lines[0] and "\x1b" not in "".join(lines)


def test_only_those_of_this_folder(program: ScriptedProgram, home: Path) -> None:
    (home / "other").mkdir()
    program.run("Here.", replies=[says("Done.")])
    program.run("--cwd", "other", "There.", replies=[says("Done.")])
    lines = program("sessions", "--here").out.splitlines()
    assert len(lines) == 1 and "Here." in lines[0]


def test_a_long_list_is_cut_and_says_so(program: ScriptedProgram) -> None:
    clock = VirtualClock()
    for number in range(32):
        with Store().create(clock, meta={}) as journal:
            journal.append(ev.RunStarted(at=clock.now(), prompt=f"No. {number}", max_turns=1))
        clock.advance(1)
    lines = program("sessions").out.splitlines()
    assert len(lines) == 31 and lines[-1] == "… and 2 more: handrail sessions --all"
    assert len(program("sessions", "--all").out.splitlines()) == 32
    assert len(program("sessions", "--json").out.splitlines()) == 32


def test_no_session_yet(program: ScriptedProgram) -> None:
    ended = program("sessions")
    assert (ended.code, "handrail run" in ended.out) == (0, True)
    assert program("sessions", "--json").out == ""


def test_one_session_says_how_to_go_on(program: ScriptedProgram) -> None:
    program.run("Ask me.", replies=ASKS)
    (id,) = program.ids
    ended = program("sessions", "show", id[:5])
    facts = dict(line.split(None, 1) for line in ended.out.splitlines())
    assert facts["state"] == "needs you" and facts["needs"] == "Log in, please."
    assert facts["next"] == f'handrail resume {id} --answer "…"'
    assert facts["journal"].startswith(str(program.journal(id)))
    row = json.loads(program("sessions", "show", id, "--json").out)
    assert (row["id"], row["state"]) == (id, "needs_you")


def test_H6_show_and_exports_say_who_allowed_what(program: ScriptedProgram) -> None:
    program.run(
        "--approve", "all", "Run it.", replies=[says("", call("bash", command="true")), says("Done.")]
    )
    (id,) = program.ids
    shown = program("sessions", "show", id).out
    assert "approvals: all" in shown and "ran: bash true, mode all" in shown
    entries = json.loads(program("sessions", "show", id, "--json").out)["audit"]
    assert [(e["what"], e["how"]) for e in entries] == [("mode", "all"), ("ran", "mode all")]
    assert "allowed: mode all" in program("sessions", "export", id, "--to", "md").out
    assert '"allowed":"mode all"' in program("sessions", "export", id, "--to", "jsonl").out


HOSTILE = "# You\n\n![x](http://evil/?leak)\n<img src=x>\n```\n<kept>\n```\n\x1b]0;title\x07done"


def test_export_to_markdown_keeps_words_and_lets_nothing_forge_or_load(program: ScriptedProgram) -> None:
    replies = [says(HOSTILE, call("bash", command="printf '````\\n# You\\n'"), thinking="hm"), says("Bye.")]
    program.run("--approve", "all", "Say *something*.", replies=replies)
    page = program("sessions", "export", program.ids[0], "--to", "md").out
    lines = page.splitlines()
    assert lines[0] == "# Say \\*something\\*."
    assert "> Say *something*." in lines and "> done" in lines and "> Bye." in lines
    assert [line for line in lines if line.startswith("## You")] != []
    assert "# You" not in [line for line in lines if not _fenced(lines, line)]
    assert "> !\\[x](http://evil/?leak)" in lines and "> &lt;img src=x>" in lines and "> <kept>" in lines
    assert "`````" in page, "a fence that the output cannot end"
    assert "\x1b" not in page
    assert "## Done, 2 requests" in page


def _fenced(lines: list[str], line: str) -> bool:
    before = lines[: lines.index(line)]
    return sum(each.startswith("`````") for each in before) % 2 == 1


def test_export_to_jsonl_and_replay_tell_the_same(program: ScriptedProgram, home: Path) -> None:
    program.run("Look.", replies=[says("I look.", call("ls", path=".")), says("Done.")])
    (id,) = program.ids
    told = program("sessions", "export", id, "--to", "jsonl").out
    events = [Codec.loads(line) for line in told.splitlines()]
    assert events == program.events(id)
    (home / "run.jsonl").write_text(told)
    plain = program("replay", id, "--plain").out
    assert "I look." in plain and "Done." in plain
    for source in ("run.jsonl", str(program.journal(id))):
        assert program("replay", source).out == plain
        assert program("replay", source, "--json").out == told


def test_export_to_a_new_file_only(program: ScriptedProgram, home: Path) -> None:
    program.run("Look.", replies=[says("Done.")])
    (id,) = program.ids
    assert program("sessions", "export", id, "-o", "a.md").code == 0
    assert (home / "a.md").read_text().startswith("# Look.")
    ended = program("sessions", "export", id, "-o", "a.md")
    assert ended.code == 2 and "a.md already exists" in ended.err


def test_a_fork_begins_as_the_old_one_and_goes_its_own_way(program: ScriptedProgram) -> None:
    program.run("Look.", replies=[says("I look.", call("ls", path=".")), says("Done.")])
    (old,) = program.ids
    ended = program("sessions", "fork", old, "--at", "1")
    new = ended.out.strip()
    assert ended.code == 0 and new != old
    size = program.journal(old).stat().st_size
    assert program("resume", new, "--plain", replies=[says("Another way.")]).code == 0
    assert program.sent()[:2] == ["user: Look.", "assistant: I look."]
    assert program.journal(old).stat().st_size == size
    row = json.loads(program("sessions", "show", new, "--json").out)
    assert (row["parent"], row["outcome"]) == (old, "completed")
    ended = program("sessions", "fork", old, "--at", "7")
    assert ended.code == 2 and "has no finished turn 7" in ended.err


def test_deleting_asks_first(program: ScriptedProgram) -> None:
    program.run("Look.", replies=[says("Done.")])
    (id,) = program.ids
    ended = program("sessions", "delete", id)
    assert ended.code == 2 and "--yes" in ended.err and program.ids == [id]
    assert program("sessions", "delete", id, "--yes").code == 0 and program.ids == []


def test_a_session_in_use_is_not_deleted(program: ScriptedProgram) -> None:
    program.run("Ask me.", replies=ASKS)
    (id,) = program.ids
    with Store().open(id, VirtualClock()):
        ended = program("sessions", "delete", id, "--yes")
    assert ended.code == 2 and "is being written" in ended.err and program.ids == [id]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("sessions", "show", "zzz"), "No session starts with 'zzz'"),
        (("sessions", "export", "zzz"), "No session starts with 'zzz'"),
        (("sessions", "export", "zzz", "--to", "pdf"), "'pdf' is not one of"),
        (("sessions", "fork", "zzz"), "No session starts with 'zzz'"),
        (("sessions", "fork", "zzz", "--at", "0"), "0 is not in the range"),
        (("sessions", "delete", "zzz", "--yes"), "No session starts with 'zzz'"),
        (("sessions", "shwo"), "No such command"),
        (("replay", "zzz"), "No session starts with 'zzz'"),
        (("replay", "prose.txt"), "prose.txt:1: this line is not an event"),
        (("replay", "zzz", "--plain", "--json"), "cannot be combined"),
        (("answer", "zzz"), "No session starts with 'zzz'"),
        (("approve", "zzz"), "No session starts with 'zzz'"),
        (("approve", "zzz", "--session", "--deny", "no"), "cannot be combined"),
        (("stop", "zzz"), "No session starts with 'zzz'"),
    ],
)
def test_what_cannot_be_is_one_clear_error(
    program: ScriptedProgram, home: Path, args: tuple[str, ...], words: str
) -> None:
    (home / "prose.txt").write_text("Once upon a time.\n")
    ended = program(*args)
    assert ended.code == 2 and words in ended.err and ended.out == ""
    assert len(ended.err.splitlines()) <= 2


@pytest.mark.parametrize(
    ("command", "words"), [("answer", "--answer"), ("approve", "resume"), ("stop", "show")]
)
def test_H4_a_run_that_nobody_holds_cannot_be_spoken_to(
    program: ScriptedProgram, command: str, words: str
) -> None:
    program.run("Ask me.", replies=ASKS)
    (id,) = program.ids
    ended = program(command, id)
    assert ended.code == 2 and f"session {id} is not running" in ended.err and words in ended.err
