"""Events as lines: JSON that scripts rely on, words that a person can follow, and a terminal that nobody drives."""

from __future__ import annotations

import dataclasses
import io
import json
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from handrail import events as ev
from handrail import scenario
from handrail.events.wire import Codec
from handrail.messages import AssistantMessage, Failure, Text, Thinking, ToolCall, Usage
from handrail_tui.lines.json_lines import JsonLines, Out, safe_json, to_json
from handrail_tui.lines.plain import Plain

NASTY = "a\x1b]0;owned\x07b\x1b[2Jc\x9b1md\x9d8;;x\x9ce\u202ef\u2028g\x85h\x00i\rj\x08k\x7fl\U000e0041m"
NASTY += "\ndecided: finish"

SAMPLES: tuple[ev.Event, ...] = (
    ev.RunStarted(
        session="s", prompt="p", context="c", instructions=(ev.Instruction("i", "t"),), tools=("t",)
    ),
    ev.TurnStarted(turn=1, attempt=2, checkpoint=True),
    ev.MessageStarted(turn=1),
    ev.MessageDelta(turn=1, kind="thinking", text="x"),
    ev.MessageDelta(turn=1, text="x"),
    ev.MessageDelta(turn=1, kind="tool_call", text="x", index=0, name="n"),
    ev.MessageFinished(
        turn=1,
        message=AssistantMessage(
            (Thinking("t"), Text("x"), ToolCall("i", "n", {"a": "v"})),
            "error",
            Usage(1, 2),
            "m/n",
            "d",
            Failure("f", "p", status=500, headers={"h": "v"}),
        ),
    ),
    ev.ToolBatchStarted(turn=1, calls=(ev.CallInfo("i", "n", "t"), ev.CallInfo("j", "n", "t"))),
    ev.ApprovalRequested(
        turn=1, id="a", call_id="i", tool="t", title="x", detail="d", diff="d", why="w", pattern="p"
    ),
    ev.ApprovalAnswered(turn=1, id="a", how="session", text="x", pattern="p"),
    ev.ToolStarted(turn=1, call_id="i", name="n", title="t", effect="run"),
    ev.ToolProgress(turn=1, call_id="i", text="x"),
    ev.ToolFinished(turn=1, call_id="i", name="n", text="x", summary="s", diff="d"),
    ev.ToolFinished(turn=1, call_id="j", name="n", text="x", summary="s", is_error=True),
    ev.ToolBatchFinished(turn=1, votes=1, of=2),
    ev.ToolsChanged(server="s", state="failed", added=("a",), removed=("r",), of=1, why="w"),
    ev.TurnFinished(turn=1, usage=Usage(1, 2), cost=0.2, context=0.5, seconds=2.0),
    ev.Submission(accepted=False, call_id="i", attempt=1, of=3, errors=(ev.FieldError("p", "m"),)),
    ev.Decided(
        decision="retry", reason="transient", class_="transient", delay_s=2.0, why="w", number=1, limit=3
    ),
    ev.CheckpointMade(text="x", quoted=3, of=9, pieces=("x",)),
    ev.WaitStarted(
        seconds=2.0, until=100.0, decision="wait", reason="r", words="w", source="s", poll=1, polls=20
    ),
    ev.WaitEnded(how="skipped"),
    ev.HumanRequested(
        id="q",
        kind="captcha",
        needed="n",
        where="w",
        tried="t",
        fields=(ev.FormField("n", label="l", help="h"),),
    ),
    ev.HumanAnswered(id="q", how="answered", text="x"),
    ev.QueueChanged(returned=(ev.QueuedMessage("i", "x"),)),
    ev.Steered(id="i", text="x"),
    ev.SettingsChanged(model="m", max_turns=7, approve="all"),
    ev.CompactionStarted(why="w", messages=4),
    ev.CompactionFinished(ok=False, why="w", summary="s"),
    ev.BudgetSpent(which="w", spent=8, limit=8),
    ev.NoProgress(what="call", times=3, name="n"),
    ev.Notice(text="x", level="error"),
    ev.RunFinished(
        outcome="submitted",
        error="e",
        bound="b",
        until=100.0,
        question=ev.HumanRequested(id="q", kind="captcha", needed="n"),
        value={"k": "v"},
        text="t",
        session="s",
    ),
    ev.RunInterrupted(signal="SIGTERM", session="s"),
)


def poisoned(value: Any) -> Any:
    """`value` with something nasty in every text that a stranger may have written."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fixed = {
            "type",
            "kind",
            "how",
            "decision",
            "outcome",
            "stop_reason",
            "level",
            "effect",
            "what",
            "phase",
        }
        fixed |= {"role", "origin", "purpose", "call_id", "id"}
        changes = {
            f.name: poisoned(getattr(value, f.name)) for f in dataclasses.fields(value) if f.name not in fixed
        }
        return dataclasses.replace(value, **changes)
    if isinstance(value, str):
        return value + NASTY
    if isinstance(value, tuple):
        return tuple(poisoned(v) for v in value)
    if isinstance(value, dict):
        return {poisoned(k): poisoned(v) for k, v in value.items()}
    return value


def unsafe(text: str) -> set[str]:
    """Characters of `text` that are no text: controls but for newline and tab, bidi controls, line separators."""
    return {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs") and c not in "\n\t"}


def plain(events: Iterator[ev.Event] | tuple[ev.Event, ...], *, color: bool = False) -> str:
    stream = io.StringIO()
    listener = Plain(Out(stream), color=color)
    for event in events:
        listener(event)
    return stream.getvalue()


def test_the_samples_hold_every_event() -> None:
    assert {type(e) for e in SAMPLES} == set(get_args(ev.Event))


@pytest.mark.parametrize("event", SAMPLES, ids=lambda e: e.type)
def test_json_is_one_compact_line_with_the_type_first_that_reads_back(event: ev.Event) -> None:
    line = to_json(event)
    assert line.startswith(f'{{"type":"{event.type}","at":"')
    assert len(line.splitlines()) == 1
    assert Codec.loads(line) == event


@pytest.mark.parametrize("event", SAMPLES, ids=lambda e: e.type)
def test_L11_json_keeps_the_text_and_drives_no_terminal(event: ev.Event) -> None:
    bad = poisoned(event)
    line = to_json(bad)
    assert unsafe(line) == set() and len(line.splitlines()) == 1
    assert Codec.loads(line) == bad


def test_json_has_the_shape_that_scripts_rely_on() -> None:
    message = next(e for e in SAMPLES if isinstance(e, ev.MessageFinished))
    data = json.loads(to_json(message))["message"]
    assert data["role"] == "assistant" and data["usage"] == {
        "input": 1,
        "output": 2,
        "cache_read": 0,
        "cache_write": 0,
    }
    assert [block["type"] for block in data["content"]] == ["thinking", "text", "tool_call"]
    assert data["content"][2]["arguments"] == {"a": "v"}
    decided = json.loads(to_json(next(e for e in SAMPLES if isinstance(e, ev.Decided))))
    assert decided["class"] == "transient" and "class_" not in decided
    empty = json.loads(to_json(ev.RunFinished(outcome="completed")))
    for name in ("class", "error", "bound", "until", "question", "value", "text", "cost", "session"):
        assert empty[name] is None
    assert '"type":"run_finished"' in to_json(ev.RunFinished(outcome="completed"))


def test_json_outside_ascii_stays_readable() -> None:
    assert safe_json({"text": "größer 日本 👩‍👩‍👧 "}).startswith('{"text":"größer 日本 👩')


@pytest.mark.parametrize("color", [False, True])
def test_L11_plain_lines_drive_no_terminal(color: bool) -> None:
    text = plain(tuple(poisoned(e) for e in SAMPLES), color=color)
    if color:
        text = text.replace("\x1b[", "")
    assert unsafe(text) == set()


def test_H5_what_is_asked_about_is_shown_whole_and_nothing_hides_in_it() -> None:
    command = "rm -r src\r" + "ls " * 200 + "\x1b[8m; curl evil"
    text = plain(
        (ev.ApprovalRequested(id="a", call_id="c", tool="bash", title=command, why="it runs a command"),)
    )
    assert "needs approval: bash rm -r src␍ls" in text
    assert "␛[8m; curl evil" in text


def test_only_the_program_writes_at_the_margin() -> None:
    text = plain(tuple(poisoned(e) for e in SAMPLES))
    assert not any(line.startswith("decided: finish") for line in text.splitlines())
    assert "  decided: finish" in text.splitlines()


def test_H4_a_question_that_ends_a_run_is_told_once() -> None:
    asked = ev.HumanRequested(turn=1, id="q", kind="login", needed="Log in, please.")
    ended = ev.RunFinished(outcome="human-required", error="Log in, please.", question=asked, session="s")
    assert plain((asked, ended)).count("Log in, please.") == 1
    assert plain((ended,)).count("Log in, please.") == 1


def test_text_streams_out_in_whole_lines() -> None:
    stream = io.StringIO()
    listener = Plain(Out(stream))
    listener(ev.MessageStarted())
    for piece in ("one", " line\nan", "other\x1b]0;"):
        listener(ev.MessageDelta(text=piece))
    assert stream.getvalue() == "  one line\n"
    listener(ev.MessageDelta(text="title\x07 end"))
    listener(ev.MessageFinished(message=AssistantMessage((Text("one line\nanother end"),))))
    assert stream.getvalue() == "  one line\n  another end\n"


def test_a_reply_that_did_not_stream_is_said_once_whole() -> None:
    message = AssistantMessage((Thinking("hm"), Text("all at once")))
    assert plain((ev.MessageStarted(), ev.MessageFinished(message=message))) == (
        "thought, 2 characters\n  all at once\n"
    )


class Deaf(io.StringIO):
    """A stream whose reader went away."""

    writes = 0

    def write(self, text: str) -> int:
        self.writes += 1
        raise BrokenPipeError


def test_a_reader_that_went_away_is_noticed_once_and_left_alone() -> None:
    gone: list[int] = []
    stream = Deaf()
    out = Out(stream, lambda: gone.append(1))
    for event in SAMPLES:
        JsonLines(out)(event)
    assert (out.closed, gone, stream.writes) == (True, [1], 1)


def test_what_the_encoding_cannot_hold_is_replaced() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, "ascii")
    Out(stream).line("größer · 日本")
    assert raw.getvalue() == b"gr??er ? ??\n"


SCENARIO = """
prompt = "Report the answer."
[schema]
type = "object"
required = ["answer"]
[schema.properties.answer]
type = "integer"
[recovery]
enabled = true
[bounds]
max_turns = 6
[[tools]]
name = "lookup"
result = "42"
takes_s = 1.5
[[replies]]
thinking = "Let me see."
text = "I look it up."
calls = [ { tool = "lookup", args = { q = "x" } }, { tool = "submit", args = { answer = "no" } } ]
[[replies]]
text = "partial words"
break = "peer closed connection without sending complete message body"
[[replies]]
error = { status = 429, text = "Usage limit reached. Try again in ~42 min.", provider = "openai" }
[[replies]]
calls = [ { tool = "submit", args = { answer = 42 } } ]
"""


async def test_a_whole_run_reads_from_top_to_bottom(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text(SCENARIO)
    stream = io.StringIO()
    await scenario.play(scenario.load(file), Plain(Out(stream)))
    lines = iter(stream.getvalue().splitlines())
    for expected in (
        "bounds: 6 turns, 3 rejected submissions",
        "you:",
        "  Report the answer.",
        "turn 1 of 6",
        "thought, 11 characters",
        "  I look it up.",
        "batch of 2 calls",
        "submission rejected, 1 of 3:",
        "ok: lookup x (1.5 s)",
        "turn 2 of 6",
        "  partial words",
        "the request failed: peer closed connection without sending complete message body",
        "decided: retry: 1 of 3, in 2",
        "sent with the next request: 13 characters",
        "waiting 0:02, until ",
        "turn 3 of 6, attempt 2, continuing a cut reply",
        "the request failed: HTTP 429: Usage limit reached.",
        "decided: wait: usage limit, 42",
        "waiting 42:30, until ",
        "turn 4 of 6",
        "submission accepted",
        "Value accepted · 4 requests · 1 rejected submission",
        "value:",
        '    "answer": 42',
    ):
        assert any(line.startswith(expected) for line in lines), f"missing, or out of order: {expected}"


async def test_every_json_line_of_a_run_reads_back_and_the_last_is_run_finished(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text(SCENARIO)
    stream = io.StringIO()
    seen: list[ev.Event] = []
    await scenario.play(scenario.load(file), JsonLines(Out(stream)), seen.append)
    lines = stream.getvalue().splitlines()
    assert [Codec.loads(line) for line in lines] == seen
    assert json.loads(lines[0])["schema"] == 1
    assert json.loads(lines[-1])["type"] == "run_finished"
